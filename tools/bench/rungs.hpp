// Climbs the ladder: checks every rung that was asked for, then times them round by round.
#pragma once

#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/lists.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// What `settings.rungs` asks of this build. Error: bad_request.
Result<RungChoice> choose_rungs(const Settings& settings);

/// Prints the three tables, and draws the chart where settings.svg names a file. Rungs that need a
/// device are left out, and that is said, where there is none. `processor_name` is what the chart
/// says where it has no device. Errors: internal when a rung's answer is not within its own bound
/// of the canonical one; device; io; interrupted.
Status print_rungs(const format::Model& model, const Settings& settings,
                   const std::string& processor_name);

}  // namespace gloved::bench
