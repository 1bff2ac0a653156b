// Signal handling of clients and tools, which call what they need. stop_on_signals is for long jobs
// of tools. Clients call only let_writes_fail, and SIGINT ends them at once.
#pragma once

#include <atomic>

namespace gloved::cli {

/// What a signal does when it comes a second time.
enum class SecondSignal {
    ignored,      ///< nothing: the program has to clean up
    ends_at_once  ///< ends the program, which has nothing to clean up
};

/// Installs handlers for SIGINT, SIGTERM and SIGHUP that set the returned flag, which lives for
/// ever. System calls that wait return with EINTR.
const std::atomic<bool>& stop_on_signals(SecondSignal second);

/// The flag of `stop_on_signals`, which stays false if that was not called, and its value. Any
/// thread.
const std::atomic<bool>& stop_flag();
bool stop_requested();

/// Ignores SIGPIPE and SIGXFSZ: writing to a reader that is gone, or beyond a limit on file sizes,
/// fails with an error instead of killing the program, so that it can clean up.
void let_writes_fail();

}  // namespace gloved::cli
