// The list of reducers, and how to make one by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/makers.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::reduce {

/// Lists every reducer: cuda, cpu, sequential (one plain loop on one thread) and original (lays
/// values out by element, then alternates a reduction and a compaction kernel).
std::vector<MakerEntry> list_reducers();

/// Makes the reducer `name`. Errors: unavailable, if the name does not exist or cannot run here;
/// device. T is float, double or std::int32_t.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_reducer(const std::string& name,
                                                 const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
