// The command line of gloved-bench: its options and what they are read into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "kernels/engine.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

/// What every measurement has.
struct RunSettings {
    unsigned threads = 0;  ///< never 0
    int device = 0;
    std::uint64_t seed = 0;
    TableFormat format = TableFormat::text;
};

/// Throws cli::WrongUsage.
void read_run_settings(const cli::CommandLine& line, RunSettings& settings);

struct Settings : RunSettings {
    std::string model;                        ///< directory; empty: made up
    std::optional<GenerateOptions> generate;  ///< the model to make up
    std::string keep;                         ///< directory to keep it in; empty: none

    std::optional<kernels::EngineKind> engine;  ///< nothing: the best that runs here
    bool all_engines = false;                   ///< every kind that runs here, whatever `engine` is
    std::string simd;
    bool pin = true;
    bool planes = true;
    std::uint64_t gpu_memory_bytes = 0;  ///< 0: all that is free
    std::vector<std::size_t> batches;    ///< empty: the engine's default
    std::size_t k = 0;
    std::size_t repeat = 0;  ///< 0: the measurement's default

    std::string rungs;        ///< empty: measure engines, not rungs
    double rung_seconds = 0;  ///< a rung that takes longer skips its remaining rounds
    bool loads = false;
    std::size_t leak_queries = 0;  ///< 0: no leak test
    std::string daemon;            ///< empty: not measured
    std::string daemon_engine;     ///< empty: as `engine`
};

extern const cli::Program kProgram;
cli::Options describe_options();
/// Throws cli::WrongUsage.
Settings read_settings(const cli::CommandLine& line);

}  // namespace gloved::bench
