// The options that every measurement of gloved-bench has.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command_line.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

/// The options that every measurement has.
struct RunSettings {
    unsigned threads = 0;  ///< never 0
    int device = 0;
    std::uint64_t seed = 0;  ///< of random queries and values
    TableFormat format = TableFormat::text;
};

/// Reads them: for --threads 0, the number of usable processors. Throws cli::WrongUsage.
void read_run_settings(const cli::CommandLine& line, RunSettings& settings);

/// The CPU's name and the number of threads, for headings: «AMD EPYC 7B13, 2 threads».
std::string processor_text(const RunSettings& settings);

}  // namespace gloved::bench
