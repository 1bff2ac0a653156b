// The sequential rung for distances: one pair after another on one thread, for comparison.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Never fails. `points` must outlive it; the options are ignored.
Result<std::unique_ptr<Engine>> make_sequential(PointsView points, Metric metric,
                                                const DistanceOptions& options);

}  // namespace gloved::kernels::distance
