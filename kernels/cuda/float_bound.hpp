// Proven bounds on how far estimates in float32 can be from canonical scores. The cuda engine skips
// rows by them.
//
// Let u = 2^-24 and n = dim. A pass computes d = fl32(Σ q_i x_i) in some order, and from it, in
// float64,
//
//     estimate = d / (|q| · |x|)
//
// with |x| the stored norm and |q| the scaled query's canonical norm.
//
// Claim: |estimate − canonical score before clamping| <= score_error_bound(n), if 1 <= |q| < 2 and
// 2^-60 <= |x| <= 2^60 (kMinNorm, kMaxNorm).
//
//  1. Each product passes through at most n roundings (its own and n − 1 additions; fused
//     operations round less often, and the zeros that fill a last vector add nothing), in any order
//     of summation. So |d − q·x| <= γ Σ|q_i x_i| + t with γ = n u / (1 − n u) (Higham, «Accuracy
//     and Stability of Numerical Algorithms», §3.1), and Σ|q_i x_i| <= |q| |x| by Cauchy–Schwarz.
//     Nothing overflows: every partial sum is at most (1 + γ) |q| |x| < 2^62. t is what underflow
//     adds: at most 2^-149 for each product (sums of float32 that are subnormal are exact), in all
//     n 2^-149 (1 + γ) <= n 2^-88 |q| |x|.
//  2. Scaling the query by a power of two is exact but for elements that become subnormal: each
//     loses at most 2^-150, in all √n 2^-150 |x|: below n 2^-149 |q| |x|.
//  3. Everything in float64 (norms, division, the canonical score itself) is off by less than (4 n
//     + 20) 2^-53 altogether.
//
// For n <= 4096, γ <= 1.00025 n u. The sum of 1–3 is then below 1.00025 n u + 2 n 2^-88 + (4 n +
// 20) 2^-53 < 1.01 (n + 4) u, with more than 2 u to spare. That is the bound. Clamping moves no two
// scores apart and every true cosine is within [-1, 1], so that the bound holds for clamped scores
// too: a row whose estimate lies 2 · bound below k others' is below all of them even where those
// are clamped to 1, since the spare 2 u exceeds what rounding can lift a cosine above 1.
#pragma once

#include <cstddef>

#include "kernels/bounds.hpp"

namespace gloved::kernels {

/// The bound of the claim above. dim <= 4096.
inline double score_error_bound(std::size_t dim) {
    return 1.01 * (static_cast<double>(dim) + 4.0) * kHalfUlp;
}

/// The cuda engine's float32 pass: v_i = fl32(q_i / |q|), d = fl32(Σ v_i x_i) in some order,
/// estimate = fl32(d · fl32(1 / |x|)). The rounding of v adds u |v||x| (and underflow of elements n
/// 2^-150 |x|), that of the inverse and of the last product 2 u, to step 1 above: (n + 3) u and
/// second-order terms. The bound is the claim's with n + 4 more, for any query norm.
inline double device_error_bound(std::size_t dim) { return score_error_bound(dim + 4); }

}  // namespace gloved::kernels
