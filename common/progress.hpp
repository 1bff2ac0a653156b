// Progress line of a long job, shown on a terminal only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gloved {

/// The unit of a progress line: `size` of what the job counts (bytes, say) are one `name`.
struct ProgressUnit {
    std::string_view name = "MB";
    std::uint64_t size = 1'000'000;
};

/// Formats «reading 41 % 212 MB/s ETA 0:37», where `label` is «reading», and `done` of `total` took
/// `seconds`. If the total is unknown (0), there is no percentage and no ETA: «reading 1234 MB 212
/// MB/s».
std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                          double seconds, ProgressUnit unit = {});

/// Shows progress_line on stderr. Rewrites it at most ten times a second; its destructor erases it.
/// Does nothing if stderr is not a terminal. Not safe for concurrent use.
class Progress {
  public:
    /// `unit.name` must outlive the Progress.
    Progress(std::string label, std::uint64_t total, ProgressUnit unit = {});
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress();

    /// Notes that `done` of the total are done.
    void update(std::uint64_t done);
    /// Erases the line until the next `update`, so that a message can be printed.
    void erase();

  private:
    using Clock = std::chrono::steady_clock;

    std::string label_;
    std::uint64_t total_;
    ProgressUnit unit_;
    bool visible_;
    bool drawn_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point next_ = start_;
};

}  // namespace gloved
