#include "client/peer_options.hpp"

#include "common/socket_places.hpp"

namespace gloved::client {
namespace {

constexpr double kMinTimeoutSeconds = 0.001;

}  // namespace

void add_peer_options(cli::Options& options) {
    cli::OptionAdder{options.shown}  //
    ("socket", cli::value("PATH"),
     "the daemon's socket (default: $GLOVED_SOCKET; if that is not set, "
     "$XDG_RUNTIME_DIR/gloved.sock, then /run/gloved/gloved.sock)")  //
        ("timeout", cli::value("S", "10"),
         "seconds to wait for a connection and for each reply")  //
        ("retry", cli::value("S", "0"),
         "seconds to keep trying if no daemon answers or it is busy or restarting; each reply "
         "starts the count again");
}

PeerSettings peer_settings(const cli::CommandLine& line, bool json) {
    return {sockets_to_ask(line.nonempty("socket", "a path")),
            line.seconds("timeout", kMinTimeoutSeconds), line.seconds("retry", 0), json};
}

}  // namespace gloved::client
