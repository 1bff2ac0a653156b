// How far a float32 first pass can be from the canonical score, and how queries are scaled so that the bound holds.
//
// Let u = 2^-24 and n = dim. The pass computes d = fl32(Σ q_i x_i) in some order, and from it, in float64,
//
//     estimate = d / (|q| · |x|)          with |x| the stored norm, |q| the scaled query's canonical norm.
//
// Claim: |estimate − canonical score before clamping| <= score_error_bound(n), if 1 <= |q| < 2 and
// 2^-60 <= |x| <= 2^60 (kSmallestNorm, kLargestNorm).
//
//  1. Each product passes through at most n roundings (its own and n − 1 additions; fused operations round less often, and
//     the zeros that fill a last vector add nothing), in any order of summation. So |d − q·x| <= γ Σ|q_i x_i| + t with
//     γ = n u / (1 − n u) (Higham, «Accuracy and Stability of Numerical Algorithms», §3.1), and Σ|q_i x_i| <= |q| |x| by
//     Cauchy–Schwarz. Nothing overflows: every partial sum is at most (1 + γ) |q| |x| < 2^62. t is what underflow adds:
//     at most 2^-149 for each product (sums of float32 that are subnormal are exact), in all
//     n 2^-149 (1 + γ) <= n 2^-88 |q| |x|.
//  2. Scaling the query by a power of two is exact but for elements that become subnormal: each loses at most 2^-150, in
//     all √n 2^-150 |x|: below n 2^-149 |q| |x|.
//  3. Everything in float64 (norms, division, the canonical score itself) is off by less than (4 n + 20) 2^-53 altogether.
//
// For n <= 4096, γ <= 1.00025 n u. The sum of 1–3 is then below 1.00025 n u + 2 n 2^-88 + (4 n + 20) 2^-53 <
// 1.01 (n + 4) u, with more than 2 u to spare. That is the bound. Clamping moves no two scores apart and every true
// cosine is within [-1, 1], so that the bound holds for clamped scores too: a row whose estimate lies 2 · bound below k
// others' is below all of them even where those are clamped to 1, since the spare 2 u exceeds what rounding can lift a
// cosine above 1.
#pragma once

#include <cmath>
#include <cstddef>

namespace gloved::kernels::cpu {

inline constexpr double kHalfUlp = 0x1p-24;  // u
inline constexpr double kSmallestNorm = 0x1p-60;
inline constexpr double kLargestNorm = 0x1p60;

/// The bound of the claim above. dim <= 4096.
inline double score_error_bound(std::size_t dim) { return 1.01 * (static_cast<double>(dim) + 4.0) * kHalfUlp; }

/// Whether the claim covers a row of that norm; others (zero, tiny, huge, damaged) are scored canonically at once.
inline bool bound_covers(double norm) { return norm >= kSmallestNorm && norm <= kLargestNorm; }

/// The cut that a dot product is compared with in float32: if a row's estimate + bound reaches `threshold`, then
/// d >= fl32(cut · fl32(|x|)). Rounding the cut, the norm and their product moves the right side by less than 3.01 u
/// |q| |x| (thresholds are at most 1 + bound in size), which the 4 u pay for. An infinite threshold gives an infinite
/// cut.
inline float float_cut(double threshold, double bound, double query_norm) {
    return static_cast<float>((threshold - bound - 4.0 * kHalfUlp) * query_norm);
}

/// The power of two e with 1 <= |q| 2^e < 2 for a norm that is finite and not 0.
inline int scale_exponent(double norm) { return -std::ilogb(norm); }

}  // namespace gloved::kernels::cpu
