// Ctrl-C and its kin as a flag: waits end early, and destructors take temporary files and daemons
// away.
#pragma once

#include <atomic>

namespace gloved::bench {

/// From now on SIGINT, SIGTERM and SIGHUP set the flag and make waits return (no SA_RESTART).
void end_on_signals();

/// Whether one came.
bool interrupted();

/// The flag itself, for code that looks at one.
const std::atomic<bool>& stop_flag();

}  // namespace gloved::bench
