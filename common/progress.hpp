// How far a long job is and when it will end: for people at a terminal, silent for everybody else.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gloved {

/// What a job's progress is shown in: so many of what it counts (bytes, say) are one of `name`.
struct ProgressUnit {
    std::string_view name = "MB";
    std::uint64_t size = 1'000'000;
};

/// «reading  41 %  212 MB/s  ETA 0:37». Without a total (0) there is neither percent nor ETA:
/// «reading  1234 MB  212 MB/s».
std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                          double seconds, ProgressUnit unit = {});

/// One line on stderr that is written over itself at most ten times a second, and wiped at the end.
/// Does nothing where stderr is not a terminal. Not safe for concurrent use.
class Progress {
  public:
    /// `unit.name` must outlive it.
    Progress(std::string label, std::uint64_t total, ProgressUnit unit = {});
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress();

    void update(std::uint64_t done);

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
