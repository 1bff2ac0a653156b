// What the command line asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

struct Settings {
    std::string model;                        ///< empty: made up
    std::optional<GenerateOptions> generate;  ///< the model to make up
    std::string keep;                         ///< where it stays; empty: nowhere
    std::uint64_t seed = 0;

    std::string engine;  ///< a name of the registry, «auto» or «all»
    std::string simd;
    unsigned threads = 0;  ///< never 0
    int device = 0;
    bool pin = true;
    bool planes = true;
    std::uint64_t gpu_memory_bytes = 0;  ///< 0: what is free
    std::vector<std::size_t> batches;    ///< empty: what suits the engine
    std::size_t k = 0;
    std::size_t repeat = 0;  ///< 0: what suits the measurement

    std::string rungs;        ///< empty: engines are measured, not rungs
    double rung_seconds = 0;  ///< a rung's rounds end early after that
    std::string svg;          ///< empty: no chart
    bool loads = false;
    std::size_t leak_queries = 0;  ///< 0: not looked for
    std::string daemon;            ///< empty: not measured
    std::string daemon_engine;     ///< empty: as `engine`

    TableFormat format = TableFormat::text;
};

/// Reads the command line; nothing where --help or --version was all, which is answered on `out`.
/// The error is bad_request.
Result<std::optional<Settings>> read_command_line(int argc, char** argv, std::ostream& out);

}  // namespace gloved::bench
