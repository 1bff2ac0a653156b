// Names of the plane's layout (common/format/planes.hpp) for engines: 4 bits per component, 16 rows
// per group. common/format/FORMAT.md specifies it.
#pragma once

#include "common/format/planes.hpp"

namespace gloved::kernels::planes {

using format::kGroupRows;
using format::kStepBytes;
using format::kStepDims;
using format::PlaneShape;

}  // namespace gloved::kernels::planes
