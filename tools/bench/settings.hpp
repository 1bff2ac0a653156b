// The command line of gloved-bench: describes its options and reads their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/run_settings.hpp"

namespace gloved::bench {

/// The options of gloved-bench.
struct Settings : RunSettings {
    std::string model;                        ///< directory; empty: generate a model
    std::optional<GenerateOptions> generate;  ///< the model to generate
    std::string keep;                         ///< directory to generate it in; empty: a temporary

    std::optional<kernels::EngineKind> engine;  ///< nullopt: the best that runs here
    bool all_engines = false;                   ///< every kind that runs here, whatever `engine` is
    std::string simd;                           ///< EngineOptions::simd
    bool pin = true;                            ///< EngineOptions::pin
    bool planes = true;                         ///< EngineOptions::planes
    bool fine_plane = true;                     ///< EngineOptions::fine_plane
    bool wgmma = true;                          ///< EngineOptions::wgmma
    kernels::Spread spread = kernels::Spread::automatic;  ///< EngineOptions::spread
    std::uint64_t gpu_memory_bytes = 0;                   ///< 0: all that is free
    std::vector<std::size_t> batches;  ///< sizes of batches to measure; empty: the engine's default
    std::size_t k = 0;                 ///< hits per query
    std::size_t top = 0;               ///< Filter::rank_below of queries; 0: all ranks
    std::size_t range = 0;             ///< rows of Filter::rows, at a random place; 0: all
    std::vector<std::size_t> within;   ///< sizes of lists in which to search too
    std::size_t exclude = 1;           ///< excluded rows: the query's own word and random ones
    std::optional<double> min_score;   ///< Filter::min_score
    std::size_t repeat = 0;            ///< rounds; 0: the measurement's default
};

/// Name and help of the program, and its options.
extern const cli::Program kProgram;
cli::Options describe_options();
/// Reads the values of the options. Throws cli::WrongUsage.
Settings read_settings(const cli::CommandLine& line);

}  // namespace gloved::bench
