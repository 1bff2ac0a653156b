// The reducer that runs on the CPU.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::reduce {

/// Makes the reducer «cpu», which uses MinMax on all threads. Never fails.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_cpu_reducer(const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
