// The norms for which the bounds on scores hold (docs/certified-search.md).
#pragma once

#include "kernels/canonical.hpp"

namespace gloved::kernels {

inline constexpr double kHalfUlp = 0x1p-24;  // of float32
inline constexpr double kMinNorm = 0x1p-60;
inline constexpr double kMaxNorm = 0x1p60;

/// Whether a row of this norm is covered. Engines compute the canonical score of other rows (zero,
/// tiny, huge, NaN) for every query.
GLOVED_HOST_DEVICE inline bool bound_covers(double norm) {
    return norm >= kMinNorm && norm <= kMaxNorm;
}

}  // namespace gloved::kernels
