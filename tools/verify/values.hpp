// Checks the content of a model's values file in one pass over it.
#pragma once

#include <atomic>
#include <cstddef>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

using ComponentRanges = kernels::reduce::MinMax<float>;

/// Checks each section's checksum, the padding between them, every norm, and that every component
/// is finite. Calls `report` with each outcome and the ranges. Reads each row once: `threads`
/// threads scan blocks of rows, and the calling thread hashes the blocks in order. Returns the
/// range of every dimension. Error: interrupted once `stop` is set.
Result<ComponentRanges> check_values(const format::Model& model, std::size_t threads,
                                     const std::atomic<bool>& stop, const Reporter& report);

}  // namespace gloved::verify
