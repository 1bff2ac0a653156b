#include "tools/bench/distmat_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/bench/measure.hpp"

namespace gloved::bench {
namespace {

constexpr std::string_view kBase = "cpu";

}  // namespace

Table distmat_table(std::span<const DistmatSize> sizes) {
    Table table(
        {"rows", "dim", "engine", "runs", "ms mean", "+-", "GFLOP/s", "x cpu", "ms to host"});
    for (const DistmatSize& size : sizes) {
        const auto base = std::ranges::find(size.engines, kBase, &DistmatFigures::engine);
        const double operations = 3.0 * static_cast<double>(size.rows) *
                                  static_cast<double>(size.rows) * static_cast<double>(size.dim);
        for (const DistmatFigures& figures : size.engines) {
            const double ms = mean(figures.ms);
            const auto spread = standard_error(figures.ms);
            table.add({fmt::to_string(size.rows), fmt::to_string(size.dim), figures.engine,
                       fmt::to_string(figures.ms.size()), figure(ms), spread ? figure(*spread) : "",
                       figure(operations / ms / 1e6),
                       base == size.engines.end() ? "" : figure(mean(base->ms) / ms),
                       figures.host_ms ? figure(*figures.host_ms) : ""});
        }
    }
    return table;
}

}  // namespace gloved::bench
