// The definition of a distance, the same for all engines to the last bit, and the proof of a bound
// on its error.
//
//     sum = 0
//     for each block of kBlock = 512 components, in order:
//         acc = 0;  for k in the block, in order:  d = fl(x[k] − y[k]);  acc = fma(d, d, acc)
//         sum = first block ? acc : fl(sum + acc)
//     sqeuclidean: sum
//     euclidean: sqrt(sum), correctly rounded
//     cosine: 0.5 · sum, for points of norm 1
//
// All operations are in float32. Exchanging x and y changes only the sign of d, and d is 0 if they
// are equal. So the matrix of distances is symmetric to the last bit, and its diagonal is +0.
// Blocks keep the error of long rows small.
//
// Claim: let u = 2^-24 and s = Σ (x[k] − y[k])² of the float32 points. If dim <= kMaxDim and all
// norms are at most kMaxNorm,
//
//     |sum − s| <= relative_bound(dim) · s + underflow_bound(dim),
//     relative_bound = (min(dim, 512) + ceil(dim / 512) + 3) u,   underflow_bound = dim · 2^-149.
//
//  1. d = (x − y)(1 + δ) with |δ| <= u, for tiny differences too, since a difference of two float32
//     that is subnormal is exact. So d² has two factors (1 + δ), however near the points are. The
//     form |x|² + |y|² − 2xy, which a matrix product computes, has no such bound: it cancels.
//  2. d² goes through at most min(dim, 512) fused operations of its block, each of which rounds
//     once, and through at most ceil(dim / 512) − 1 additions of blocks. With 1 that makes n =
//     min(dim, 512) + ceil(dim / 512) + 1 factors (1 + δ). All terms are positive, so that |sum −
//     s| <= γ s with γ = n u / (1 − n u) (Higham, «Accuracy and Stability of Numerical Algorithms»,
//     §3.1), and γ <= (n + 2) u as long as n² u + 2 n u <= 2, that is n <= 5790: dim <= 2,701,824.
//  3. A fused operation whose result is subnormal may be off by 2^-150 instead. There are dim of
//     them, and later operations raise that by a factor of 1 + γ < 2. Sums of subnormals are exact.
//  4. Nothing overflows: s <= (|x| + |y|)² <= 2^126.
//
// euclidean: the root nearly halves a relative error, and its own rounding adds u. All is within
// relative_bound · sqrt(s) + sqrt(underflow_bound), as relative_bound >= 5 u. cosine: halving is
// exact, except for subnormals, where it adds 2^-150.
//
// Rounding other input to float32 points (prepare.hpp) adds to this. A point p becomes p + e with
// |e| <= u |p| (1 + 2^-28). So the distance D = |p − q| of two rows moves by at most about ε =
// u (|p| + |q|), and its square by 2 D ε + ε².
//  - float64 input, whose points are measured from the mean of each column: |p| is the row's
//    distance from the mean row.
//  - cosine: |p| = 1 and ε = 2 u. Half the square moves by at most 2 u D + 2 u² with D = sqrt(2 ·
//    distance): 4 u for opposite rows, less for nearer ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

inline constexpr std::size_t kBlock = 512;
/// Limits on the number of columns and on a point's norm, for which the claim holds.
inline constexpr std::size_t kMaxDim = std::size_t{1} << 21;
inline constexpr double kMaxNorm = 0x1p62;

/// The sum above for two points of `dim` float32. Correct but slow on processors without fused
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

/// The two bounds of the claim above.
inline double relative_bound(std::size_t dim) {
    const std::size_t roundings = std::min(dim, kBlock) + (dim + kBlock - 1) / kBlock + 3;
    return static_cast<double>(roundings) * 0x1p-24;
}
inline double underflow_bound(std::size_t dim) { return static_cast<double>(dim) * 0x1p-149; }

}  // namespace gloved::kernels::distance
