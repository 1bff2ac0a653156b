// Reducers that run on the CPU.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::reduce {

/// Reduces with min_max on all threads. Error: none today.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_cpu_reducer(const ReducerOptions& options);

/// Reduces with one plain loop on one thread, for comparison. Shares no code with MinMax except the
/// form of the result.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_sequential_reducer(const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
