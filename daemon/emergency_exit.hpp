// How the daemon ends at once, with status 1 and one line on standard error, where it cannot go on.
#pragma once

#include <chrono>

namespace gloved::daemon {

/// Installs a handler with std::set_new_handler: when an allocation fails, the process ends. Its
/// supervisor (systemd) starts it again.
void install_out_of_memory_handler();

/// Installs a handler of SIGBUS, which the kernel sends when a page of a mapped model file is
/// missing: the file was cut short, or its disk cannot be read. The line names the file. Another
/// SIGBUS ends the process as without a handler. Call it after install_out_of_memory_handler.
void install_sigbus_handler();

/// Ends the process after `time`: on a GPU that hangs, a thread may never return.
void exit_after(std::chrono::microseconds time);

}  // namespace gloved::daemon
