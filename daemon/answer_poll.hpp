// AnswerPoll: when a loop polls for answers, rather than sleep until it is woken.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

#include "daemon/settings.hpp"

namespace gloved::daemon {

/// A thread that sleeps wakes up some 10 µs after its answers are there, and a GPU answers in 100:
/// so a loop polls for them, but only from shortly before they are due, by the waits so far. With
/// many jobs in flight answers come all the time, and it polls throughout. Not safe for concurrent
/// use.
class AnswerPoll {
  public:
    /// A job for which the loop may poll goes to an engine. Returns when `wake` is due, if its time
    /// has changed.
    std::optional<Clock::time_point> submitted(Clock::time_point now) {
        last_ = now;
        return ++in_flight_ == 1 ? begin(now) : std::nullopt;
    }
    /// The job was not taken after all.
    void refused() { --in_flight_; }
    /// So many of these jobs are back. Result as for `submitted`.
    std::optional<Clock::time_point> returned(std::size_t jobs, Clock::time_point now) {
        if (jobs == 0) return std::nullopt;
        in_flight_ -= jobs;
        const auto waited = std::min(now - begun_, 2 * wait_ + kMaxLead);
        wait_ += (waited - wait_) / kBlend;
        polls_until_ = {};
        return in_flight_ > 0 ? begin(now) : std::nullopt;
    }
    /// Answers are nearly due: polls for a while.
    void wake(Clock::time_point now) {
        polls_until_ = now + std::max<Clock::duration>(2 * (wait_ - delay()), kMinPoll);
    }

    bool is_polling(Clock::time_point now) const {
        if (in_flight_ == 0) return false;
        return now < (in_flight_ >= kMany ? last_ + kMaxPoll : polls_until_);
    }

  private:
    /// Jobs in flight from which on a loop polls throughout, and how long after the last it does.
    static constexpr std::size_t kMany = 32;
    static constexpr std::chrono::milliseconds kMaxPoll{2};
    /// For answers that take longer it does not poll.
    static constexpr std::chrono::milliseconds kLongWait{1};
    static constexpr std::chrono::microseconds kMaxLead{50};
    static constexpr std::chrono::microseconds kMinPoll{30};
    static constexpr int kBlend = 5;

    /// How much of the wait it sleeps.
    Clock::duration delay() const { return wait_ * 85 / 100; }
    std::optional<Clock::time_point> begin(Clock::time_point now) {
        begun_ = now;
        if (wait_ > kLongWait) return std::nullopt;
        return now + delay();
    }

    std::size_t in_flight_ = 0;
    Clock::time_point begun_;                                // of the present wait
    Clock::time_point last_;                                 // the last job was submitted
    Clock::time_point polls_until_;                          // unless many are in flight
    Clock::duration wait_ = std::chrono::microseconds{150};  // average
};

}  // namespace gloved::daemon
