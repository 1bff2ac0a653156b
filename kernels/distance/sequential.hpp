// The sequential distance engine: one pair after another on one thread, for comparison with the
// faster ones.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Makes the engine; never fails. `points` must outlive the engine; the options are ignored.
Result<std::unique_ptr<Engine>> make_sequential(PointsView points, Metric metric,
                                                const DistanceOptions& options);

}  // namespace gloved::kernels::distance
