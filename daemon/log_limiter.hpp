// How many lines a second one cause may write to the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace gloved::daemon {

/// Lets the first lines of each second through, for every cause alone, and counts the others. Not
/// safe for concurrent use.
template <class Cause>
class LogLimiter {
  public:
    using Clock = std::chrono::steady_clock;

    explicit LogLimiter(std::uint64_t lines_a_second) : lines_a_second_(lines_a_second) {}

    /// Whether a line of this cause may be written now.
    bool admit(const Cause& cause, Clock::time_point now) {
        Window& window = windows_.try_emplace(cause, Window{now, 0, 0}).first->second;
        // What was left out is told first: see take_left_out.
        if (window.left_out == 0 && now - window.begun >= kWindow) window = {now, 0, 0};
        if (window.lines < lines_a_second_) {
            ++window.lines;
            return true;
        }
        ++window.left_out;
        return false;
    }

    /// The causes whose second is over and of which lines were left out, with how many; they begin
    /// anew.
    std::vector<std::pair<Cause, std::uint64_t>> take_left_out(Clock::time_point now) {
        std::vector<std::pair<Cause, std::uint64_t>> causes;
        for (auto& [cause, window] : windows_) {
            if (window.left_out == 0 || now - window.begun < kWindow) continue;
            causes.emplace_back(cause, window.left_out);
            window = {now, 1, 0};  // the line that tells of them
        }
        return causes;
    }

  private:
    static constexpr std::chrono::seconds kWindow{1};

    struct Window {
        Clock::time_point begun;
        std::uint64_t lines;
        std::uint64_t left_out;
    };

    const std::uint64_t lines_a_second_;
    std::map<Cause, Window> windows_;  // as many as there are places that log
};

}  // namespace gloved::daemon
