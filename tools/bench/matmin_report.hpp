// Formats the measurements of gloved-bench matmin as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/table.hpp"

namespace gloved::bench {

/// One way to reduce the matrices of a text.
struct MatminFigures {
    std::string rung;
    double reading_ms = 0;   ///< reading and parsing, without the reducer
    double transfer_ms = 0;  ///< during reading
    double compute_ms = 0;   ///< during reading
    /// Computing again over all values in memory; empty if they are not kept.
    std::vector<double> recompute_ms;
    /// A plain read of as many bytes by the same CPU or GPU.
    std::optional<double> read_ms;
};

/// A line for each rung. `text_bytes` is the size of the text, `value_bytes` that of the numbers.
Table matmin_table(std::span<const MatminFigures> rungs, std::uint64_t text_bytes,
                   std::uint64_t value_bytes);

}  // namespace gloved::bench
