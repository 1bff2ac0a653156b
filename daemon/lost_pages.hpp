// Handles SIGBUS, which the kernel sends when a page of a mapped model file is missing: the file
// was cut short, or its disk cannot be read.
#pragma once

namespace gloved::daemon {

/// Installs the handler: from now on, access to a missing page of a mapped file ends the process
/// with status 1 and a log line that names the file. Another SIGBUS ends it as without a handler.
void install_sigbus_handler();

}  // namespace gloved::daemon
