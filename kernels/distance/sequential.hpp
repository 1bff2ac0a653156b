// The rung to compare the others with: one pair after the other, on one thread.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Never fails. `points` must outlive it; of the options none matters.
Result<std::unique_ptr<Engine>> make_sequential(PointsView points, Metric metric,
                                                const EngineOptions& options);

}  // namespace gloved::kernels::distance
