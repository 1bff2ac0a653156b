// Signals of programs that run for a while: SIGINT and its like set a flag, failed writes are
// errors.
#pragma once

#include <atomic>

namespace gloved::cli {

enum class SecondSignal {
    ignored,      ///< the program cleans up first
    ends_at_once  ///< the program leaves nothing behind
};

/// Installs handlers for SIGINT, SIGTERM and SIGHUP that set the returned flag and interrupt waits.
const std::atomic<bool>& stop_on_signals(SecondSignal second);

/// The flag, and whether it is set.
const std::atomic<bool>& stop_flag();
bool stop_requested();

/// Ignores SIGPIPE and SIGXFSZ: writing to a reader that is gone, or beyond a limit on file sizes,
/// fails with an error instead of killing the program, so that it can clean up.
void let_writes_fail();

}  // namespace gloved::cli
