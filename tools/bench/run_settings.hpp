// The options that every measurement of gloved-bench has.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command_line.hpp"
#include "common/device_choice.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

/// The options that every measurement has.
struct RunSettings {
    unsigned threads = 0;  ///< never 0
    DeviceChoice devices;
    std::uint64_t seed = 0;  ///< of random queries and values
    TableFormat format = TableFormat::text;

    /// The first of `devices`, which is measured alone.
    int device() const { return devices.all ? 0 : devices.numbers.front(); }
};

/// Throws cli::WrongUsage if several devices are named, for what is measured on one.
void require_one_device(const RunSettings& settings);

/// Reads them: for --threads 0, the number of usable processors. Throws cli::WrongUsage.
void read_run_settings(const cli::CommandLine& line, RunSettings& settings);

/// The CPU's name and the number of threads, for headings: «AMD EPYC 7B13, 2 threads».
std::string processor_text(const RunSettings& settings);

}  // namespace gloved::bench
