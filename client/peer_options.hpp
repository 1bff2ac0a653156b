// The options that say which daemon the programs of this folder ask: --socket, --timeout, --retry.
#pragma once

#include "cli/command_line.hpp"
#include "client/retrying_connection.hpp"

namespace gloved::client {

/// Adds --socket, --timeout and --retry.
void add_peer_options(cli::Options& options);

/// Reads their values. Throws cli::WrongUsage.
PeerSettings peer_settings(const cli::CommandLine& line, bool json);

}  // namespace gloved::client
