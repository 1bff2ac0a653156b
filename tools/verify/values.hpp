// Checks the content of a model's values file in one pass over it.
#pragma once

#include <atomic>
#include <cstddef>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// The smallest and largest value of each dimension over all rows.
using ComponentRanges = kernels::reduce::MinMax<float>;

/// Checks the checksum of each section, the padding between sections, every norm, and that every
/// component is finite. Calls `report` with the outcome of each check, and with the range of all
/// components. Reads each row once: `threads` threads scan blocks of rows, and the calling thread
/// hashes the blocks in order. Error: interrupted, once `stop` is true.
Result<ComponentRanges> check_values(const format::Model& model, std::size_t threads,
                                     const std::atomic<bool>& stop, const Reporter& report);

}  // namespace gloved::verify
