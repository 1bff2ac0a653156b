// Tables of what gloved-bench matmin and distmat measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/measure.hpp"

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

/// How long one distance engine took to compute all distances of one matrix.
struct DistmatFigures {
    std::string engine;             ///< its name
    bool on_host = false;           ///< the engine runs on the CPU
    std::vector<double> ms;         ///< time of each run, at least one; a GPU keeps the result
    std::optional<double> host_ms;  ///< time of one run that also copies the result to the host
};

/// A matrix (rows, dim) and the engines that computed its distances.
struct DistmatSize {
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::vector<DistmatFigures> engines;
};

/// Makes a table with a line for each size and engine. GFLOP/s counts three operations
/// (subtraction, multiplication, addition) for every component of all rows × rows pairs, even if an
/// engine computes only half of the pairs, as distances are symmetric.
Table distmat_table(std::span<const DistmatSize> sizes);

}  // namespace gloved::bench
