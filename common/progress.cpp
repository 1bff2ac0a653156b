#include "common/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace gloved {

std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                          double seconds, ProgressUnit unit) {
    const double per_s = seconds > 0 ? static_cast<double>(done) / seconds : 0.0;
    const double units_per_s = per_s / static_cast<double>(unit.size);
    if (total == 0) {
        return fmt::format("{}  {} {}  {:.0f} {}/s", label, done / unit.size, unit.name,
                           units_per_s, unit.name);
    }
    // A file that grows while being read would exceed 100 %.
    done = std::min(done, total);
    const double percent = 100.0 * static_cast<double>(done) / static_cast<double>(total);
    if (per_s <= 0) return fmt::format("{}  {:.0f} %", label, percent);
    const auto left_s = std::llround(static_cast<double>(total - done) / per_s);
    return fmt::format("{}  {:.0f} %  {:.0f} {}/s  ETA {}:{:02}", label, percent, units_per_s,
                       unit.name, left_s / 60, left_s % 60);
}

Progress::Progress(std::string label, std::uint64_t total, ProgressUnit unit)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      visible_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { erase(); }

void Progress::erase() {
    if (std::exchange(drawn_, false)) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::uint64_t done) {
    if (!visible_) return;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fputs(("\r\033[K" + progress_line(label_, done, total_, seconds, unit_)).c_str(), stderr);
    drawn_ = true;
}

}  // namespace gloved
