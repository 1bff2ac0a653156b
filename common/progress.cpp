#include "common/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace gloved {

std::string progress_line(std::string_view label, std::uint64_t done_bytes, std::uint64_t total_bytes, double seconds) {
    const double bytes_per_s = seconds > 0 ? static_cast<double>(done_bytes) / seconds : 0.0;
    if (total_bytes == 0) {
        return fmt::format("{}  {} MB  {:.0f} MB/s", label, done_bytes / 1'000'000, bytes_per_s / 1e6);
    }
    // A file that grows while it is read would pass 100 %.
    const std::uint64_t done = std::min(done_bytes, total_bytes);
    const double percent = 100.0 * static_cast<double>(done) / static_cast<double>(total_bytes);
    if (bytes_per_s <= 0) return fmt::format("{}  {:.0f} %", label, percent);
    const auto left_s = std::llround(static_cast<double>(total_bytes - done) / bytes_per_s);
    return fmt::format("{}  {:.0f} %  {:.0f} MB/s  ETA {}:{:02}", label, percent, bytes_per_s / 1e6, left_s / 60,
                       left_s % 60);
}

Progress::Progress(std::string label, std::uint64_t total_bytes)
    : label_(std::move(label)), total_bytes_(total_bytes), visible_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
    if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::uint64_t done_bytes) {
    if (!visible_) return;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fputs(("\r\033[K" + progress_line(label_, done_bytes, total_bytes_, seconds)).c_str(), stderr);
    drawn_ = true;
}

}  // namespace gloved
