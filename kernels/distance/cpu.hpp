// The cpu engine for distances: uses all threads, keeps a tile of sums in registers, and computes
// each pair of a symmetric matrix once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Makes the engine. Copies the points, so `points` need not outlive it. Error: unavailable, if the
/// instruction set is unknown or this processor lacks it. Throws std::bad_alloc, and
/// std::system_error if the system refuses a thread.
Result<std::unique_ptr<Engine>> make_cpu(PointsView points, Metric metric,
                                         const DistanceOptions& options);

/// Instruction sets of this processor, best first: «avx512», «avx2», «baseline».
std::vector<std::string> simd_names();

}  // namespace gloved::kernels::distance
