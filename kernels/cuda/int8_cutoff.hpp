// What the sum D = Σ c Q of a row's int8 codes c and a query's digits Q must reach for the row to
// be a survivor, and what it says about the row's score.
//
// The inequality and the rounding of every step are in docs/certified-search.md; § numbers and
// symbols here are those of that page. Compiled for both sides with the flags of canonical.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {

/// Projection and residual of a row's int8 codes, in units of levels (§8).
struct Int8Bounds {
    float projection = 0;  ///< P⁻: rounded down
    float residual = 0;    ///< H⁺: rounded up
};

/// Computes Int8Bounds of a row x with codes c. `product`: Σ x c in float64 (each product exact,
/// summed in any order); `squares`: Σ c²; `norm`: the row's. A damaged row, whose product is NaN,
/// gets bounds that rule it out nowhere and make no threshold.
GLOVED_HOST_DEVICE inline Int8Bounds int8_bounds(double product, double squares, double norm) {
    // A projection is never longer than the codes, whatever norm a damaged model stores.
    const double projection = product >= 0 ? fmin(product / norm, sqrt(squares)) : 0;
    const double left = squares - projection * projection;
    const double residual = sqrt((left > 0 ? left : 0) + 8e-12 * squares);
    return {static_cast<float>(projection * (1 - 0x1p-20)),
            static_cast<float>(residual * (1 + 0x1p-20))};
}

/// What the sum of a row's int8 codes must reach; see int8_rejects.
struct Int8Cutoff {
    double of_projection = 0;
    double of_residual = 0;
    double scale = 0;
};

/// The int8 cutoff that every row with a canonical score of `threshold` or more reaches; the query
/// has two-byte digits (§8).
GLOVED_HOST_DEVICE inline Int8Cutoff int8_cutoff(const planes::DigitFacts& digits, double threshold,
                                                 std::size_t dim) {
    const double cosine = threshold - planes::score_slack(dim);
    if (!(cosine >= 0)) return {-HUGE_VAL, HUGE_VAL, digits.scale};
    if (cosine >= 1) return {HUGE_VAL, 0, digits.scale};
    const double sine = sqrt((1 - cosine) * (1 + cosine)) * (1 + 0x1p-40);
    const double remainder = digits.remainder + 1e-9;
    return {cosine - remainder * (1 + 0x1p-18), sine + remainder, digits.scale};
}

/// Whether a row is ruled out: its codes c and the query's digits Q have `sum`, D = Σ c Q, which
/// does not reach the cutoff (§8).
GLOVED_HOST_DEVICE inline bool int8_rejects(std::int32_t sum, const Int8Bounds& row,
                                            const Int8Cutoff& cutoff) {
    return cutoff.scale * sum <
           cutoff.of_projection * row.projection - cutoff.of_residual * row.residual;
}

/// The smallest and the largest Int8Bounds of some rows.
struct Int8Range {
    float min_projection = 0;  ///< P_min
    float max_projection = 0;  ///< P_max
    float max_residual = 0;    ///< H_max
};

/// From what sum of int8 codes and one-byte digits on a row is a survivor; see int8_min_sum.
struct Int8SumCutoff {
    float of_projection;  ///< α
    float of_residual;    ///< β
    float slack;          ///< η: covers the rounding of int8_min_sum (§9)
};

/// Greater than every |D| of int8 codes and one-byte digits: 127 · 127 · 4096 is below 2^27.
inline constexpr float kBeyondInt8Sums = 0x1p30F;

/// The cutoff that every row with a canonical score of `threshold` or more reaches; the query has
/// one-byte digits (§9).
GLOVED_HOST_DEVICE inline Int8SumCutoff int8_sum_cutoff(const planes::DigitFacts& digits,
                                                        double threshold, std::size_t dim) {
    const Int8Cutoff cutoff = int8_cutoff(digits, threshold, dim);
    if (cutoff.of_projection == -HUGE_VAL) return {0, 0, kBeyondInt8Sums};
    if (cutoff.of_projection == HUGE_VAL) return {0, 0, -kBeyondInt8Sums};
    const double of_projection = cutoff.of_projection / cutoff.scale;
    const double of_residual = cutoff.of_residual / cutoff.scale;
    const double largest = (fabs(of_projection) + of_residual) * planes::kOneByteDigit *
                           sqrt(static_cast<double>(dim));
    return {static_cast<float>(of_projection), static_cast<float>(of_residual),
            static_cast<float>(8 * kHalfUlp * largest)};
}

/// The sum D below which every row with bounds in this range is ruled out (§9).
GLOVED_HOST_DEVICE inline std::int32_t int8_min_sum(const Int8SumCutoff& cutoff,
                                                    const Int8Range& rows) {
    const float projection = cutoff.of_projection < 0 ? rows.max_projection : rows.min_projection;
    const float of_residual = fmaf(-cutoff.of_residual, rows.max_residual, -cutoff.slack);
    return static_cast<std::int32_t>(floorf(fmaf(cutoff.of_projection, projection, of_residual)));
}

/// Lower bound on the canonical score of a row with this sum D and with bounds in this range; the
/// query has one-byte digits (§9). -infinity if it would not be above 0.
GLOVED_HOST_DEVICE inline double int8_lower(std::int32_t sum, const Int8Range& rows,
                                            const planes::DigitFacts& digits, std::size_t dim) {
    const double min_projection = rows.min_projection;
    const double max_projection = rows.max_projection * (1 + 0x1p-18);
    const double residual = rows.max_residual;
    const double max_length = sqrt(max_projection * max_projection + residual * residual);
    const double to_code = digits.scale * sum / max_length - (digits.remainder + 1e-9);
    if (!(to_code >= 0)) return -HUGE_VAL;
    const double left = (1 - to_code) * (1 + to_code);
    const double across = sqrt(left > 0 ? left : 0);
    const double length = sqrt(min_projection * min_projection + residual * residual);
    const double lower = (to_code * min_projection - across * residual) / length -
                         (planes::score_slack(dim) + 1e-12);
    return lower > 0 ? lower : -HUGE_VAL;
}

}  // namespace gloved::kernels::cuda
