// Whether there is a GPU for a test to run on. Tests that need one begin with
//
//     if (no_device()) GTEST_SKIP() << kNoDevice;
#pragma once

#include <cuda_runtime_api.h>

namespace gloved::tests {

inline constexpr const char* kNoDevice = "skipped: no device";

/// Whether the CUDA runtime finds no device: none there, no driver, or a driver too old for it.
inline bool no_device() {
    int count = 0;
    const bool counted = cudaGetDeviceCount(&count) == cudaSuccess;
    if (!counted) (void)cudaGetLastError();
    return !counted || count == 0;
}

}  // namespace gloved::tests
