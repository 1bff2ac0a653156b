// The element-wise minimum and maximum on a GPU, in one pass or in the original's way
// (launches.hpp).
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::cuda {

inline constexpr std::size_t kAllMemory = std::numeric_limits<std::size_t>::max();

/// A reducer on device `options.device`. It keeps all announced matrices in the device's memory
/// where they fit, and time_again works then; else it reduces whenever what it has room for is
/// full. `most_bytes` is what it may take for values, in tests. The times are the device's own: of
/// the copies, and of the kernels. Errors: unavailable, for a device that does not exist or has no
/// room for a matrix; device, then and in everything later, when a call fails: the reducer is of no
/// more use.
template <class T>
Result<std::unique_ptr<reduce::Reducer<T>>> make_device_reducer(
    const reduce::ReducerOptions& options, std::size_t most_bytes = kAllMemory);

/// The same in the original's way. Laying the values out element by element counts as transfer: it
/// prepares them for the kernels.
template <class T>
Result<std::unique_ptr<reduce::Reducer<T>>> make_original_reducer(
    const reduce::ReducerOptions& options, std::size_t most_bytes = kAllMemory);

}  // namespace gloved::kernels::cuda
