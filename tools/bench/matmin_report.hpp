// Formats the measurements of gloved-bench matmin as a table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/table.hpp"

namespace gloved::bench {

/// How long one reducer took for the matrices of a text.
struct MatminFigures {
    std::string engine;      ///< its name
    double reading_ms = 0;   ///< reading and parsing the text, less the reducer's time
    double transfer_ms = 0;  ///< ReduceTimes::transfer_ms of that run
    double compute_ms = 0;   ///< ReduceTimes::compute_ms of that run
    /// Times of Reducer::time_again; empty if the values were not kept.
    std::vector<double> recompute_ms;
    /// Reading all values once, without computing, on the same CPU or GPU.
    std::optional<double> read_ms;
};

/// Makes a table with a line for each engine. `text_bytes` is the size of the text, `value_bytes`
/// that of its numbers in memory.
Table matmin_table(std::span<const MatminFigures> engines, std::uint64_t text_bytes,
                   std::uint64_t value_bytes);

}  // namespace gloved::bench
