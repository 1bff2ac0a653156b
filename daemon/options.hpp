// Reads the daemon's command line and configuration file.
#pragma once

#include <spdlog/common.h>

#include <optional>
#include <ostream>

#include "common/result.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// What the command line and the configuration file say.
struct Options {
    Settings settings;
    spdlog::level::level_enum log_level = spdlog::level::info;
    bool check = false;  ///< check the models and exit
};

/// Reads the command line, and the file of --config if it is given. For --help and --version,
/// prints the answer on `out` and returns nullopt. Error: bad_request, for wrong usage.
Result<std::optional<Options>> read_options(int argc, char** argv, std::ostream& out);

}  // namespace gloved::daemon
