// The signals that the daemon obeys (SIGTERM, SIGINT, SIGHUP), and when they are delivered.
#pragma once

namespace gloved::daemon {

/// From now on these signals wait, for this thread and for those that it starts. A program calls it
/// first of all: a signal that comes before there is a handler would end the process, and leave its
/// socket behind.
void block_signals() noexcept;

/// From now on they are delivered to this thread, those that have waited at once.
void unblock_signals() noexcept;

}  // namespace gloved::daemon
