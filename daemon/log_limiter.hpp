// Limits how many lines per second each cause writes to the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gloved::daemon {

/// Admits the first `lines_a_second` lines of each second, separately for each cause, and counts
/// the others. A cause is what the caller passes, e.g. a place in the code. Not safe for concurrent
/// use.
template <class Cause>
class LogLimiter {
  public:
    using Clock = std::chrono::steady_clock;

    explicit LogLimiter(std::uint64_t lines_a_second) : lines_a_second_(lines_a_second) {}

    /// Whether a line of this cause may be written now; if not, counts it as suppressed.
    bool admit(const Cause& cause, Clock::time_point now) {
        Window& window = windows_.try_emplace(cause, Window{now, 0, 0}).first->second;
        // Suppressed lines are reported first: see take_suppressed.
        if (window.suppressed == 0 && now - window.begun >= kWindow) window = {now, 0, 0};
        if (window.lines < lines_a_second_) {
            ++window.lines;
            return true;
        }
        ++window.suppressed;
        return false;
    }

    /// Returns each cause that has suppressed lines and whose second is over, with their number,
    /// and sets that to 0. The caller writes one line about each, which counts for the next second.
    std::vector<std::pair<Cause, std::uint64_t>> take_suppressed(Clock::time_point now) {
        std::vector<std::pair<Cause, std::uint64_t>> causes;
        for (auto& [cause, window] : windows_) {
            if (window.suppressed == 0 || now - window.begun < kWindow) continue;
            causes.emplace_back(cause, window.suppressed);
            window = {now, 1, 0};  // the line that reports them
        }
        return causes;
    }

  private:
    static constexpr std::chrono::seconds kWindow{1};

    struct Window {
        Clock::time_point begun;
        std::uint64_t lines;
        std::uint64_t suppressed;
    };

    const std::uint64_t lines_a_second_;
    std::map<Cause, Window> windows_;  // one per place that logs
};

}  // namespace gloved::daemon
