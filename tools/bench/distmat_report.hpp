// Formats the measurements of gloved-bench distmat as a table.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/table.hpp"

namespace gloved::bench {

/// One way to compute all distances of one matrix.
struct DistmatFigures {
    std::string rung;
    bool on_host = false;           ///< on the CPU
    std::vector<double> ms;         ///< of each run, one or more; the result stays on the device
    std::optional<double> host_ms;  ///< of one run until the result is in host memory
};

/// A matrix (rows, dim) and the rungs that computed its distances.
struct DistmatSize {
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::vector<DistmatFigures> rungs;
};

/// A line for each size and rung. GFLOP/s counts three operations for every component of all
/// rows × rows pairs, even if a rung computes each pair once.
Table distmat_table(std::span<const DistmatSize> sizes);

}  // namespace gloved::bench
