// Blocks and unblocks the signals that the daemon handles: SIGTERM, SIGINT, SIGHUP.
#pragma once

namespace gloved::daemon {

/// Blocks them in this thread and in those that it starts. Call it first in a program: a signal
/// before there is a handler would end the process and leave its socket behind.
void block_signals() noexcept;

/// Delivers them to this thread again, pending ones at once.
void unblock_signals() noexcept;

}  // namespace gloved::daemon
