// Which ways to compute distances there are, and which one does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/registry.hpp"

namespace gloved::kernels::distance {

/// Every engine that this build knows of; `auto` takes the first that is available. «cuda» and
/// «cpu» are the product. The others are for measuring and reading: «sequential», and on a GPU
/// «global» (every operand from its memory) and «shared8», «shared16», «shared32» (tiles of so many
/// threads a side).
std::vector<EngineEntry> list_distance_engines();

/// Makes the engine `name`, or for "auto" the first available one. The points must outlive it.
/// Errors: unavailable, for a name that does not exist or cannot run here, and for points that do
/// not fit on a GPU; device, when a GPU refuses or fails; never another engine than the one that
/// was asked for. Throws as make_cpu does.
Result<std::unique_ptr<Engine>> make_distance_engine(const std::string& name, PointsView points,
                                                     Metric metric, const EngineOptions& options);

}  // namespace gloved::kernels::distance
