// Cutoffs: what the sum D′ = Σ a Q of a row's codes a and a query's digits Q must reach for the row
// to be a survivor. CPU and GPU code share this header and compile it with the flags of
// canonical.hpp.
//
// The inequality and the rounding of every step are in docs/certified-search.md; § numbers and
// symbols here are those of that page.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"

namespace gloved::kernels::planes {

/// A code a in 0 … 15 stands for the level 2 a − 15: no level is 0, neighbours are 2 apart.
inline constexpr int kTopLevel = 15;
/// A code of the fine plane, in 0 … 127, stands for the level 2 a − 127 (§10).
inline constexpr int kFineTopLevel = 127;
/// The largest stored projection or residual. They are stored in steps of the top level, times
/// √dim / kStoredSteps (§3).
inline constexpr double kStoredSteps = 65535.0;

/// A stored projection or residual differs from the exact one by less than this many steps, to the
/// safe side (§3).
inline constexpr double kStoredWithin = 1.5;

/// The step of stored projections and residuals.
GLOVED_HOST_DEVICE inline double stored_step(std::size_t dim, int top_level = kTopLevel) {
    return top_level * sqrt(static_cast<double>(dim)) / kStoredSteps;
}

/// The largest digit of a query if digits have two signed bytes (128 high + low), and one.
inline constexpr int kTwoByteDigit = 127 * 128;
inline constexpr int kOneByteDigit = 127;

/// Facts about the integer digits Q of a query: its direction = t Q + r (§4).
struct DigitFacts {
    double scale = 0;      ///< t
    double remainder = 0;  ///< |r|, rounded up
    double sum = 0;        ///< Σ Q, exact
    double size = 0;       ///< Σ |Q|, exact
};

/// Length of a remainder from the sum of the squares of its components, rounded up by far more than
/// the error of float64 (§4).
GLOVED_HOST_DEVICE inline double remainder_bound(double squares) {
    return sqrt(squares) * (1 + 0x1p-40) + 0x1p-45;
}

/// A row may reach the threshold unless
///     float(D′) < p A − h B + C,
/// each operation rounded to float32, or fused (§5).
struct PlaneCutoff {
    float of_projection = 0;  ///< A
    float of_residual = 0;    ///< B
    float constant = 0;       ///< C
};

/// Bound on the rounding errors of all float64 operations of a cutoff and of a canonical score
/// (§5).
GLOVED_HOST_DEVICE inline double score_slack(std::size_t dim) {
    return 8.0 * (static_cast<double>(dim) + 8.0) * 0x1p-53;
}

/// The cutoff that every row with a canonical score of `threshold` or more reaches. If it could
/// prove nothing, for thresholds of 0 or less, all rows reach it.
GLOVED_HOST_DEVICE inline PlaneCutoff plane_cutoff(const DigitFacts& digits, double threshold,
                                                   std::size_t dim, int top_level = kTopLevel) {
    const double cosine = threshold - score_slack(dim);
    // The bound proves nothing then (§1).
    if (!(cosine >= 0)) return {0, 0, -HUGE_VALF};
    if (cosine >= 1) return {0, 0, HUGE_VALF};
    const double sine = sqrt((1 - cosine) * (1 + cosine)) * (1 + 0x1p-40);
    const double to_sum = stored_step(dim, top_level) * 0.5 / digits.scale;
    // |c| is at most the sum of its two parts. The true projection is a little longer than the
    // stored one.
    const double of_projection = (cosine - digits.remainder) * to_sum;
    const double of_residual = (sine + digits.remainder) * to_sum;
    double constant = 0.5 * top_level * digits.sum - kStoredWithin * digits.remainder * to_sum;
    const double largest = top_level * digits.size +
                           kStoredSteps * (fabs(of_projection) + of_residual) + fabs(constant);
    constant -= 16 * kHalfUlp * largest;
    return {static_cast<float>(of_projection), static_cast<float>(of_residual),
            static_cast<float>(constant)};
}

/// Lower bound on the canonical score of a row with this sum D′ and these stored bounds (§10).
/// -infinity if it would not be above 0.
GLOVED_HOST_DEVICE inline double plane_lower(const DigitFacts& digits, std::int32_t sum,
                                             double projection, double residual, std::size_t dim,
                                             int top_level) {
    const double product = 2.0 * sum - top_level * digits.sum;
    const double length = sqrt(projection * projection + residual * residual);
    const double to_code =
        product * (digits.scale / stored_step(dim, top_level)) / (length + kStoredWithin) -
        (digits.remainder + 1e-9);
    if (!(to_code >= 0)) return -HUGE_VAL;
    const double left = (1 - to_code) * (1 + to_code);
    const double across = sqrt(left > 0 ? left : 0);
    const double lower =
        (to_code * projection - across * residual) / length - (score_slack(dim) + 1e-12);
    return lower > 0 ? lower : -HUGE_VAL;
}

}  // namespace gloved::kernels::planes
