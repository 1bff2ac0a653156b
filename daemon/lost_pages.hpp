// Handles SIGBUS: a mapped model file is cut short, or its disk cannot be read.
#pragma once

namespace gloved::daemon {

/// From now on, a missing page of a mapped file ends the process with status 1 and a line that
/// names the file. Other causes of SIGBUS end it as by default.
void install_sigbus_handler();

}  // namespace gloved::daemon
