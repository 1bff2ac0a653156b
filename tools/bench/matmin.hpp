// gloved-bench matmin: times every reducer of gloved-matmin on a text of random matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cli/command_line.hpp"
#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// The options of gloved-bench matmin.
struct MatminSettings : RunSettings {
    std::size_t repeat = 0;   ///< runs of Reducer::time_again of each
    std::uint64_t count = 0;  ///< number of matrices
    std::size_t rows = 0;     ///< of each matrix
    std::size_t columns = 0;
    npy::Type type = npy::Type::float64;  ///< of the numbers
};

/// Name and help of the program, and its options.
extern const cli::Program kMatminProgram;
cli::Options describe_matmin_options();
/// Reads the values of the options. Throws cli::WrongUsage.
MatminSettings read_matmin_settings(const cli::CommandLine& line);

/// Writes the text to a temporary directory, reads it once for every engine and prints the table on
/// stdout. Errors: internal, if an engine's result differs from that of a plain loop over the
/// random numbers; device; io; interrupted.
Status print_matmin(const MatminSettings& settings);

}  // namespace gloved::bench
