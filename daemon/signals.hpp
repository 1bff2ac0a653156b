// Blocks the signals that the daemon handles, SIGTERM, SIGINT and SIGHUP, until the event loop can
// handle them.
#pragma once

namespace gloved::daemon {

/// Blocks the three signals in this thread and in the threads that it starts afterwards. Call it
/// first in main: a signal that comes before its handler is installed would end the process, and
/// leave the file of its socket behind.
void block_signals() noexcept;

/// Lets the three signals reach this thread again, those that came meanwhile at once. Call it on
/// the loop thread, after the handlers are installed.
void unblock_signals() noexcept;

}  // namespace gloved::daemon
