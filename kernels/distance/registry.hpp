// The list of distance engines, and how to make one by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/makers.hpp"

namespace gloved::kernels::distance {

/// Lists every engine of this build; `auto` takes the first available one. «cuda» and «cpu» are the
/// product. The others are rungs for measuring and reading: «sequential», and on a GPU «global»
/// (every operand from global memory) and «shared8», «shared16», «shared32» (tiles with so many
/// threads per side).
std::vector<MakerEntry> list_distance_engines();

/// Makes the engine `name`, or for "auto" the first available one, and never another. The points
/// must outlive it. Errors: unavailable, if the name does not exist or cannot run here, or if
/// points do not fit on a GPU; device, if a GPU refuses or fails. Throws as make_cpu does.
Result<std::unique_ptr<Engine>> make_distance_engine(const std::string& name, PointsView points,
                                                     Metric metric, const DistanceOptions& options);

}  // namespace gloved::kernels::distance
