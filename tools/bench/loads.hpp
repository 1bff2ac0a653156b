// What bringing a model into memory costs: as text or binary, to a device from page-locked memory
// or not.
#pragma once

#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Measures and prints the table. Text is a sample of the model's rows, written to `scratch` with
/// five decimals as GloVe's downloads have them and read as gloved-convert reads it; its cost for
/// the whole model is extrapolated, and said to be. Where the cuda engine can run, it is made with
/// and without page-locking. Errors: io, device, interrupted.
Status print_loads(const format::Model& model, const Settings& settings,
                   const std::string& scratch);

}  // namespace gloved::bench
