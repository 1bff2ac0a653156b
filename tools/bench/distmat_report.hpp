// Formats the measurements of gloved-bench distmat as a table.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/table.hpp"

namespace gloved::bench {

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
