// The definition of a distance, the same for all engines, and the bound on its error.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

inline constexpr std::size_t kBlock = 512;
inline constexpr std::size_t kMaxDim = std::size_t{1} << 21;
inline constexpr double kMaxNorm = 0x1p62;

/// The canonical sum of two rows of `dim` float32. Correct but slow on processors without fused
/// operations.
inline float canonical_sum(const float* x, const float* y, std::size_t dim) {
    float sum = 0;
    for (std::size_t block = 0; block < dim; block += kBlock) {
        const std::size_t end = std::min(dim, block + kBlock);
        float acc = 0;
        for (std::size_t k = block; k < end; ++k) {
            const float d = x[k] - y[k];
            acc = std::fma(d, d, acc);
        }
        sum = block == 0 ? acc : sum + acc;
    }
    return sum;
}

/// Converts a canonical sum to the metric's distance.
inline float distance_from_sum(Metric metric, float sum) {
    switch (metric) {
        case Metric::sqeuclidean:
            break;
        case Metric::euclidean:
            return std::sqrt(sum);
        case Metric::cosine:
            return 0.5F * sum;
    }
    return sum;
}

/// See the claim above.
inline double relative_bound(std::size_t dim) {
    const std::size_t roundings = std::min(dim, kBlock) + (dim + kBlock - 1) / kBlock + 3;
    return static_cast<double>(roundings) * 0x1p-24;
}
inline double underflow_bound(std::size_t dim) { return static_cast<double>(dim) * 0x1p-149; }

}  // namespace gloved::kernels::distance
