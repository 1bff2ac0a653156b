#include "tools/bench/matmin_report.hpp"

#include <fmt/format.h>

#include "tools/bench/measure.hpp"

namespace gloved::bench {

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

}  // namespace gloved::bench
