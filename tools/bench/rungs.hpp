// Checks and times the rungs of the ladder (kernels/cuda/ladder), for gloved-bench --rungs.
#pragma once

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/lists.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// The rungs that settings.rungs names and this build has. Throws cli::WrongUsage.
RungChoice choose_rungs(const Settings& settings);

/// Checks the rungs of choose_rungs, times them round by round, and prints the three tables of
/// rung_report.hpp. Without a GPU leaves out rungs that need one, with a note. Errors: internal, if
/// a rung's answer is wrong (check_hits); device; interrupted.
Status print_rungs(const format::Model& model, const Settings& settings);

}  // namespace gloved::bench
