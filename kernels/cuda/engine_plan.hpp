// The plan of a cuda engine: which devices it runs on, which rows each takes, and what they hold of
// them. Nothing is allocated here.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels::cuda {

/// Calls cudaGetDeviceCount and times it: the first call of a process starts the driver.
cudaError_t count_devices(int& count);
/// Milliseconds that the longest count_devices took.
double driver_ms();

struct EnginePlan {
    struct Part {
        DeviceFacts device;
        RowRange rows;  ///< not empty; begins with a whole group of kGroupRows
    };
    std::vector<Part> parts;  ///< one for each shard
    Residency residency;      ///< of every shard
    double context_ms = 0;    ///< spent on making contexts and loading kernels
};

/// Splits the rows between the devices of `options`, and has them hold as much as fits all of
/// them. Errors: unavailable for a device that does not exist or is too old, or too little device
/// memory; device.
Result<EnginePlan> plan_engine(const format::Model& model, const EngineOptions& options);

}  // namespace gloved::kernels::cuda
