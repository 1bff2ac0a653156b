// The score of every rung: a cosine in float32, and how far it can be from the canonical one.
//
// Let u = 2^-24, n = dim, |q| the scaled query's norm (1 <= |q| < 2) and |x| a row's norm with
// 2^-60 <= |x| <= 2^60. A rung computes d = fl32(Σ q_i x_i) in an order of its own, fused or not,
// and from it
//
//     score = clamp(fl32(d / fl32(q' x')))          with q' = fl32(|q|), x' = fl32(|x|).
//
// Claim: |score − canonical score| <= 1.01 (n + 4) u + 3 u.
//
//  1. Each product passes through at most n roundings (its own and n − 1 additions; fused
//  operations
//     round less often), in any order of summation. So |d − q·x| <= γ Σ|q_i x_i| + t with γ = n u /
//     (1 − n u) (Higham, «Accuracy and Stability of Numerical Algorithms», §3.1), and Σ|q_i x_i| <=
//     |q| |x| by Cauchy–Schwarz. Nothing overflows: every partial sum is at most (1 + γ) |q| |x| <
//     2^62. t is what underflow adds: at most 2^-149 for each product (sums of float32 that are
//     subnormal are exact), in all n 2^-149 (1 + γ) <= n 2^-88 |q| |x|.
//  2. Scaling the query by a power of two is exact but for elements that become subnormal: each
//     loses at most 2^-150, in all √n 2^-150 |x|: below n 2^-149 |q| |x|.
//  3. Everything in float64 (norms, division, the canonical score itself) is off by less than (4 n
//  +
//     20) 2^-53 altogether. For n <= 4096, γ <= 1.00025 n u, and 1 to 3 are below 1.00025 n u + 2 n
//     2^-88 + (4 n + 20) 2^-53 < 1.01 (n + 4) u, with more than 2 u to spare.
//  4. q', x', their product (below 2^62) and the quotient are rounded once each, none of the first
//     three is subnormal, and the quotient adds at most 2^-150 where it is. So score before
//     clamping is d / (|q| |x|) times a factor between (1 − u) / (1 + u)^3 and (1 + u) / (1 − u)^3,
//     that is within 4.001 u of 1. Since |d / (|q| |x|)| < 1.001, this moves it by less than 4.01
//     u: 2.01 u more than the spare 2 u.
//  5. Both scores are clamped to [-1, 1], which moves no two numbers apart.
//
// A zero row has d = ±0 and scores exactly 0. Rows of other norms are outside the claim; their
// score is still a number in [-1, 1], so that a selection meets no NaN.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/canonical.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {

/// The bound of the claim above. dim <= 4096.
double ladder_score_bound(std::size_t dim);

/// Writes `query` times the power of two that the claim asks for to `scaled` (dim floats) and
/// returns q'.
float scale_query(const QueryVector& query, std::span<float> scaled);

/// `row_norm` is fl32 of the stored norm: 0 only for a zero row, since float32 norms start at
/// 2^-149, infinity beyond float32.
GLOVED_HOST_DEVICE inline float float_score(float dot, float query_norm, float row_norm) {
    if (row_norm == 0.0F) return 0.0F;
    const float score = dot / (query_norm * row_norm);
    // In this order NaN (of a dot product that overflows) becomes -1.
    return score >= 1.0F ? 1.0F : score > -1.0F ? score : -1.0F;
}

}  // namespace gloved::kernels::ladder
