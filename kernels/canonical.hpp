// The canonical arithmetic: the definition of a score to the last bit, which engines, tools and GPU
// code compile. So all of them give the same bytes.
//
// Product of two float32: exact in float64 (24 + 24 <= 53 bits). Eight partial sums that start at
// +0.0, element i into lane i mod 8, combined as ((l0+l4)+(l2+l6)) + ((l1+l5)+(l3+l7)). No
// operation may be contracted: this header is only to be compiled with -ffp-contract=off (nvcc:
// --fmad=false), and never with fast-math.
#pragma once

#include <cmath>
#include <cstddef>

#ifdef __CUDACC__
#define GLOVED_HOST_DEVICE __host__ __device__
#else
#define GLOVED_HOST_DEVICE
#endif

namespace gloved::kernels {

/// Number of partial sums of a dot product.
inline constexpr std::size_t kCanonicalLanes = 8;

/// Adds the partial sums in their fixed order.
GLOVED_HOST_DEVICE inline double combine_lanes(const double lane[kCanonicalLanes]) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/// Canonical dot product of two float32 vectors of `dim` elements.
GLOVED_HOST_DEVICE inline double canonical_dot(const float* a, const float* b, std::size_t dim) {
    double lane[kCanonicalLanes] = {};
    std::size_t i = 0;
    for (; i + kCanonicalLanes <= dim; i += kCanonicalLanes) {
        for (std::size_t l = 0; l < kCanonicalLanes; ++l) {
            lane[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
        }
    }
    for (std::size_t l = 0; i + l < dim; ++l)
        lane[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
    return combine_lanes(lane);
}

/// Canonical squared Euclidean distance: each difference and each square is rounded to float64, and
/// squares are added in the lanes of the dot product.
GLOVED_HOST_DEVICE inline double canonical_squared_distance(const float* a, const float* b,
                                                            std::size_t dim) {
    double lane[kCanonicalLanes] = {};
    std::size_t i = 0;
    for (; i + kCanonicalLanes <= dim; i += kCanonicalLanes) {
        for (std::size_t l = 0; l < kCanonicalLanes; ++l) {
            const double difference = static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]);
            lane[l] += difference * difference;
        }
    }
    for (std::size_t l = 0; i + l < dim; ++l) {
        const double difference = static_cast<double>(a[i + l]) - static_cast<double>(b[i + l]);
        lane[l] += difference * difference;
    }
    return combine_lanes(lane);
}

/// Canonical norm, the length of a vector: the square root of its canonical dot product with
/// itself.
GLOVED_HOST_DEVICE inline double canonical_norm(const float* a, std::size_t dim) {
    return std::sqrt(canonical_dot(a, a, dim));
}

/// The cosine from a canonical dot product and both norms: 0 if the row's norm is 0, clamped to
/// [-1, 1]. `query_norm` must not be 0.
GLOVED_HOST_DEVICE inline double score_from_dot(double dot, double query_norm, double row_norm) {
    if (row_norm == 0.0) return 0.0;
    const double score = dot / (query_norm * row_norm);
    return score > 1.0 ? 1.0 : score < -1.0 ? -1.0 : score;
}

/// The canonical score: the cosine of a query and a row, from their vectors of `dim` float32 and
/// their canonical norms.
GLOVED_HOST_DEVICE inline double canonical_score(const float* query, double query_norm,
                                                 const float* row, double row_norm,
                                                 std::size_t dim) {
    return score_from_dot(canonical_dot(query, row, dim), query_norm, row_norm);
}

/// The factor of one cosine in a 3CosMul score (kernels/engine.hpp, CosMul).
GLOVED_HOST_DEVICE inline double cosmul_part(double cosine) { return (1.0 + cosine) / 2.0; }

/// The 3CosMul score from the product of the positives' factors and that of the negatives' factors.
/// Each product starts at 1.0 and takes the factors in the order of the arguments.
GLOVED_HOST_DEVICE inline double cosmul_score(double above, double below) {
    return above / (below + 1e-6);
}

}  // namespace gloved::kernels
