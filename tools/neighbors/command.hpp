// The command-line options that gloved-neighbors and gloved-neighbors-mpi have in common.
#pragma once

#include <string>

#include "cli/command_line.hpp"
#include "tools/neighbors/neighbors.hpp"

namespace gloved::neighbors {

/// Adds the options that say what is computed, by what, and where the parts are kept. The defaults
/// of --threads and --device differ between programs: texts for --help.
void add_computing_options(cli::Options& options, const std::string& default_threads,
                           const std::string& default_device);

/// Reads MODEL_DIR, these options and --times. Without --threads there are 0, without --device it
/// is device 0. Throws cli::WrongUsage.
Settings read_computing_options(const cli::CommandLine& line);

}  // namespace gloved::neighbors
