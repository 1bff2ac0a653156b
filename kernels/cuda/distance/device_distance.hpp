// The distance engine on a GPU.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::cuda {

/// Makes an engine on device `options.device` and copies the points there; `points` need not
/// outlive it. Errors: unavailable, for a device that does not exist or has no room for the points;
/// device, if a CUDA call fails.
Result<std::unique_ptr<distance::Engine>> make_device_distance(
    distance::PointsView points, distance::Metric metric, const distance::DistanceOptions& options);

}  // namespace gloved::kernels::cuda
