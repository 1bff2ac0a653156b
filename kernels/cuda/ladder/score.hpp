// The score of every rung: a cosine in float32, and how far it can be from the canonical one.
//
// Let u = 2^-24, n = dim, |q| the scaled query's norm (1 <= |q| < 2) and |x| a row's norm with
// 2^-60 <= |x| <= 2^60. A rung computes d = fl32(Σ q_i x_i) in an order of its own, fused or not,
// and from it
//
//     score = clamp(fl32(d / fl32(q' x')))          with q' = fl32(|q|), x' = fl32(|x|).
//
// Claim: |score − canonical score| <= score_error_bound(n) + 3 u.
//
//  1. float_bound.hpp: d / (|q| |x|), without further rounding, is within score_error_bound(n) of
//     the canonical score before clamping, with more than 2 u to spare, whatever the order of
//     summation: a product passes through at most n roundings.
//  2. q', x', their product (below 2^62) and the quotient are rounded once each, none of the first
//     three is subnormal, and the quotient adds at most 2^-150 where it is. So score before
//     clamping is d / (|q| |x|) times a factor between (1 − u) / (1 + u)^3 and (1 + u) / (1 − u)^3,
//     that is within 4.001 u of 1.
//  3. For n <= 4096, |d / (|q| |x|)| < 1.001, so that 2 moves it by less than 4.01 u. With 1: less
//     than score_error_bound(n) + 2.01 u.
//  4. Both scores are clamped to [-1, 1], which moves no two numbers apart.
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
