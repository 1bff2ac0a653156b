// gloved-bench museum: measures the kernels of the student projects (museum/) beside the engines.
// Each measurement checks every result first. All need a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "common/result.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// Largest number of hits of a search.
inline constexpr std::size_t kMaxMuseumHits = 32;

/// The options of the three measurements.
struct MuseumSettings : RunSettings {
    std::string subject;                ///< search, minimum or distances
    std::string model;                  ///< search: directory; empty: make one up
    std::size_t rows = 0;               ///< search: of the made-up model
    std::size_t dim = 0;                ///< search: of the made-up model
    std::size_t k = 0;                  ///< search: hits per query
    std::size_t count = 0;              ///< minimum: matrices of 3 x 3
    std::vector<std::string> versions;  ///< to measure, in the order of the table
    std::size_t repeat = 0;             ///< rounds, or runs after one that does not count
    double seconds = 0;  ///< search: what has taken longer skips its remaining rounds
};

extern const cli::Program kMuseumProgram;
cli::Options describe_museum_options();
/// Throws cli::WrongUsage.
MuseumSettings read_museum_settings(const cli::CommandLine& line);
/// Errors: unavailable without a GPU or without CUDA in the build; internal, if a result is wrong;
/// device; interrupted.
Status print_museum(const MuseumSettings& settings);

/// The measurements, called by print_museum.
Status print_museum_search(const MuseumSettings& settings);
Status print_museum_minimum(const MuseumSettings& settings);
Status print_museum_distances(const MuseumSettings& settings);

}  // namespace gloved::bench
