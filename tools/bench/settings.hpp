// What the measurements of gloved-bench read from their command lines alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "common/device_choice.hpp"
#include "tools/bench/measure.hpp"

namespace gloved::bench {

/// The options that several measurements have.
struct RunSettings {
    unsigned threads = 0;  ///< never 0
    DeviceChoice devices;
    std::uint64_t seed = 0;  ///< of random queries and values
    TableFormat format = TableFormat::text;

    /// The first of `devices`, which is measured alone.
    int device() const { return devices.all ? 0 : devices.numbers.front(); }
};

/// Describes device, seed and format, of what is measured on one GPU. `seed` tells what it is of.
void add_run_options(cli::OptionAdder& add, const char* seed);

/// Reads all but the devices: for --threads 0, the number of usable processors. Throws
/// cli::WrongUsage.
void read_run_settings(const cli::CommandLine& line, RunSettings& settings);

/// Reads the device of what is measured on one. Throws cli::WrongUsage if several are named.
void read_one_device(const cli::CommandLine& line, RunSettings& settings);

/// The CPU's name and the number of threads, for headings: «AMD EPYC 7B13, 2 threads».
std::string processor_text(const RunSettings& settings);

/// Parses batch sizes with commas between. Returns them in ascending order, each once. 1 is always
/// among them, because batches are compared with single queries. Throws cli::WrongUsage.
std::vector<std::size_t> parse_batches(std::string_view text);

/// Parses the sizes of lists of words, with commas between. Returns them in their order. At most
/// kernels::kMaxLists. Throws cli::WrongUsage.
std::vector<std::size_t> parse_list_sizes(std::string_view text);

/// Parses names with commas between, each of which must be in `known`. Returns them in the order of
/// `known`, each once. `name` is what the message calls the list. Throws cli::WrongUsage.
std::vector<std::string> parse_names(std::string_view name, std::string_view text,
                                     std::span<const std::string_view> known);

}  // namespace gloved::bench
