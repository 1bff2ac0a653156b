// The daemon's command line and configuration file.
#pragma once

#include <spdlog/common.h>

#include <optional>
#include <ostream>

#include "common/result.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

struct Options {
    Settings settings;
    spdlog::level::level_enum log_level = spdlog::level::info;
    bool check = false;  ///< check the models and exit
};

/// Reads the command line and the file of --config. Nothing for --help and --version, which are
/// answered on `out`. Error: bad_request, wrong usage.
Result<std::optional<Options>> read_options(int argc, char** argv, std::ostream& out);

}  // namespace gloved::daemon
