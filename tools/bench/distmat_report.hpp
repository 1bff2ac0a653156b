// What was measured of the distances, as a table.
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
    bool on_host = false;    ///< on the processor
    std::vector<double> ms;  ///< of each run, the result left where it was computed; one or more
    std::optional<double> host_ms;  ///< until the result is in the host's memory, once
};

/// A matrix (rows, dim), and all that computed its distances.
struct DistmatSize {
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::vector<DistmatFigures> rungs;
};

/// A line for each size and rung. Operations are three for every component of all rows × rows
/// pairs, however many were in fact computed.
Table distmat_table(std::span<const DistmatSize> sizes);

}  // namespace gloved::bench
