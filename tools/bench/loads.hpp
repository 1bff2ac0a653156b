// Measures how long loading a model takes: text or binary, and to a GPU with and without
// page-locked memory.
#pragma once

#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Measures and prints the table. The text is a sample of the model's rows, written to `scratch`
/// with five decimals as in GloVe's downloads and read as gloved-convert reads it; the cost of the
/// whole model is extrapolated, with a note. If the cuda engine can run, it is made with and
/// without page-locking. Errors: io, device, interrupted.
Status print_loads(const format::Model& model, const Settings& settings,
                   const std::string& scratch);

}  // namespace gloved::bench
