// The options --socket, --timeout and --retry of gloved-client: where the daemon
// listens and how long to wait for it.
#pragma once

#include "cli/command_line.hpp"
#include "client/retrying_connection.hpp"

namespace gloved::client {

/// Adds --socket, --timeout and --retry to a program's options.
void add_peer_options(cli::Options& options);

/// Reads the values of --socket, --timeout and --retry. `json`: whether the daemon shall reply in
/// JSON. Throws cli::WrongUsage.
PeerSettings peer_settings(const cli::CommandLine& line, bool json);

}  // namespace gloved::client
