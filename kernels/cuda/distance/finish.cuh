// The distance from a canonical sum, for all rungs.
#pragma once

#include "kernels/distance/canonical.hpp"

namespace gloved::kernels::cuda {

/// distance_from_sum, by instructions that no flag changes.
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
