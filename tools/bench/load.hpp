// gloved-bench load: asks a running daemon as much as it can answer, or at a fixed rate.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "common/result.hpp"
#include "tools/bench/load_requests.hpp"
#include "tools/bench/settings.hpp"

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

/// Name and help of the program, and its options.
extern const cli::Program kLoadProgram;
cli::Options describe_load_options();
/// Reads the values of the options. Throws cli::WrongUsage.
LoadSettings read_load_settings(const cli::CommandLine& line);

/// Runs the load and prints its tables on stdout: answers per second, latencies, and the processor
/// time of this process and of the daemon. Errors: internal, if an answer is wrong; it is printed
/// with its request and the expected answer; mismatch, if --model is not what the daemon serves;
/// unavailable, if the daemon answers nothing or closes a connection; those of client::Connection;
/// interrupted.
Status print_load(const LoadSettings& settings);

}  // namespace gloved::bench
