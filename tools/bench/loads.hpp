// Measures how long loading a model takes, for gloved-bench: from text and from model files, and to
// a GPU with and without page-locked memory.
#pragma once

#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Measures and prints the table on stdout. For the text, writes a sample of the model's rows to
/// the directory `scratch`, with five decimals as in GloVe's downloads, and reads it as
/// gloved-convert does. Extrapolates to the whole model, with a note. If the cuda engine can run,
/// makes it with and without page-locking. Errors: io, device, interrupted.
Status print_loads(const format::Model& model, const Settings& settings,
                   const std::string& scratch);

}  // namespace gloved::bench
