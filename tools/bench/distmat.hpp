// gloved-bench distmat: times every distance engine on matrices of several sizes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// The options of gloved-bench distmat.
struct DistmatSettings : RunSettings {
    /// Shape of a matrix.
    struct Size {
        std::size_t rows = 0;
        std::size_t dim = 0;
    };
    std::vector<Size> sizes;
    std::vector<std::string> engines;  ///< names of engines; empty: all that can run here
    std::size_t repeat = 0;            ///< runs of each
};

/// Name and help of the program, and its options.
extern const cli::Program kDistmatProgram;
cli::Options describe_distmat_options();
/// Reads the values of the options. Throws cli::WrongUsage.
DistmatSettings read_distmat_settings(const cli::CommandLine& line);

/// Checks every engine, times it and prints the table on stdout. Errors: internal, if an engine's
/// distances are not the canonical ones to the last bit; unavailable, for an engine that
/// settings.engines names and that cannot run; device; interrupted.
Status print_distmat(const DistmatSettings& settings);

}  // namespace gloved::bench
