// gloved-bench matmin: measures every way to find the smallest elements of many matrices in text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/command_line.hpp"
#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

struct MatminSettings : RunSettings {
    std::size_t repeat = 0;
    std::uint64_t count = 0;  ///< matrices
    std::size_t rows = 0;
    std::size_t columns = 0;
    npy::Type type = npy::Type::float64;
};

extern const cli::Program kMatminProgram;
cli::Options describe_matmin_options();
/// Throws cli::WrongUsage.
MatminSettings read_matmin_settings(const cli::CommandLine& line);

/// Writes the text to a temporary directory, reads it once for every rung and prints the table.
/// Errors: internal if a rung's answer differs from that of the plain loop over the random numbers;
/// device; io; interrupted.
Status print_matmin(const MatminSettings& settings, const std::string& processor_name);

}  // namespace gloved::bench
