// An upper bound on a row's score from the sum D′ of its codes of 4 bits, in float32.
//
// The inequality is in docs/certified-search.md, and the rounding of every step in
// docs/certified-search-passes.md (§7); symbols here are those of these pages. Compiled for both
// sides with the flags of canonical.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/canonical.hpp"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {

/// What `row_upper` needs of a query.
struct UpperFacts {
    std::int32_t centre = 0;  ///< L Σ Q
    float per_unit = 0;       ///< t / w
    float remainder = 0;      ///< |r|, rounded up
};

/// Computes UpperFacts.
inline UpperFacts upper_facts(const planes::DigitFacts& digits, std::size_t dim) {
    return {static_cast<std::int32_t>(planes::kTopLevel * digits.sum),
            static_cast<float>(digits.scale / planes::stored_step(dim)),
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

}  // namespace gloved::kernels::cuda
