// Lists the distance engines of this build, and makes one by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/makers.hpp"

namespace gloved::kernels::distance {

/// Lists every engine of this build, in the order in which `auto` tries them: «cuda», «cpu».
std::vector<MakerEntry> list_distance_engines();

/// Makes the engine `name`, never another one; for «auto» the first that can run here. The points
/// must outlive the engine. Errors: unavailable, if the name does not exist or cannot run here, or
/// if points do not fit on a GPU; device, if a GPU refuses or fails. Throws as make_cpu does.
Result<std::unique_ptr<Engine>> make_distance_engine(const std::string& name, PointsView points,
                                                     Metric metric, const DistanceOptions& options);

}  // namespace gloved::kernels::distance
