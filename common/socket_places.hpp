// Default socket paths of daemon and clients.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved {

/// Socket of the system's daemon.
inline constexpr const char* kSystemSocket = "/run/gloved/gloved.sock";

/// Paths to try, in this order: `given` alone unless it is empty; else $GLOVED_SOCKET alone,
/// because a user who names a daemon does not want another one's answers; else
/// $XDG_RUNTIME_DIR/gloved.sock, the user's own, and kSystemSocket. An empty variable counts as
/// unset.
std::vector<std::string> sockets_to_ask(const std::string& given);

/// Path to listen at: `given` unless it is empty; else $GLOVED_SOCKET; else gloved.sock in
/// $RUNTIME_DIRECTORY, which a service manager sets; else, as root, kSystemSocket; else
/// $XDG_RUNTIME_DIR/gloved.sock. An empty variable counts as unset. Error: io, if none of these is
/// set.
Result<std::string> socket_to_listen_at(const std::string& given, bool as_root);

}  // namespace gloved
