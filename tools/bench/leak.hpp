// Checks whether an engine leaks memory.
#pragma once

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Answers `settings.leak_queries` single queries, every 100th time a batch of 64 instead, and
/// prints memory use before and after. Some hundred queries run before, since they fill buffers
/// that are kept for reuse. Errors: internal if more of the device's memory is in use than before;
/// of making and running the engine; interrupted.
Status print_leaks(const format::Model& model, const Settings& settings);

}  // namespace gloved::bench
