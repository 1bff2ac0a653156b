// Which reducers there are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"
#include "kernels/registry.hpp"

namespace gloved::kernels::reduce {

/// Every reducer that gloved knows of: cuda, cpu, sequential (one thread, one plain loop) and
/// original (a reduction and a compaction kernel by turns, after the values were laid out element
/// by element).
std::vector<EngineEntry> list_reducers();

/// Makes the reducer `name`. Errors: unavailable, for a name that does not exist or cannot run
/// here; device. T is float, double or std::int32_t.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_reducer(const std::string& name,
                                                 const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
