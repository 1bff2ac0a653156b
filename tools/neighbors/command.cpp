#include "tools/neighbors/command.hpp"

#include <fmt/format.h>

#include "common/format/neighbors.hpp"
#include "kernels/engine.hpp"
#include "tools/neighbors/parts.hpp"

namespace gloved::neighbors {

void add_computing_options(cli::Options& options, const std::string& default_threads,
                           const std::string& default_device) {
    cli::OptionAdder add(options.shown);
    add("k", cli::value("K", "10"), "neighbours of a word, at most 1024");
    add("engine", cli::value("auto|cuda|cpu", "auto"),
        "what computes: a GPU (cuda) or the CPU; auto is cuda if it can run here, else cpu");
    add("threads", cli::value("T"),
        fmt::format("threads of the cpu engine (default: {})", default_threads));
    add("device", cli::value("all|N,N..."),
        fmt::format("cuda: numbers of the GPUs, which share the words (default: {})",
                    default_device));
    add("gpu-memory", cli::value("BYTES"),
        "cuda: limit on the GPU's memory, e.g. 6G (default: all that is free)");
    add("parts", cli::value("DIR"),
        "where finished parts are kept until all are there; other users may not write to it "
        "(default: MODEL_DIR.neighbors-parts, which is removed in the end)");
    // For tests, whose models are smaller than a part.
    options.hidden.add_options()("part-rows", cli::value("N"));
    options.operands = {"model-dir"};
}

Settings read_computing_options(const cli::CommandLine& line) {
    Settings settings;
    settings.model_dir = line.text("model-dir");
    if (settings.model_dir.empty()) throw cli::WrongUsage("MODEL_DIR is needed");
    settings.k = line.count("k", 1, format::kMaxNeighbors);
    const auto engine = kernels::parse_engine(line.text("engine"));
    if (!engine) throw cli::WrongUsage("--engine: " + engine.error().message);
    settings.engine = *engine;
    settings.parts_dir = line.nonempty("parts", "a directory");
    settings.part_rows = line.count("part-rows", 1, kPartRows, kPartRows);
    settings.times = line.given("times");
    settings.engine_options.threads =
        static_cast<unsigned>(line.count("threads", 1, cli::kMaxThreads, 0));
    settings.engine_options.devices = line.devices("device");
    settings.engine_options.fine_plane = kernels::FinePlane::at_start;
    settings.engine_options.gpu_memory_bytes = line.bytes("gpu-memory", 1, 0);
    return settings;
}

}  // namespace gloved::neighbors
