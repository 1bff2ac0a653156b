// Engines beside what memory and OpenBLAS allow, in one table.
#pragma once

#include <optional>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Whether a device takes part in what is to be measured: the engine is cuda, or it is left open
/// and cuda can run.
bool wants_device(const Settings& settings);
/// Whether an engine of the processor takes part.
bool wants_processor(const Settings& settings);

/// Makes the engines of `settings`, says what their start took, measures them round by round with
/// their peers and prints the table. `blas` may be null. Errors: of making and running engines,
/// interrupted.
Status print_engines(const format::Model& model, const Settings& settings, const OpenBlas* blas);

}  // namespace gloved::bench
