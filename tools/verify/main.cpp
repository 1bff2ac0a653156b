// gloved-verify: command line and output. The checks are in verify.cpp.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/format/layout.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "tools/bus_error.hpp"
#include "tools/program.hpp"
#include "tools/verify/verify.hpp"

namespace {

using namespace gloved;
namespace po = boost::program_options;
using tools::kDone;
using tools::kFault;

constexpr std::int64_t kMaxThreads = 256;
constexpr std::int64_t kMaxAnswers = 100'000'000;
constexpr std::int64_t kDefaultPlain = 20;
constexpr unsigned kDefaultThreads = 8;  // more wait for the memory

constexpr const char* kHelpHead =
    "Usage: gloved-verify [options] MODEL_DIR\n"
    "Checks that a model is whole: header, pairing, sizes, keys, checksums, padding, norms, finite "
    "numbers, ranks;\n"
    "and that the planes, where there are some, are its own and their bounds hold.\n"
    "One line a check on stdout. Nothing is changed.\n\n";
constexpr const char* kHelpTail =
    "\nExamples:\n"
    "  gloved-verify models/glove\n"
    "  gloved-verify --source glove.6B.100d.txt.gz models/glove\n"
    "  gloved-verify --engines --json models/glove | jq .ok\n\n"
    "Exit status: 0 all is well, 1 a check failed or could not be made, 2 wrong usage.\n";
constexpr tools::Program kProgram = {"gloved-verify", kHelpHead, kHelpTail};

struct CommandLine {
    verify::VerifyOptions options;
    bool json = false;
};

/// What the command line asks for, or the exit status to end with.
int parse(int argc, char** argv, std::optional<CommandLine>& parsed) {
    CommandLine line;
    std::int64_t threads = 0;
    std::int64_t answers = 1000;
    std::int64_t plain = -1;
    po::options_description visible("Options");
    visible.add_options()  //
        ("source", po::value(&line.options.source)->value_name("INPUT"),
         "the download: compare each word, number and rank with it (- reads stdin)")             //
        ("quick", po::bool_switch(&line.options.quick), "only header, pairing, sizes and keys")  //
        ("engines", po::bool_switch(&line.options.engines),
         "ask every engine of this machine the same random queries, with planes and without, and "
         "compare the answers' "
         "bits")  //
        ("answers", po::value(&answers)->value_name("N"),
         "how many each of them gives (default: 1000)")  //
        ("oracle", po::value(&plain)->value_name("M"),
         "how many of these a plain search gives too (default: 20)")  //
        ("seed", po::value(&line.options.asked.seed)->value_name("S"),
         "other queries (default: 1)")  //
        ("ways", po::value(&line.options.asked.ways)->value_name("LIST"),
         "which engines, with commas between: \"cpu avx2,cuda plane\" (default: all)")  //
        ("reference", po::value(&line.options.asked.reference)->value_name("WAY"),
         "the engine that others are compared with (default: the first)")          //
        ("json", po::bool_switch(&line.json), "one JSON object instead of lines")  //
        ("threads", po::value(&threads)->value_name("T"),
         "threads that check (default: one a core, at most 8)")  //
        ("help", "show this")("version", "show the version");
    po::options_description all;
    all.add(visible).add_options()("model-dir", po::value(&line.options.model_dir));
    po::positional_options_description positional;
    positional.add("model-dir", 1);

    po::variables_map values;
    if (const auto status = kProgram.read(argc, argv, visible, all, positional, values))
        return *status;
    if (line.options.model_dir.empty()) return kProgram.wrong_usage("MODEL_DIR is needed");
    if (line.options.quick && !line.options.source.empty())
        return kProgram.wrong_usage("--quick and --source exclude each other");
    if (line.options.quick && line.options.engines)
        return kProgram.wrong_usage("--quick and --engines exclude each other");
    for (const char* const name : {"answers", "oracle", "seed", "ways", "reference"}) {
        if (values.count(name) != 0 && !line.options.engines)
            return kProgram.wrong_usage(fmt::format("--{} goes with --engines", name));
    }
    if (values.count("oracle") == 0) plain = std::min(answers, kDefaultPlain);
    if (answers < 1 || answers > kMaxAnswers || plain < 0 || plain > answers) {
        return kProgram.wrong_usage(
            fmt::format("--answers is 1 to {}, --oracle 0 to as many", kMaxAnswers));
    }
    line.options.asked.answers = static_cast<std::size_t>(answers);
    line.options.asked.plain = static_cast<std::size_t>(plain);
    if (values.count("threads") != 0 && (threads < 1 || threads > kMaxThreads)) {
        return kProgram.wrong_usage(fmt::format("--threads is 1 to {}", kMaxThreads));
    }
    line.options.threads =
        threads != 0 ? static_cast<std::size_t>(threads)
                     : std::clamp(std::thread::hardware_concurrency(), 1U, kDefaultThreads);
    parsed = std::move(line);
    return kDone;
}

void print_json(const verify::VerifyOptions& options, const verify::ModelFacts& facts,
                const std::vector<verify::Check>& checks, bool sound) {
    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (const verify::Check& check : checks) {
        list.push_back({{"name", check.name}, {"ok", check.ok}, {"detail", check.detail}});
    }
    const bool opened = facts.rows != 0;
    const Json json = {{"model", options.model_dir},
                       {"ok", sound},
                       {"rows", opened ? Json(facts.rows) : Json(nullptr)},
                       {"dim", opened ? Json(facts.dim) : Json(nullptr)},
                       {"generation", opened ? Json(format::hex(facts.generation)) : Json(nullptr)},
                       {"minimum", facts.minimum},
                       {"maximum", facts.maximum},
                       {"checks", list}};
    fmt::print("{}\n", json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

int run_program(int argc, char** argv) {
    std::optional<CommandLine> line;
    if (const int status = parse(argc, argv, line); !line) return status;
    // The second one ends the program where it stands: an engine in the middle of a large batch,
    // say. Nothing is left.
    const auto& stop = tools::stop_on_signals(tools::SecondSignal::ends_at_once);

    tools::explain_bus_errors(
        "gloved-verify: a file of the model became shorter while it was read, or its disk cannot "
        "be read\n");

    std::vector<verify::Check> checks;
    const auto facts = verify::verify(line->options, stop, [&](const verify::Check& made) {
        // What comes from a file is in the detail: a check is one line.
        const verify::Check check{made.name, made.ok, without_control_bytes(made.detail)};
        checks.push_back(check);
        if (line->json) return;
        fmt::print("{:<7} {}: {}\n", check.ok ? "ok" : "FAILED", check.name, check.detail);
        std::fflush(stdout);
    });
    if (!facts) {
        kProgram.say(facts.error().message);
        return kFault;
    }
    const auto failed = std::count_if(checks.begin(), checks.end(),
                                      [](const verify::Check& check) { return !check.ok; });
    const std::string name = without_control_bytes(line->options.model_dir);
    if (line->json) {
        print_json(line->options, *facts, checks, failed == 0);
    } else if (failed == 0) {
        fmt::print("{}: sound, {} checks\n", name, checks.size());
    } else {
        fmt::print("{}: NOT sound, {} of {} checks failed\n", name, failed, checks.size());
    }
    return failed == 0 ? kDone : kFault;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-verify", run_program, argc, argv);
}
