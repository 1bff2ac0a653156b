// Where the daemon's socket is, if the command line does not say it: rules for the daemon, which
// listens there, and for the clients, which connect.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved {

/// Socket of the daemon that serves all users of the machine.
inline constexpr const char* kSystemSocket = "/run/gloved/gloved.sock";

/// Paths at which a client looks for a daemon, in order. `given`, the value of --socket, is the
/// only one unless it is empty. Otherwise $GLOVED_SOCKET is the only one: a user who names a daemon
/// does not want another one's answers. If that is unset too, $XDG_RUNTIME_DIR/gloved.sock (if
/// set), then kSystemSocket. An empty variable counts as unset.
std::vector<std::string> sockets_to_ask(const std::string& given);

/// Path at which a daemon listens, the first of these that is set: `given`, the value of --socket;
/// $GLOVED_SOCKET; $RUNTIME_DIRECTORY/gloved.sock, which systemd sets; as root, kSystemSocket;
/// $XDG_RUNTIME_DIR/gloved.sock. An empty variable counts as unset. Error: io, if none is set.
Result<std::string> socket_to_listen_at(const std::string& given, bool as_root);

}  // namespace gloved
