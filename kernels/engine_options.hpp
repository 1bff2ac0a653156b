// Options of an engine: threads, devices, planes, memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gloved::kernels {

/// What an engine may be told at its making.
struct EngineOptions {
    unsigned threads = 0;  ///< 0: one a processor that the process may use
    /// Reads a 4-bit plane of the model first, and only the vectors that it lets through: faster,
    /// for an eighth more memory where dim is 300. Answers are the same.
    bool planes = true;
    /// cuda: by the plane even where a small model's vectors are read sooner. For tests.
    bool planes_always = false;
    std::string simd = {};  ///< cpu: instruction set by name (see simd_names); empty: the best that
                            ///< the processor has
    /// cuda: devices by number; rows are split evenly between them. One that is named twice holds
    /// two parts.
    std::vector<int> devices = {0};
    /// cuda: of each device's memory, at most so much is used; 0: as much as is free. Where the
    /// model does not fit, and planes are asked for, devices hold its plane alone and read the few
    /// vectors that matter from page-locked host memory.
    std::size_t gpu_memory_bytes = 0;
    bool all_devices = false;  ///< cuda: every device there is, whatever `devices` says
    /// cuda: whether the mapped model is page-locked while it is copied. Where the driver refuses,
    /// it is copied all the same, slower.
    bool pin = true;
    bool time_device = false;  ///< cuda: fill in Certificate::device_ms, at the price of some
                               ///< microseconds a pass
    /// Told about long work and its parts, one line each; may be empty. Called on the thread that
    /// makes the engine.
    std::function<void(const std::string&)> log = {};
};

}  // namespace gloved::kernels
