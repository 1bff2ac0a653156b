// Climbs the ladder: checks every rung that was asked for, then times them round by round.
#pragma once

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/lists.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// The rungs that settings.rungs names and this build has. Throws cli::WrongUsage.
RungChoice choose_rungs(const Settings& settings);

/// Prints the three tables. Rungs that need a device are left out, with a note, if there is none.
/// Errors: internal if a rung's answer is not within its own bound of the canonical one; device;
/// interrupted.
Status print_rungs(const format::Model& model, const Settings& settings);

}  // namespace gloved::bench
