// A model's vectors and norms in the memory of a device, as every rung from v2 on reads them.
#pragma once

#include <cstddef>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/cuda/runtime.hpp"

namespace gloved::kernels::ladder {

class ResidentModel {
  public:
    int device = 0;
    std::size_t rows = 0;
    std::size_t dim = 0;
    cuda::DeviceBuffer<float> vectors;  ///< (rows, dim), packed as in the file; starts on a
                                        ///< 256-byte boundary
    cuda::DeviceBuffer<float> norms;    ///< (rows) fl32 of the stored norm
};

/// Norms as the rungs use them.
std::vector<float> float_norms(const format::Model& model);

}  // namespace gloved::kernels::ladder
