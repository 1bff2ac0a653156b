// Distances on the processor: tiles of sums in registers, one half of what is symmetric, all
// threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Copies the points, so that `points` need not outlive it. Error: unavailable, for an instruction
/// set that does not exist or that this processor lacks. Throws std::bad_alloc, and
/// std::system_error when the system does not let so many threads start.
Result<std::unique_ptr<Engine>> make_cpu(PointsView points, Metric metric,
                                         const EngineOptions& options);

/// The instruction sets that this processor has, best first: «avx512», «avx2», «baseline».
std::vector<std::string> simd_names();

}  // namespace gloved::kernels::distance
