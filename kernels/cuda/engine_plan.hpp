// Plans a cuda engine: on which devices it runs, which rows each device gets (its shard), and what
// it holds of them. Allocates nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/shard_memory.hpp"
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
    /// A shard and its GPU.
    struct PlannedShard {
        DeviceFacts device;
        RowRange rows;  ///< begins with a whole unit of kUnitRows; not empty
        /// Device memory that building code tiles takes for a while.
        std::size_t tiles_scratch_bytes = 0;
    };
    std::vector<PlannedShard> shards;  ///< not empty
    /// Whether each shard is the whole model. With one shard too.
    bool replicas = true;
    Residency residency;    ///< of every shard
    double context_ms = 0;  ///< time spent on making contexts and loading kernels
};

/// Equal ranges of `rows`, in order, each but the first of which begins with a whole unit of
/// kUnitRows rows of the model. There are at most `parts`: empty ones are left out.
std::vector<RowRange> split_rows(RowRange rows, std::size_t parts);
/// One of them, numbered from 0, where empty ones are not left out.
RowRange part_of_rows(RowRange rows, std::size_t parts, std::size_t part);

/// Gives each device of `options` the whole model or a part of its rows, as EngineOptions::spread
/// says, and chooses the largest Residency that fits on each of them. Errors: unavailable, if a
/// device does not exist, is too old or has too little memory; device.
Result<EnginePlan> plan_engine(const format::Model& model, const EngineOptions& options);

}  // namespace gloved::kernels::cuda
