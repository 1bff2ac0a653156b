#include "tools/bench/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <limits>
#include <string>
#include <utility>

#include "cli/signals.hpp"
#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/program_version.hpp"
#include "kernels/registry.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/measure.hpp"

namespace gloved::bench {
namespace {

using cli::WrongUsage;

constexpr std::uint64_t kMaxRepeat = 1'000'000;
constexpr std::uint64_t kMaxExcluded = 2000;

/// An option of a measurement that is a program of its own now.
struct GoneOption {
    const char* name;
    bool takes_value;
    const char* instead;
};

constexpr GoneOption kGone[] = {
    {"loads", false,
     "tests/scale/daemon_times.py measures how long a daemon takes to load a model, and 'time "
     "gloved-convert' how long text takes"},
    {"daemon", true, "tests/scale/daemon_times.py measures a daemon"},
    {"daemon-engine", true, "tests/scale/daemon_times.py measures a daemon, with --engine"},
    {"leak-queries", true, "tests/scale/leak.py compares memory before and after queries"},
};

void refuse_gone_options(const cli::CommandLine& line) {
    for (const GoneOption& gone : kGone) {
        if (line.given(gone.name))
            throw WrongUsage(fmt::format("--{} is gone: {}", gone.name, gone.instead));
    }
}

/// The size of the model to make up, if any.
std::optional<GenerateOptions> read_generate(const cli::CommandLine& line,
                                             const EnginesSettings& settings) {
    line.needs("rows", {"dim", "keep"});
    if (line.given("model") == line.given("rows"))
        throw WrongUsage("either --model DIR or --rows N is needed");
    if (!line.given("rows")) return std::nullopt;
    return GenerateOptions{line.count("rows", 1, format::kMaxRows),
                           static_cast<std::uint32_t>(line.count("dim", 1, format::kMaxDim)),
                           settings.seed, settings.threads};
}

void read_engine_settings(const cli::CommandLine& line, EnginesSettings& settings) {
    settings.all_engines = line.text("engine") == "all";
    if (!settings.all_engines) {
        const auto engine = kernels::parse_engine(line.text("engine"));
        if (!engine) throw WrongUsage(engine.error().message);
        settings.engine = *engine;
    }
    settings.simd = line.text("simd");
    settings.pin = line.on_or_off("pin");
    settings.planes = line.on_or_off("planes");
    settings.fine_plane = line.on_or_off("fine-plane");
    settings.wgmma = line.on_or_off("wgmma");
    using kernels::Spread;
    settings.spread = line.choice<Spread>(
        "spread",
        {{"auto", Spread::automatic}, {"rows", Spread::rows}, {"queries", Spread::queries}});
    if (!line.text("gpu-memory").empty())
        settings.gpu_memory_bytes = line.bytes("gpu-memory", 1, 0);
    if (line.given("batches")) settings.batches = parse_batches(line.text("batches"));
    settings.k = line.count("k", 1, format::kMaxRows);
    settings.top = line.count("top", 1, format::kMaxRows, 0);
    settings.range = line.count("range", 1, format::kMaxRows, 0);
    if (line.given("within")) settings.within = parse_list_sizes(line.text("within"));
    settings.exclude = line.count("exclude", 1, kMaxExcluded, 1);
    if (line.given("min")) settings.min_score = line.number("min", -1, 1);
    settings.repeat = line.count("repeat", 1, kMaxRepeat, 0);
}

void print_header(const format::Model& model, const EnginesSettings& settings) {
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    note(fmt::format("gloved-bench {}", kProgramVersion));
    note("machine  " + processor_text(settings));
    note(fmt::format("model    {} x {} float32, {:.3f} GB of vectors, generation {}",
                     with_commas(model.rows()), model.dim(),
                     static_cast<double>(model.vectors().size_bytes()) / 1e9,
                     format::hex(model.generation())));
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (!entry.unavailable.empty())
            note(fmt::format("no {}: {}", to_string(entry.kind), entry.unavailable));
    }
}

Status measure_all(const format::Model& model, const EnginesSettings& settings) {
    // First, so that the driver's start is not part of another measurement.
    std::optional<Result<DeviceFacts>> device;
    if (settings.engine != kernels::EngineKind::cpu) device = start_device(settings.device());
    print_header(model, settings);
    // Measurements that need a device print why there is none.
    if (device && *device) {
        const DeviceFacts& facts = **device;
        print_note(settings.format, fmt::format("device   {}, {:.1f} GB, driver {}; ready in {} ms",
                                                facts.name, static_cast<double>(facts.bytes) / 1e9,
                                                facts.driver, figure(facts.start_ms)));
    }
    std::optional<OpenBlas> blas;
    if (wants_processor(settings)) {
        auto loaded = model.rows() > std::numeric_limits<int>::max()
                          ? Error{ErrorCode::unavailable, "more rows than its interface can count"}
                          : OpenBlas::load(settings.threads);
        print_note(settings.format, "sgemv    " + (loaded ? loaded->description()
                                                          : "left out: " + loaded.error().message));
        if (loaded) blas.emplace(*std::move(loaded));
    }
    return print_engine_table(model, settings, blas ? &*blas : nullptr);
}

}  // namespace

const cli::Program kEnginesProgram = {"gloved-bench engines",
                                      R"(Usage: gloved-bench engines --model DIR [options]
       gloved-bench engines --rows N [--dim D] [options]

Measures how long queries take. For comparison it also measures a plain read of
the same memory and, on the CPU, OpenBLAS's sgemv and sgemm. It runs all of them
in turn, round after round. With --rows it makes up a model of that size in a
temporary directory.

)",
                                      R"(
Examples:
  gloved-bench engines --rows 400000 --simd all
  gloved-bench engines --rows 2196016 --keep /var/tmp/glove-like --engine all
  gloved-bench engines --model models/glove --engine cuda --within 1000,100000

Exit status:
  0  success
  1  a measurement failed, or a result is wrong
  2  wrong usage
)"};

cli::Options describe_engines_options() {
    boost::program_options::options_description model("The model");
    cli::OptionAdder add_to_model(model);
    add_to_model("model", cli::value("DIR"), "measure this model");
    add_to_model("rows", cli::value("N"), "make up a model of N words");
    add_to_model("dim", cli::value("D", "300"), "with --rows: numbers per word");
    add_to_model("seed", cli::value("S", "1"), "seed of the made-up model and the queries");
    add_to_model("keep", cli::value("DIR"), "with --rows: write the model to DIR and keep it");
    boost::program_options::options_description engines("Engines");
    cli::OptionAdder add(engines);
    add("engine", cli::value("cpu|cuda|auto|all", "cpu"),
        "engine to measure; auto is cuda if it can run here, else cpu; all are those that can run "
        "here");
    add("simd", cli::value("avx512|avx2|neon|baseline|all"),
        "cpu: instruction set; all are this machine's (default: the best one of this machine)");
    add("threads", cli::value("T", "0"), "threads to use; 0 is one per core");
    add("device", cli::value("all|N,N...", "0"),
        "cuda: numbers of the GPUs; only the engine uses more than the first");
    add("spread", cli::value("auto|rows|queries", "auto"),
        "cuda: how several GPUs share the work, as gloved's option of this name");
    add("pin", cli::value("on|off", "on"),
        "cuda: lock the model in memory while it is copied to the GPU");
    add("planes", cli::value("on|off", "on"),
        "search a copy of the model with 4 bits per number first, then read only the vectors that "
        "it cannot rule out");
    add("fine-plane", cli::value("on|off", "on"),
        "cpu: search batches in a copy with 7 bits per number, where the processor is fast at "
        "that");
    add("wgmma", cli::value("on|off", "on"),
        "cuda: use the Hopper GPUs' own instruction for products of codes; off measures the one "
        "that other GPUs use");
    add("gpu-memory", cli::value("BYTES"),
        "cuda: limit on the GPU's memory, e.g. 440M or 6G, where 1G is 1024M (default: all that "
        "is free)");
    add("batches", cli::value("LIST"),
        "queries answered together, numbers with commas between (default: 1,8,64 for cpu, "
        "1,2,8,64,256,1024 for cuda)");
    add("k", cli::value("K", "10"), "words per answer");
    add("top", cli::value("N"), "search the N most frequent words only");
    add("range", cli::value("N"),
        "search N neighbouring words only, at a random place for each query, as a prefix does");
    add("within", cli::value("LIST"),
        "also search within lists of so many random words, numbers with commas between, each "
        "beside the search without");
    add("exclude", cli::value("N", "1"), "words that each query excludes: its own and random ones");
    add("min", cli::value("S"), "search words with a score of S or more only");
    add("repeat", cli::value("R"), "rounds (default: 9; 49 with --engine cuda)");
    boost::program_options::options_description other("Output");
    cli::OptionAdder add_to_other(other);
    add_to_other("format", cli::value("text|csv", "text"), "how to print results");
    cli::Options options;
    options.shown.add(model).add(engines).add(other);
    for (const GoneOption& gone : kGone) {
        if (gone.takes_value)
            options.hidden.add_options()(gone.name, cli::value("VALUE"), "");
        else
            options.hidden.add_options()(gone.name, "");
    }
    return options;
}

EnginesSettings read_engines_settings(const cli::CommandLine& line) {
    EnginesSettings settings;
    refuse_gone_options(line);
    read_run_settings(line, settings);
    settings.devices = line.devices("device");
    settings.generate = read_generate(line, settings);
    settings.model = line.text("model");
    settings.keep = line.text("keep");
    read_engine_settings(line, settings);
    return settings;
}

Status print_engines(const EnginesSettings& settings) {
    auto scratch = ScratchDirectory::create();
    if (!scratch) return scratch.error();
    std::string directory = settings.model;
    if (settings.generate) {
        directory = settings.keep.empty() ? scratch->path() + "/model" : settings.keep;
        Result<format::Header> made = format::Header();
        const double ms = time_ms(
            [&] { made = generate_model(directory, *settings.generate, cli::stop_requested); });
        if (!made) return made.error();
        kEnginesProgram.say(fmt::format("made {} in {:.1f} s", directory, ms / 1000));
    }
    auto model = format::Model::open(directory);
    if (!model) return model.error();
    const auto norms = model->norms();
    if (std::ranges::none_of(norms, [](double norm) { return norm > 0; })) {
        return bad_source("{}: every vector is zero; there is nothing to ask for", directory);
    }
    return measure_all(*model, settings);
}

}  // namespace gloved::bench
