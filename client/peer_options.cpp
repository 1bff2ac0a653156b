#include "client/peer_options.hpp"

#include "common/socket_places.hpp"

namespace gloved::client {
namespace {

constexpr double kMinTimeoutSeconds = 0.001;

}  // namespace

void add_peer_options(cli::Options& options) {
    options.shown.add_options()  //
        ("socket", cli::value("PATH"),
         "the daemon's socket; default: $GLOVED_SOCKET, else $XDG_RUNTIME_DIR/gloved.sock, else "
         "/run/gloved/gloved.sock")  //
        ("timeout", cli::value("S", "10"),
         "seconds to wait for a connection and for each reply")  //
        ("retry", cli::value("S", "0"),
         "seconds to keep trying while no daemon is there, it is busy or it restarts; starts anew "
         "after each reply");
}

PeerSettings peer_settings(const cli::CommandLine& line, bool json) {
    return {sockets_to_ask(line.nonempty("socket", "a path")),
            line.seconds("timeout", kMinTimeoutSeconds), line.seconds("retry", 0), json};
}

}  // namespace gloved::client
