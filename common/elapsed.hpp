// The time since a moment, as a number.
#pragma once

#include <chrono>

namespace gloved {

/// Seconds since `begun`.
inline double seconds_since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

/// Milliseconds since `begun`.
inline double ms_since(std::chrono::steady_clock::time_point begun) {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - begun).count();
}

}  // namespace gloved
