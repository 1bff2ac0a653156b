// Lists the reducers of this build, and makes one by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/makers.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::kernels::reduce {

/// Lists every reducer, in order of preference: cuda, cpu.
std::vector<MakerEntry> list_reducers();

/// Makes the reducer `name`. Errors: unavailable, if there is none of that name or it cannot run
/// here; device. T is float, double or std::int32_t.
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_reducer(const std::string& name,
                                                 const ReducerOptions& options);

}  // namespace gloved::kernels::reduce
