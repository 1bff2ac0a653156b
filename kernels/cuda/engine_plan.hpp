// Plans a cuda engine: on which devices it runs, which rows each device gets (its shard), and what
// it holds of them. Allocates nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/shard_buffers.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels::cuda {

/// Calls cudaGetDeviceCount, which sets `count`, and times it: the first call of a process starts
/// the driver. Returns the call's error.
cudaError_t count_devices(int& count);
/// Milliseconds that the longest count_devices took.
double driver_ms();

/// What plan_engine decides.
struct EnginePlan {
    /// A shard.
    struct Part {
        DeviceFacts device;
        RowRange rows;  ///< not empty; begins with a whole group of kGroupRows
        /// Device memory that building code tiles takes for a while.
        std::size_t tiles_scratch_bytes = 0;
    };
    std::vector<Part> parts;  ///< one for each shard
    Residency residency;      ///< of every shard
    double context_ms = 0;    ///< time spent on making contexts and loading kernels
};

/// Splits the rows of `model` evenly between the devices of `options`, and chooses the largest
/// Residency that fits on each of them. Errors: unavailable, if a device does not exist, is too old
/// or has too little memory; device.
Result<EnginePlan> plan_engine(const format::Model& model, const EngineOptions& options);

}  // namespace gloved::kernels::cuda
