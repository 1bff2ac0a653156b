// Opens models, makes their engines and asks each engine a query whose answer is known.
#pragma once

#include <string>

#include "common/result.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Loads a model with the engine that `settings` ask for and, beside a GPU, the cpu engine for
/// requests that name it. With `verify` the model's checksums are compared first. `settings`
/// outlives the model. Errors: those of Model::open and of making engines; unavailable, where the
/// memory must be locked and cannot be; internal, for a wrong answer.
Loaded load_model(const ModelSetting& setting, const Settings& settings, bool verify);

/// Checks everything that can be wrong with a model, without serving it. The result is a line for
/// people. Errors: as above.
Result<std::string> check_model(const ModelSetting& setting, const Settings& settings);

/// Lists and logs the engines that cannot run here, with the reasons; empty where all can.
std::string missing_engines();

}  // namespace gloved::daemon
