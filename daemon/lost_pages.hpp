// What happens when a mapped model file is cut short, or its disk cannot be read.
#pragma once

namespace gloved::daemon {

/// From now on a page of a mapped file that is not there (SIGBUS) ends the process with status 1
/// and a line that names the file. A misaligned access or a fault of the memory itself ends it as
/// it always does.
void install_sigbus_handler();

}  // namespace gloved::daemon
