#include "tools/bench/distmat_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/bench/measure.hpp"

namespace gloved::bench {
namespace {

constexpr std::string_view kSlowest = "sequential";

}  // namespace

Table distmat_table(std::span<const DistmatSize> sizes) {
    Table table(
        {"rows", "dim", "rung", "runs", "ms mean", "+-", "GFLOP/s", "x sequential", "ms to host"});
    for (const DistmatSize& size : sizes) {
        const auto slowest = std::ranges::find(size.rungs, kSlowest, &DistmatFigures::rung);
        const double operations = 3.0 * static_cast<double>(size.rows) *
                                  static_cast<double>(size.rows) * static_cast<double>(size.dim);
        for (const DistmatFigures& figures : size.rungs) {
            const double ms = mean(figures.ms);
            const auto spread = standard_error(figures.ms);
            table.add({fmt::to_string(size.rows), fmt::to_string(size.dim), figures.rung,
                       fmt::to_string(figures.ms.size()), figure(ms), spread ? figure(*spread) : "",
                       figure(operations / ms / 1e6),
                       slowest == size.rungs.end() ? "" : figure(mean(slowest->ms) / ms),
                       figures.host_ms ? figure(*figures.host_ms) : ""});
        }
    }
    return table;
}

}  // namespace gloved::bench
