// The host's clock, as all rungs read it.
#pragma once

#include <chrono>

namespace gloved::kernels::ladder {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace gloved::kernels::ladder
