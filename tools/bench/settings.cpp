#include "tools/bench/settings.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <limits>

#include "common/byte_count.hpp"
#include "common/format/layout.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "tools/bench/command_line.hpp"
#include "tools/bench/lists.hpp"

namespace gloved::bench {
namespace {

namespace po = boost::program_options;

constexpr std::uint64_t kMaxRepeat = 1'000'000;
constexpr std::uint64_t kMaxLeakQueries = 1'000'000'000;
constexpr std::uint64_t kMaxRungSeconds = 100'000;

constexpr const char* kSynopsis = R"(Usage: gloved-bench --model DIR [OPTIONS]
       gloved-bench --rows N [--dim D] [OPTIONS]
       gloved-bench matmin|distmat [OPTIONS]
Times queries beside a plain read of the same memory, and on the processor beside OpenBLAS's sgemv and sgemm, round by round.
)";

constexpr const char* kExamples = R"(
With --rows it makes up a model of that size, in a temporary directory unless --keep names one.

  gloved-bench --rows 400000 --dim 300 --simd all
  gloved-bench --rows 2196016 --dim 300 --keep /var/tmp/glove-like --engine all
  gloved-bench --model /var/tmp/glove-like --rungs all --svg rungs.svg
  gloved-bench --model /var/lib/gloved/glove --engine cuda --daemon /usr/bin/gloved --format csv
  gloved-bench --rows 10000 --dim 100 --engine cuda --leak-queries 1000000
  gloved-bench matmin --help
  gloved-bench distmat --help

Exit status: 0 done, 1 something could not be measured or is wrong, 2 wrong usage.
)";

po::options_description all_options() {
    // clang-format off
    po::options_description model("The model");
    model.add_options()
        ("model", value("DIR"), "measure with this model")
        ("rows", value("N"), "make up a model of N words")
        ("dim", preset("D", "300"), "with --rows: components of a vector")
        ("seed", preset("S", "1"), "decides the made-up model and the words asked for")
        ("keep", value("DIR"), "with --rows: write the model there and leave it");
    po::options_description engines("Engines");
    engines.add_options()
        ("engine", preset("NAME|all", "cpu"), "engine to measure: cpu, cuda, auto, or all that can run here")
        ("simd", preset("NAME|all", ""), "cpu engine: instruction set, or all; default: the best")
        ("threads", preset("T", "0"), "threads of everything measured; 0: one a usable processor")
        ("device", preset("N", "0"), "cuda: which device")
        ("pin", preset("on|off", "on"), "cuda: page-lock the model while it is copied to the device")
        ("planes", preset("on|off", "on"), "read a 4-bit plane first, and only the vectors that it lets through")
        ("gpu-memory", preset("BYTES", ""), "cuda: use so much of the device's memory at most, as 440M")
        ("batches", value("LIST"), "queries answered at once; default 1,8,64, for cuda 1,2,8,64,256,1024")
        ("k", preset("K", "10"), "words an answer has")
        ("repeat", value("R"), "rounds; default 9, for cuda alone 49, for rungs 10");
    po::options_description other("What else is measured");
    other.add_options()
        ("rungs", value("LIST|all"), "instead of engines: the ladder of kernels, v0,v1,… or all")
        ("rung-seconds", preset("S", "60"), "with --rungs: a rung that takes longer ends before its last round")
        ("svg", value("FILE"), "with --rungs: draw a chart there")
        ("loads", "ways to load the model: text or binary, page-locked or not; --rungs has it too")
        ("daemon", value("PATH"), "measure this gloved program too")
        ("daemon-engine", value("NAME"), "its engine; default: the one of --engine")
        ("leak-queries", value("N"), "instead: answer N queries and compare memory in use before and after")
        ("format", preset("text|csv", "text"), "how results are printed")
        ("help", "this text")
        ("version", "the version");
    // clang-format on
    po::options_description all;
    all.add(model).add(engines).add(other);
    return all;
}

Result<Settings> read_settings(CommandLine& line) {
    const auto given = [&](const char* name) { return line.given(name); };
    const auto text = [&](const char* name) { return line.text(name); };
    const auto count = [&](const char* name, std::uint64_t least, std::uint64_t most) {
        return line.count(name, least, most);
    };

    Settings settings;
    settings.seed = count("seed", 0, std::numeric_limits<std::uint64_t>::max());
    settings.threads = line.threads();
    settings.device = line.device();
    settings.k = static_cast<std::size_t>(count("k", 1, format::kMaxRows));
    if (given("repeat")) settings.repeat = static_cast<std::size_t>(count("repeat", 1, kMaxRepeat));
    if (given("leak-queries"))
        settings.leak_queries = static_cast<std::size_t>(count("leak-queries", 1, kMaxLeakQueries));
    settings.rung_seconds = static_cast<double>(count("rung-seconds", 0, kMaxRungSeconds));
    if (given("model") == given("rows")) return wrong_usage("say either --model DIR or --rows N");
    settings.model = text("model");
    if (given("rows")) {
        settings.generate =
            GenerateOptions{count("rows", 1, format::kMaxRows),
                            static_cast<std::uint32_t>(count("dim", 1, format::kMaxDim)),
                            settings.seed, settings.threads};
    }
    if (line.fault()) return *line.fault();
    if (given("dim") && !settings.generate)
        return wrong_usage("--dim goes with --rows: a model has its own");
    if (given("keep") && !settings.generate) {
        return wrong_usage("--keep goes with --rows: it says where the made-up model stays");
    }
    settings.keep = text("keep");
    settings.engine = text("engine");
    settings.simd = text("simd");
    if (given("batches")) {
        auto batches = parse_batches(text("batches"));
        if (!batches) return batches.error();
        settings.batches = *std::move(batches);
    }
    if (text("pin") != "on" && text("pin") != "off") return wrong_usage("--pin takes on or off");
    settings.pin = text("pin") == "on";
    if (text("planes") != "on" && text("planes") != "off")
        return wrong_usage("--planes takes on or off");
    settings.planes = text("planes") == "on";
    if (!text("gpu-memory").empty()) {
        const auto bytes = byte_count_from(text("gpu-memory"));
        if (!bytes || *bytes == 0)
            return wrong_usage("--gpu-memory takes bytes, as 460000000 or 440M");
        settings.gpu_memory_bytes = *bytes;
    }
    if (given("rungs") && text("rungs").empty())
        return wrong_usage("--rungs takes names with commas between, or all");
    settings.rungs = text("rungs");
    if (given("rungs") && settings.k > kernels::ladder::kMaxLadderHits) {
        return wrong_usage(fmt::format("with --rungs, --k is at most {}: rungs find no more",
                                       kernels::ladder::kMaxLadderHits));
    }
    if (given("rung-seconds") && !given("rungs"))
        return wrong_usage("--rung-seconds goes with --rungs");
    if (given("svg") && !given("rungs"))
        return wrong_usage("--svg goes with --rungs: it draws them");
    settings.svg = text("svg");
    settings.loads = given("loads");
    if (given("leak-queries") && (given("rungs") || given("daemon") || given("loads"))) {
        return wrong_usage("--leak-queries goes without --rungs, --loads and --daemon");
    }
    if (given("daemon-engine") && !given("daemon"))
        return wrong_usage("--daemon-engine goes with --daemon");
    settings.daemon = text("daemon");
    settings.daemon_engine = text("daemon-engine");
    settings.format = line.format();
    if (line.fault()) return *line.fault();
    return settings;
}

}  // namespace

Result<std::optional<Settings>> read_command_line(int argc, char** argv, std::ostream& out) {
    return read_settings_of(argc, argv, all_options(), kSynopsis, kExamples, out, read_settings);
}

}  // namespace gloved::bench
