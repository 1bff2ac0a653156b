// Memory that runs out: a reload that would not fit is refused; an allocation that fails ends the
// process.
#pragma once

#include "common/result.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Sets the new-handler: when an allocation fails, it writes one line to stderr and ends the
/// process with status 1, so that a supervisor starts it again.
void install_out_of_memory_handler();

/// Checks whether a model fits into memory beside those that are loaded: what its key index, its
/// spelling index and its cpu engine allocate, and with `locks_files` its files too. A model that
/// cannot be read passes: the loader says what is wrong with it. (What a GPU or its driver has no
/// memory for, the engine refuses.) Error: unavailable.
Status check_memory_for(const ModelSetting& setting, bool planes, bool locks_files);

}  // namespace gloved::daemon
