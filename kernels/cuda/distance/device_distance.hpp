// The distance engine on a GPU, by any rung of the ladder (launches.hpp).
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::cuda {

/// An engine on device `options.device`, which the points are copied to; they are not needed
/// afterwards. `rung`: «cuda», the fastest, «global», «shared8», «shared16» or «shared32»; for
/// tests «tiled32», «tiled64» and «tiled128» are «cuda» with squares of that size, in pieces small
/// enough that there are several. Errors: unavailable, for another name, a device that does not
/// exist or has no room for the points; device, when a call fails.
Result<std::unique_ptr<distance::Engine>> make_device_distance(
    const std::string& rung, distance::PointsView points, distance::Metric metric,
    const distance::DistanceOptions& options);

}  // namespace gloved::kernels::cuda
