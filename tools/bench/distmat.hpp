// gloved-bench distmat: measures every way to compute the distances between all rows of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

struct DistmatSettings : RunSettings {
    struct Size {
        std::size_t rows = 0;
        std::size_t dim = 0;
    };
    std::vector<Size> sizes;
    std::vector<std::string> rungs;  ///< by name; empty: all that can run here
    std::size_t repeat = 0;
    double seconds = 0;  ///< a rung that takes longer skips its remaining runs
};

extern const cli::Program kDistmatProgram;
cli::Options describe_distmat_options();
/// Throws cli::WrongUsage.
DistmatSettings read_distmat_settings(const cli::CommandLine& line);

/// Checks every rung, times it and prints the table. Errors: internal if a rung's distances are not
/// the canonical ones byte by byte; unavailable for a rung that is named and cannot run; device;
/// interrupted.
Status print_distmat(const DistmatSettings& settings, const std::string& processor_name);

}  // namespace gloved::bench
