// Whether an engine keeps memory that it should give back.
#pragma once

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Answers `settings.leak_queries` single queries, but every 100th time a batch of 64, and prints
/// memory in use before and after. Some hundred queries before the first look at memory do not
/// count: they fill what is kept for reuse. Errors: internal when more of the device's memory is in
/// use than before; of making and running the engine; interrupted.
Status print_leaks(const format::Model& model, const Settings& settings);

}  // namespace gloved::bench
