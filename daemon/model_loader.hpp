// Loads models for the daemon: opens a model, makes its engines and asks the first a query whose
// answer is known.
#pragma once

#include <string>

#include "common/result.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Loads a model with the engine that `settings` ask for and, beside a GPU, the cpu engine for
/// requests that name it. With `verify`, first compares all content of the files with the checksums
/// in them. `settings` must outlive the model. Errors: those of Model::open and of making engines;
/// unavailable, if Pin::on is set and the memory cannot be locked; internal, for a wrong answer to
/// the known query. Any thread.
Loaded load_model(const ModelSetting& setting, const Settings& settings, bool verify);

/// For `gloved --check`: opens a model as load_model does, with `verify` and its first engine,
/// locks nothing, and discards it. Returns a line for people about it. Errors as load_model.
Result<std::string> check_model(const ModelSetting& setting, const Settings& settings);

/// The engines of this build that cannot run on this machine, with the reasons, as one line; logs
/// it too. Empty if all can run.
std::string missing_engines();

}  // namespace gloved::daemon
