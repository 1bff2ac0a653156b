// The reducer of gloved-matmin on a GPU (launches.hpp describes how it computes).
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::cuda {

inline constexpr std::size_t kAllMemory = std::numeric_limits<std::size_t>::max();

/// Makes the reducer «cuda» on device `options.device`. If `options.count` matrices fit in the
/// device's memory, it keeps them all, and time_again works. Otherwise it reduces and discards the
/// values whenever its room is full. `most_bytes` limits that room; only tests set it. Its times
/// are measured by CUDA events, around the copies and around the kernels. Errors: unavailable, if
/// the device does not exist or has no room for one matrix; device, if a CUDA call fails. The
/// reducer's functions return `device`, too; it is unusable afterwards.
template <class T>
Result<std::unique_ptr<reduce::Reducer<T>>> make_device_reducer(
    const reduce::ReducerOptions& options, std::size_t most_bytes = kAllMemory);

}  // namespace gloved::kernels::cuda
