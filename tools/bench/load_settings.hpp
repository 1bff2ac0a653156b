// The options of gloved-bench --load.
#pragma once

#include <sys/types.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "tools/bench/load_requests.hpp"
#include "tools/bench/run_settings.hpp"

namespace gloved::bench {

/// What to ask of which daemon, and how.
struct LoadSettings : RunSettings {
    std::string socket;
    std::string model;            ///< directory to take words from; empty: ask the daemon
    std::size_t connections = 0;  ///< at least as many as threads
    std::size_t depth = 0;        ///< closed loop: requests ahead of replies, per connection
    double rate = 0;              ///< open loop: requests a second in all; 0: closed loop
    std::vector<MixPart> mix;
    std::size_t k = 0;  ///< hits per answer
    std::chrono::milliseconds seconds{};
    double check = 0;      ///< share of the answers to check
    bool lone = false;     ///< one more client, which asks one request at a time
    pid_t daemon_pid = 0;  ///< whose processor time to read; 0: that of the socket's peer
};

/// Adds the options that only a load has.
void describe_load_options(boost::program_options::options_description& group);
/// Reads the values of the options, if --load is given. Throws cli::WrongUsage.
LoadSettings read_load_settings(const cli::CommandLine& line);
/// Refuses options of a load without --load. Throws cli::WrongUsage.
void refuse_load_options(const cli::CommandLine& line);

}  // namespace gloved::bench
