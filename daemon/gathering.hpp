// Gathering: decides how long a batch waits for requests that are about to come.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Clients that ask one request after the other answer an answer with a request. If a batch starts
/// when the first of them are back, the others wait for its end, and from then on the clients take
/// turns in two batches, each of which costs nearly as much as one of all. So a batch waits until
/// as many jobs are there as were answered or waiting before, where that is expected to save time.
/// Where clients do not come back in time, it waits less and less often. Not safe for concurrent
/// use.
class Gathering {
  public:
    /// Answers were handed over at `now`, and `expected` jobs may make the next batch: those that
    /// were answered, and those that waited already.
    void begin(std::size_t expected, Clock::time_point now) {
        expected_ = expected;
        begun_ = now;
    }

    std::size_t expected() const { return expected_; }

    /// Whether a wait is due at all, some time after too long ones.
    bool is_due() const { return skipped_ >= pause_; }

    /// Until when to wait from `now` on for the expected jobs, if one batch takes `gain_ms` less
    /// than two; nullopt for not at all. Call `end` after the wait.
    std::optional<Clock::time_point> until(double gain_ms, Clock::time_point now) {
        if (!is_due()) {
            ++skipped_;
            return std::nullopt;
        }
        // A wait that fails costs no more than one that succeeds brings.
        const double patience = std::min(gain_ms, kTurnarounds * turnaround_ms_);
        if (!(patience > 0)) return std::nullopt;
        const auto end = begun_ + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double, std::milli>(patience));
        return end > now ? std::optional(end) : std::nullopt;
    }

    /// Notes how the wait ended, at `now`.
    void end(bool all_came, Clock::time_point now) {
        skipped_ = 0;
        if (all_came) {
            const double ms = std::chrono::duration<double, std::milli>(now - begun_).count();
            turnaround_ms_ =
                std::max(kMinTurnaroundMs, turnaround_ms_ + (ms - turnaround_ms_) * kBlend);
            pause_ = 0;
        } else {
            pause_ = std::min(2 * pause_ + 1, kMaxPause);
        }
    }

  private:
    /// A wait may take so many times as long as those before.
    static constexpr double kTurnarounds = 4;
    static constexpr double kMinTurnaroundMs = 0.03;
    static constexpr double kBlend = 0.25;
    /// Most waits left out after one that failed.
    static constexpr unsigned kMaxPause = 127;

    std::size_t expected_ = 0;
    Clock::time_point begun_;
    double turnaround_ms_ = 0.1;  // from answers to the last expected request
    unsigned pause_ = 0;          // waits to leave out
    unsigned skipped_ = 0;        // of them, so far
};

}  // namespace gloved::daemon
