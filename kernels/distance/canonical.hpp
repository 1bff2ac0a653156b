// The one definition of a distance, so that all engines give the same bytes, and how far it is from
// the truth.
//
//     sum = 0
//     for each block of kBlock = 512 components, in order:
//         acc = 0;  for k in the block, in order:  d = fl(x[k] − y[k]);  acc = fma(d, d, acc)
//         sum = first block ? acc : fl(sum + acc)
//     sqeuclidean: sum
//     euclidean: sqrt(sum), correctly rounded
//     cosine: 0.5 · sum, the points being unit rows
//
// All in float32. d changes nothing but its sign when x and y are exchanged, and is 0 where they
// are equal: the matrix is symmetric bit for bit, and its diagonal is +0. Blocks keep the error of
// long rows small, and a processor that stores its sums between blocks computes what one does that
// keeps them in registers.
//
// Claim: let u = 2^-24 and s = Σ (x[k] − y[k])² of the float32 points. If dim <= kMaxDim and norms
// are at most kMaxNorm,
//
//     |sum − s| <= relative_bound(dim) · s + underflow_bound(dim),
//     relative_bound = (min(dim, 512) + ceil(dim / 512) + 3) u,   underflow_bound = dim · 2^-149.
//
//  1. d = (x − y)(1 + δ) with |δ| <= u. This holds for tiny differences too: a difference of two
//     float32 that is subnormal is exact. So d² carries two factors (1 + δ), and no digits cancel,
//     however near the points are: that is what |x|² + |y|² − 2xy, the way of a matrix product,
//     cannot say of itself.
//  2. d² goes through at most min(dim, 512) fused operations of its block, each of which rounds
//     once, and through at most ceil(dim / 512) − 1 additions of blocks. With 1 that makes n =
//     min(dim, 512) + ceil(dim / 512) + 1 factors (1 + δ). All terms are positive, so that |sum −
//     s| <= γ s with γ = n u / (1 − n u) (Higham, «Accuracy and Stability of Numerical Algorithms»,
//     §3.1), and γ <= (n + 2) u as long as n² u + 2 n u <= 2, that is n <= 5790: dim <= 2,701,824.
//  3. A fused operation whose result is subnormal may be off by 2^-150 instead. There are dim of
//     them, and later operations raise that by a factor of 1 + γ < 2. Sums of subnormals are exact.
//  4. Nothing overflows: s <= (|x| + |y|)² <= 2^126.
//
// euclidean: the root halves a relative error, nearly, and its own rounding adds u: all within
// relative_bound · sqrt(s) + sqrt(underflow_bound), as relative_bound >= 5 u. cosine: halving is
// exact, but for subnormals, where it adds 2^-150.
//
// What making float32 points of other input adds (prepare.hpp): a point p becomes p + e with |e| <=
// u |p| (1 + 2^-28). So the distance of two rows D = |p − q| moves by at most ε = u (|p| + |q|),
// nearly, and its square by 2 D ε + ε².
//  - float64 input, whose points are measured from the mean of each column: |p| is the row's
//    distance to the mean row.
//  - cosine: |p| = 1, ε = 2 u: half the square moves by at most 2 u D + 2 u², D = sqrt(2 ·
//    distance). That is 4 u at most, for opposite rows, and ever less for near ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

inline constexpr std::size_t kBlock = 512;
inline constexpr std::size_t kMaxDim = std::size_t{1} << 21;
inline constexpr double kMaxNorm = 0x1p62;

/// The canonical sum of two rows of `dim` float32. Slow where the processor has no fused operation,
/// and right all the same.
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

/// The distance that a canonical sum stands for.
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
