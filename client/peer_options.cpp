#include "client/peer_options.hpp"

#include "client/connection.hpp"
#include "client/option_values.hpp"
#include "common/socket_places.hpp"

namespace gloved::client {
namespace {

namespace po = boost::program_options;

constexpr double kMinTimeoutSeconds = 0.001;

}  // namespace

void PeerOptions::add_to(po::options_description& options) {
    auto add = options.add_options();
    add("socket",
        po::value<std::string>()->value_name("PATH")->notifier(
            [this](const std::string& path) { socket_ = path; }),
        "where the daemon listens; default: $GLOVED_SOCKET, else $XDG_RUNTIME_DIR/gloved.sock, "
        "else "
        "/run/gloved/gloved.sock");
    add("timeout",
        po::value<std::string>()->value_name("S")->notifier(
            [this](const std::string& time) { timeout_ = time; }),
        "seconds to wait for a connection, and for each answer; default 10");
    add("retry",
        po::value<std::string>()->value_name("S")->notifier(
            [this](const std::string& time) { retry_ = time; }),
        "seconds to go on trying where no daemon is, it is busy or it goes away, anew after each "
        "answer; default 0");
}

Result<PeerSettings> PeerOptions::settings(bool json, const std::string& timeout_by_default) const {
    if (socket_ && socket_->empty()) return Error{ErrorCode::bad_request, "--socket needs a path"};
    const auto timeout =
        parse_seconds("--timeout", timeout_.value_or(timeout_by_default), kMinTimeoutSeconds);
    if (!timeout) return timeout.error();
    const auto retry = parse_seconds("--retry", retry_.value_or("0"), 0);
    if (!retry) return retry.error();
    return PeerSettings{sockets_to_ask(socket_.value_or("")), *timeout, *retry, json};
}

}  // namespace gloved::client
