// Rounding to float32 as IEEE 754 does, for every double.
#pragma once

#include <limits>

namespace gloved::kernels {

/// The float32 nearest to `value`; infinite beyond float32's range, for which C++ leaves the
/// conversion undefined. NaN stays NaN.
constexpr float nearest_float(double value) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr double kRoundsToInfinity = 0x1.ffffffp127;  // half a unit above the largest
    if (value >= kRoundsToInfinity) return kInfinity;
    if (value <= -kRoundsToInfinity) return -kInfinity;
    if (value > double{kLargest}) return kLargest;
    if (value < -double{kLargest}) return -kLargest;
    return static_cast<float>(value);
}

}  // namespace gloved::kernels
