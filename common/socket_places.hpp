// Where a daemon listens and where clients look for one, when nobody names a socket.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved {

/// The socket of the system's daemon.
inline constexpr const char* kSystemSocket = "/run/gloved/gloved.sock";

/// Where to look for a daemon, in this order: `given` alone unless it is empty; else $GLOVED_SOCKET
/// alone, because whoever names a daemon does not want another one's answers; else
/// $XDG_RUNTIME_DIR/gloved.sock, the user's own, and kSystemSocket. An empty variable counts as
/// unset.
std::vector<std::string> sockets_to_ask(const std::string& given);

/// Where a daemon listens: at `given` unless it is empty; else at $GLOVED_SOCKET; else at
/// gloved.sock in $RUNTIME_DIRECTORY, which a service manager sets; else, as root, at
/// kSystemSocket; else at $XDG_RUNTIME_DIR/gloved.sock. An empty variable counts as unset. Error:
/// io, where none of these says it.
Result<std::string> socket_to_listen_at(const std::string& given, bool as_root);

}  // namespace gloved
