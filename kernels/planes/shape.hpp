// How a plane lies in memory and on disk: 4 bits a component, 16 rows together. The format says it
// (common/format/FORMAT.md).
#pragma once

#include "common/format/planes.hpp"

namespace gloved::kernels::planes {

using format::kGroupRows;
using format::kStepBytes;
using format::kStepDims;
using format::PlaneShape;

}  // namespace gloved::kernels::planes
