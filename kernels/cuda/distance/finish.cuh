// Converts a canonical sum to a distance on a GPU.
#pragma once

#include "kernels/distance/canonical.hpp"

namespace gloved::kernels::cuda {

/// As distance_from_sum (kernels/distance/canonical.hpp), by instructions that no compiler flag
/// changes.
__device__ inline float finish(distance::Metric metric, float sum) {
    switch (metric) {
        case distance::Metric::sqeuclidean:
            break;
        case distance::Metric::euclidean:
            return __fsqrt_rn(sum);
        case distance::Metric::cosine:
            return __fmul_rn(0.5F, sum);
    }
    return sum;
}

}  // namespace gloved::kernels::cuda
