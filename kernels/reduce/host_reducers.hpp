// The reducers that run on the processor.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::reduce {

/// min_max over every piece, by all threads. Error: none today.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_cpu_reducer(const ReducerOptions& options);

/// One thread, one plain loop: what the others are compared with. It shares no code with MinMax but
/// the form of the result.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_sequential_reducer(const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
