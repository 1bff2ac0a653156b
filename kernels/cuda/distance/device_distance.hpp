// The distance engines on a GPU: one for each rung, or version of the kernel (launches.hpp).
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::cuda {

/// Makes an engine on device `options.device` and copies the points there; `points` need not
/// outlive it. `rung` is «cuda», the fastest, «global», «shared8», «shared16» or «shared32». For
/// tests, «tiled32», «tiled64» and «tiled128» are «cuda» with tiles of that edge, and compute even
/// small matrices in several pieces. Errors: unavailable, for another name, or a device that does
/// not exist or has no room for the points; device, if a CUDA call fails.
Result<std::unique_ptr<distance::Engine>> make_device_distance(
    const std::string& rung, distance::PointsView points, distance::Metric metric,
    const distance::DistanceOptions& options);

}  // namespace gloved::kernels::cuda
