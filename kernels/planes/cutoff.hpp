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
/// The largest stored projection or residual. They are stored in units of the top level, times
/// √dim / kUnits (§3).
inline constexpr double kUnits = 65535.0;

/// A stored projection or residual differs from the exact one by less than this many units, to the
/// safe side (§3).
inline constexpr double kStoredWithin = 1.5;

/// The unit of stored projections and residuals.
GLOVED_HOST_DEVICE inline double unit_of(std::size_t dim, int top_level = kTopLevel) {
    return top_level * sqrt(static_cast<double>(dim)) / kUnits;
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
    const double to_sum = unit_of(dim, top_level) * 0.5 / digits.scale;
    // |c| is at most the sum of its two parts. The true projection is a little longer than the
    // stored one.
    const double of_projection = (cosine - digits.remainder) * to_sum;
    const double of_residual = (sine + digits.remainder) * to_sum;
    double constant = 0.5 * top_level * digits.sum - kStoredWithin * digits.remainder * to_sum;
    const double largest =
        top_level * digits.size + kUnits * (fabs(of_projection) + of_residual) + fabs(constant);
    constant -= 16 * kHalfUlp * largest;
    return {static_cast<float>(of_projection), static_cast<float>(of_residual),
            static_cast<float>(constant)};
}

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
GLOVED_HOST_DEVICE inline Int8Cutoff int8_cutoff(const DigitFacts& digits, double threshold,
                                                 std::size_t dim) {
    const double cosine = threshold - score_slack(dim);
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
GLOVED_HOST_DEVICE inline Int8SumCutoff int8_sum_cutoff(const DigitFacts& digits, double threshold,
                                                        std::size_t dim) {
    const Int8Cutoff cutoff = int8_cutoff(digits, threshold, dim);
    if (cutoff.of_projection == -HUGE_VAL) return {0, 0, kBeyondInt8Sums};
    if (cutoff.of_projection == HUGE_VAL) return {0, 0, -kBeyondInt8Sums};
    const double of_projection = cutoff.of_projection / cutoff.scale;
    const double of_residual = cutoff.of_residual / cutoff.scale;
    const double largest =
        (fabs(of_projection) + of_residual) * kOneByteDigit * sqrt(static_cast<double>(dim));
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
                                            const DigitFacts& digits, std::size_t dim) {
    const double min_projection = rows.min_projection;
    const double max_projection = rows.max_projection * (1 + 0x1p-18);
    const double residual = rows.max_residual;
    const double max_length = sqrt(max_projection * max_projection + residual * residual);
    const double to_code = digits.scale * sum / max_length - (digits.remainder + 1e-9);
    if (!(to_code >= 0)) return -HUGE_VAL;
    const double left = (1 - to_code) * (1 + to_code);
    const double across = sqrt(left > 0 ? left : 0);
    const double length = sqrt(min_projection * min_projection + residual * residual);
    const double lower =
        (to_code * min_projection - across * residual) / length - (score_slack(dim) + 1e-12);
    return lower > 0 ? lower : -HUGE_VAL;
}

/// Lower bound on the canonical score of a row with this sum D′ and these stored bounds (§10).
/// -infinity if it would not be above 0.
GLOVED_HOST_DEVICE inline double plane_lower(const DigitFacts& digits, std::int32_t sum,
                                             double projection, double residual, std::size_t dim,
                                             int top_level) {
    const double product = 2.0 * sum - top_level * digits.sum;
    const double length = sqrt(projection * projection + residual * residual);
    const double to_code =
        product * (digits.scale / unit_of(dim, top_level)) / (length + kStoredWithin) -
        (digits.remainder + 1e-9);
    if (!(to_code >= 0)) return -HUGE_VAL;
    const double left = (1 - to_code) * (1 + to_code);
    const double across = sqrt(left > 0 ? left : 0);
    const double lower =
        (to_code * projection - across * residual) / length - (score_slack(dim) + 1e-12);
    return lower > 0 ? lower : -HUGE_VAL;
}

/// What `row_upper` needs of a query.
struct UpperFacts {
    std::int32_t centre = 0;  ///< L Σ Q
    float per_unit = 0;       ///< t / w
    float remainder = 0;      ///< |r|, rounded up
};

/// Computes UpperFacts.
inline UpperFacts upper_facts(const DigitFacts& digits, std::size_t dim) {
    return {static_cast<std::int32_t>(kTopLevel * digits.sum),
            static_cast<float>(digits.scale / unit_of(dim)),
            static_cast<float>(digits.remainder * (1 + 0x1p-20))};
}

/// Slack that covers all float32 rounding in row_upper, with much to spare (§7).
inline constexpr float kUpperSlack = 0x1p-16F;

/// Upper bound on a row's score, for passes that have no threshold yet; at most 1 + kUpperSlack
/// (§7). `sum`: D′; projection and residual, as stored, are not both 0. Sets `estimate` to about
/// the row's cosine, which proves nothing.
GLOVED_HOST_DEVICE inline float row_upper(std::int32_t sum, float projection, float residual,
                                          const UpperFacts& facts, float& estimate) {
    // D = 2 D′ − L Σ Q, in an order that cannot overflow.
    const auto product = static_cast<float>((sum - facts.centre) + sum);
    const float inverse = 1.0F / sqrtf(projection * projection + residual * residual);
    // The cosine of the angle between row and code, or of a larger angle.
    const float cosine = projection * inverse;
    const float sine = residual * inverse;
    const float to_code = product * facts.per_unit * inverse;
    estimate = to_code * cosine;
    // 1.51 is enough; the rest covers the float32 rounding of to_code.
    const float max_to_code = to_code + (fabsf(to_code) * 2.2F * inverse + facts.remainder);
    if (!(max_to_code < cosine)) return 1.0F + kUpperSlack;
    const float across = (1.0F - max_to_code) * (1.0F + max_to_code);
    return max_to_code * cosine + sqrtf(across > 0.0F ? across : 0.0F) * sine + kUpperSlack;
}

}  // namespace gloved::kernels::planes
