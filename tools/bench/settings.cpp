#include "tools/bench/settings.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <charconv>
#include <string>
#include <system_error>

#include "common/format/layout.hpp"
#include "tools/bench/lists.hpp"
#include "tools/bench/load_settings.hpp"

namespace gloved::bench {
namespace {

using cli::WrongUsage;

constexpr std::uint64_t kMaxRepeat = 1'000'000;
constexpr std::uint64_t kMaxExcluded = 2000;

double read_score(const std::string& text) {
    double score = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, score);
    if (error != std::errc() || stop != end || !(score >= -1 && score <= 1))
        throw WrongUsage("--min is a score from -1 to 1, not '" + text + "'");
    return score;
}

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
                                             const Settings& settings) {
    line.needs("rows", {"dim", "keep"});
    if (line.given("model") == line.given("rows"))
        throw WrongUsage("either --model DIR or --rows N is needed");
    if (!line.given("rows")) return std::nullopt;
    return GenerateOptions{line.count("rows", 1, format::kMaxRows),
                           static_cast<std::uint32_t>(line.count("dim", 1, format::kMaxDim)),
                           settings.seed, settings.threads};
}

void read_engine_settings(const cli::CommandLine& line, Settings& settings) {
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
    if (line.given("min")) settings.min_score = read_score(line.text("min"));
    settings.repeat = line.count("repeat", 1, kMaxRepeat, 0);
}

}  // namespace

const cli::Program kProgram = {"gloved-bench",
                               R"(Usage: gloved-bench --model DIR [options]
       gloved-bench --rows N [--dim D] [options]
       gloved-bench --load SOCKET [options]
       gloved-bench matmin|distmat [options]
       gloved-bench museum search|minimum|distances [options]

Measures how long queries take. For comparison it also measures a plain read of
the same memory and, on the CPU, OpenBLAS's sgemv and sgemm. It runs all of them
in turn, round after round. With --rows it makes up a model of that size in a
temporary directory. With --load it asks a running daemon as much as it can
answer. matmin and distmat measure the engines of these two programs, museum the
kernels that gloved descends from; they have options of their own.

)",
                               R"(
Examples:
  gloved-bench --rows 400000 --simd all
  gloved-bench --rows 2196016 --keep /var/tmp/glove-like --engine all
  gloved-bench --model models/glove --engine cuda --within 1000,100000
  gloved-bench --load /tmp/gloved.sock --mix near=8,sim=1,ping=1 --lone
  gloved-bench --load /tmp/gloved.sock --rate 2000 --seconds 30
  gloved-bench matmin --help
  gloved-bench distmat --help
  gloved-bench museum --help

Exit status:
  0  success
  1  a measurement failed, or a result is wrong
  2  wrong usage
)"};

cli::Options describe_options() {
    boost::program_options::options_description model("The model");
    cli::OptionAdder{model}                                                          //
    ("model", cli::value("DIR"), "measure this model")                               //
        ("rows", cli::value("N"), "make up a model of N words")                      //
        ("dim", cli::value("D", "300"), "with --rows: numbers per word")             //
        ("seed", cli::value("S", "1"), "seed of the made-up model and the queries")  //
        ("keep", cli::value("DIR"), "with --rows: write the model to DIR and keep it");
    boost::program_options::options_description engines("Engines");
    cli::OptionAdder{engines}  //
    ("engine", cli::value("cpu|cuda|auto|all", "cpu"),
     "engine to measure; auto is cuda if it can run here, else cpu; all are those that can run "
     "here")  //
        ("simd", cli::value("avx512|avx2|neon|baseline|all"),
         "cpu: instruction set; all are this machine's (default: the best one of this machine)")  //
        ("threads", cli::value("T", "0"), "threads to use; 0 is one per core")                    //
        ("device", cli::value("all|N,N...", "0"),
         "cuda: numbers of the GPUs; only the engine uses more than the first")  //
        ("spread", cli::value("auto|rows|queries", "auto"),
         "cuda: how several GPUs share the work, as gloved's option of this name")  //
        ("pin", cli::value("on|off", "on"),
         "cuda: lock the model in memory while it is copied to the GPU")  //
        ("planes", cli::value("on|off", "on"),
         "search a copy of the model with 4 bits per number first, then read only the vectors that "
         "it cannot rule out")  //
        ("fine-plane", cli::value("on|off", "on"),
         "cpu: search batches in a copy with 7 bits per number, where the processor is fast at "
         "that")  //
        ("wgmma", cli::value("on|off", "on"),
         "cuda: use the Hopper GPUs' own instruction for products of codes; off measures the one "
         "that other GPUs use")  //
        ("gpu-memory", cli::value("BYTES"),
         "cuda: limit on the GPU's memory, e.g. 440M or 6G, where 1G is 1024M (default: all that "
         "is free)")  //
        ("batches", cli::value("LIST"),
         "queries answered together, numbers with commas between (default: 1,8,64 for cpu, "
         "1,2,8,64,256,1024 for cuda)")                                    //
        ("k", cli::value("K", "10"), "words per answer")                   //
        ("top", cli::value("N"), "search the N most frequent words only")  //
        ("range", cli::value("N"),
         "search N neighbouring words only, at a random place for each query, as a prefix does")  //
        ("within", cli::value("LIST"),
         "also search within lists of so many random words, numbers with commas between, each "
         "beside the search without")  //
        ("exclude", cli::value("N", "1"),
         "words that each query excludes: its own and random ones")              //
        ("min", cli::value("S"), "search words with a score of S or more only")  //
        ("repeat", cli::value("R"), "rounds (default: 9; 49 with --engine cuda)");
    boost::program_options::options_description other("Output");
    cli::OptionAdder{other}("format", cli::value("text|csv", "text"), "how to print results");
    cli::Options options;
    boost::program_options::options_description load("Load on a running daemon");
    describe_load_options(load);
    options.shown.add(model).add(engines).add(other).add(load);
    for (const GoneOption& gone : kGone) {
        if (gone.takes_value)
            options.hidden.add_options()(gone.name, cli::value("VALUE"), "");
        else
            options.hidden.add_options()(gone.name, "");
    }
    return options;
}

Settings read_settings(const cli::CommandLine& line) {
    Settings settings;
    refuse_gone_options(line);
    refuse_load_options(line);
    read_run_settings(line, settings);
    settings.generate = read_generate(line, settings);
    settings.model = line.text("model");
    settings.keep = line.text("keep");
    read_engine_settings(line, settings);
    return settings;
}

}  // namespace gloved::bench
