// gloved-bench engines: measures how fast engines answer queries, beside a plain read of memory and
// OpenBLAS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {

/// The options of gloved-bench engines.
struct EnginesSettings : RunSettings {
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
extern const cli::Program kEnginesProgram;
cli::Options describe_engines_options();
/// Reads the values of the options. Throws cli::WrongUsage.
EnginesSettings read_engines_settings(const cli::CommandLine& line);

/// Makes or opens the model and measures the engines. Prints what it measures and the table on
/// stdout. Errors: those of the model, and of making and running engines; bad_source, if every
/// vector is zero; interrupted.
Status print_engines(const EnginesSettings& settings);

/// Whether the measurement uses a CPU engine.
bool wants_processor(const EnginesSettings& settings);

/// Makes the engines of `settings` and prints how long that took. Measures them in turns with the
/// plain read and OpenBLAS (unless `blas` is nullptr), and prints the table on stdout. Errors:
/// those of making and running engines; interrupted.
Status print_engine_table(const format::Model& model, const EnginesSettings& settings,
                          const OpenBlas* blas);

}  // namespace gloved::bench
