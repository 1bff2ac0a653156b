// Checks whether an engine leaks memory, for gloved-bench.
#pragma once

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Answers `settings.leak_queries` single queries, every 100th time a batch of 64 instead, and
/// prints the process's memory before and after. Some hundred queries run first, since they fill
/// buffers that are kept for reuse. Errors: internal, if more GPU memory is in use than before;
/// those of making and running the engine; interrupted.
Status print_leaks(const format::Model& model, const Settings& settings);

}  // namespace gloved::bench
