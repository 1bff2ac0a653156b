// Checks that a model's neighbors file has the nearest rows of each row, by a search without it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// Which lists to compare with a plain search.
struct NeighborsChecks {
    /// Number of rows, chosen at random; all rows if it is not smaller than their number. Each
    /// takes as long as an answer of the oracle.
    std::size_t rows = 20;
    std::uint64_t seed = 1;  ///< of the choice
};

/// Checks the neighbors file, if there is one, and calls `report` with the outcome of each check:
/// of header and size; of the checksum, the row numbers of all lists and the padding; and of the
/// lists that `checks` selects, which must be those of the oracle. `threads` ask the oracle. The
/// model must have passed check_values. Error: interrupted, once `stop` is true.
Status check_neighbors(const format::Model& model, const NeighborsChecks& checks,
                       std::size_t threads, const std::atomic<bool>& stop, const Reporter& report);

/// Reports only what opening the file checks. Returns whether there is one that could be opened.
bool report_neighbors_header(const format::Model& model, const Reporter& report);

}  // namespace gloved::verify
