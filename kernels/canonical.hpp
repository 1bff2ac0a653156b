// The canonical arithmetic: the one definition of a score, shared by every engine, the tools and
// device code.
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

inline constexpr std::size_t kCanonicalLanes = 8;

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

/// Canonical squared Euclidean distance: each difference rounded to float64, each square rounded,
/// the lanes of the dot product.
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

/// Square root of the canonical sum of squares.
GLOVED_HOST_DEVICE inline double canonical_norm(const float* a, std::size_t dim) {
    return std::sqrt(canonical_dot(a, a, dim));
}

/// The score from a canonical dot product and both norms: 0 where the row's norm is 0, clamped to
/// [-1, 1]. `query_norm` is not 0.
GLOVED_HOST_DEVICE inline double score_from_dot(double dot, double query_norm, double row_norm) {
    if (row_norm == 0.0) return 0.0;
    const double score = dot / (query_norm * row_norm);
    return score > 1.0 ? 1.0 : score < -1.0 ? -1.0 : score;
}

GLOVED_HOST_DEVICE inline double canonical_score(const float* query, double query_norm,
                                                 const float* row, double row_norm,
                                                 std::size_t dim) {
    return score_from_dot(canonical_dot(query, row, dim), query_norm, row_norm);
}

/// One factor of 3CosMul.
GLOVED_HOST_DEVICE inline double cosmul_part(double cosine) { return (1.0 + cosine) / 2.0; }

/// 3CosMul from the products of both sides' factors, each taken in argument order from 1.0.
GLOVED_HOST_DEVICE inline double cosmul_score(double above, double below) {
    return above / (below + 1e-6);
}

}  // namespace gloved::kernels
