#include "tools/bench/matrix_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/bench/measure.hpp"

namespace gloved::bench {
namespace {

constexpr std::string_view kBase = "cpu";

}  // namespace

Table matmin_table(std::span<const MatminFigures> engines, std::uint64_t text_bytes,
                   std::uint64_t value_bytes) {
    Table table({"engine", "reading ms", "MB/s", "transfer ms", "computing ms", "again ms", "+-",
                 "GB/s", "x read"});
    for (const MatminFigures& figures : engines) {
        const bool again = !figures.recompute_ms.empty();
        const double ms = again ? mean(figures.recompute_ms) : figures.compute_ms;
        const auto spread = again ? standard_error(figures.recompute_ms) : std::nullopt;
        table.add(
            {figures.engine, figure(figures.reading_ms),
             fmt::format("{:.0f}", static_cast<double>(text_bytes) / figures.reading_ms / 1e3),
             figure(figures.transfer_ms), figure(figures.compute_ms), again ? figure(ms) : "",
             spread ? figure(*spread) : "", figure(static_cast<double>(value_bytes) / ms / 1e6),
             figures.read_ms ? fmt::format("{:.3f}", ms / *figures.read_ms) : ""});
    }
    return table;
}

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
