// The reducers that run on the CPU: cpu and sequential.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::reduce {

/// Makes the reducer «cpu», which uses MinMax on all threads. Never fails.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_cpu_reducer(const ReducerOptions& options);

/// Makes the reducer «sequential», one plain loop on one thread, for comparison. Shares no code
/// with MinMax except the form of the result. Never fails.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_sequential_reducer(const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
