// gloved-verify: its command line and output. The checks are in verify.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/format/layout.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "tools/bus_error.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/download.hpp"
#include "tools/verify/verify.hpp"

namespace {

using namespace gloved;
using cli::kDone;
using cli::kFault;
using cli::WrongUsage;

/// Exit status of --download for a file of which no checksum is published.
constexpr int kNothingKnown = 3;
constexpr std::uint64_t kMaxAnswers = 100'000'000;
constexpr std::uint64_t kDefaultOracleAnswers = 20;

constexpr cli::Program kProgram = {"gloved-verify",
                                   R"(Usage: gloved-verify [options] MODEL_DIR
       gloved-verify engines [options] MODEL_DIR
       gloved-verify --download FILE [--json]

Checks that a model is complete and undamaged: sizes and checksums of its files,
the order of its words, that all numbers are finite, that norms and planes agree
with the vectors, and that each frequency rank occurs once. Prints one line per
check. Changes nothing. With --audit it also checks answers that a daemon gave.
With --download it checks a file as it was fetched. With engines it also checks
that all engines answer alike: gloved-verify engines --help

)",
                                   R"(
Examples:
  gloved-verify --download glove.840B.300d.zip
  gloved-verify models/glove
  gloved-verify --source glove.6B.100d.txt.gz models/glove
  gloved-verify --source glove.6B.100d.txt.gz --source own.txt models/own
  gloved-verify engines models/glove
  gloved-verify --neighbors all models/glove
  gloved-verify --audit answers.json --list animals=animals.txt models/glove
  gloved-verify --json models/glove | jq .ok

Exit status:
  0  all checks passed
  1  a check failed, a file could not be read, or a signal came
  2  wrong usage
  3  --download: no checksum is published of a file of this name
)"};

constexpr cli::Program kEnginesProgram = {"gloved-verify engines",
                                          R"(Usage: gloved-verify engines [options] MODEL_DIR

Checks that every engine that can run here gives the same answers: checks the
model as gloved-verify does, then sends the same random queries to each engine
and compares the answers bit by bit. Prints one line per check. Changes nothing.

)",
                                          R"(
Examples:
  gloved-verify engines models/glove
  gloved-verify engines --ways 'cpu avx2,cpu avx2 plane' models/glove

Exit status:
  0  all checks passed
  1  a check failed, a file could not be read, or a signal came
  2  wrong usage
)"};

/// The options that only engines has. Without the subcommand they need --engines.
constexpr auto kOfEngines = {"answers", "oracle", "ways", "reference", "device"};

struct Settings {
    std::string download;  ///< instead of a model
    verify::VerifyOptions options;
    bool json = false;
};

void add_common_options(cli::Options& options) {
    cli::OptionAdder add(options.shown);
    add("json", "print one JSON object instead of lines");
    add("threads", cli::value("T"), "threads to use (default: one per core, at most 8)");
    options.operands = {"model-dir"};
}

void add_engines_options(boost::program_options::options_description& group) {
    cli::OptionAdder add(group);
    add("answers", cli::value("N", "1000"), "queries for each engine");
    add("oracle", cli::value("M", "20"), "number of these queries that a plain search answers too");
    add("ways", cli::value("LIST"),
        "the engines to compare, separated by commas. Each is cuda or cpu SET (avx512, avx2, "
        "neon, baseline), with plane after it if it searches the planes first. cuda mma plane "
        "multiplies as GPUs without wgmma do; with several GPUs, cuda rows plane gives each a "
        "part of the words, and cuda one plane uses the first alone. E.g. cpu avx2,cuda plane "
        "(default: all that can run here)");
    add("reference", cli::value("WAY"),
        "the engine to compare the others with, named as in --ways (default: the first of "
        "--ways, or cpu with the best instruction set)");
    add("device", cli::value("all|N,N...", "all"), "numbers of the GPUs that cuda uses");
}

cli::Options describe_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("neighbors", cli::value("N|all", "20"),
        "how many lists of the neighbors file, if there is one, to compare with a plain search");
    add("seed", cli::value("S", "1"), "seed of the choice of these lists");
    add("source", cli::values("INPUT"),
        "also compare every word, number and rank with the download that the model was made from, "
        "or - for stdin; repeat for several, in their order");
    add("words", cli::value("FILE"),
        "with --source: the words of an array (default: the file that the model was made with)");
    add("tensor", cli::value("NAME"),
        "with --source: the tensor of a safetensors file (default: as the model was made)");
    add("quick",
        "check only what gloved checks at start: headers, sizes, words, and that the files belong "
        "together");
    add("audit", cli::value("FILE"),
        "also check the answers in FILE, or on stdin for -: one reply in JSON a line, asked with "
        "certify=1; each is found again by a plain search");
    add("list", cli::values("NAME=FILE"),
        "with --audit: a list of words that answers name in within= or without=; repeat for "
        "several");
    add("download", cli::value("FILE"),
        "instead of a model, check that FILE, or stdin for -, has the SHA-256 that is known of a "
        "file of Stanford");
    add_common_options(options);
    // As before there was a subcommand, for one more release.
    options.hidden.add_options()("engines", "");
    add_engines_options(options.hidden);
    return options;
}

cli::Options describe_engines_options() {
    cli::Options options;
    add_engines_options(options.shown);
    cli::OptionAdder add(options.shown);
    add("seed", cli::value("S", "1"), "seed of the queries");
    add_common_options(options);
    return options;
}

void add_list(const std::string& text, verify::AuditChecks& audit) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const verify::AuditChecks::List list = {text.substr(0, equals),
                                            text.substr(std::min(equals + 1, text.size()))};
    if (list.name.empty() || list.path.empty())
        throw WrongUsage("--list takes NAME=FILE, not " + printable(text));
    if (std::ranges::find(audit.lists, list.name, &verify::AuditChecks::List::name) !=
        audit.lists.end())
        throw WrongUsage("--list: two lists are called " + printable(list.name));
    audit.lists.push_back(list);
}

void read_common_settings(const cli::CommandLine& line, Settings& settings) {
    verify::VerifyOptions& options = settings.options;
    settings.json = line.given("json");
    options.model_dir = line.text("model-dir");
    if (options.model_dir.empty()) throw WrongUsage("MODEL_DIR is needed");
    options.asked.seed =
        line.count("seed", 0, std::numeric_limits<std::uint64_t>::max(), options.asked.seed);
    options.neighbors.seed = options.asked.seed;
    options.threads = line.threads(cli::kFewThreads);
}

void read_engines(const cli::CommandLine& line, verify::VerifyOptions& options) {
    options.engines = true;
    auto& asked = options.asked;
    asked.answers = line.count("answers", 1, kMaxAnswers, 1000);
    asked.plain = line.count("oracle", 0, asked.answers,
                             std::min<std::uint64_t>(asked.answers, kDefaultOracleAnswers));
    if (line.given("ways")) asked.ways = line.text("ways");
    if (line.given("reference")) asked.reference = line.text("reference");
    options.devices = line.devices("device");
}

Settings read_settings(const cli::CommandLine& line) {
    Settings settings;
    verify::VerifyOptions& options = settings.options;
    line.excludes("quick", {"source", "engines", "neighbors", "audit"});
    line.needs("audit", {"list"});
    line.needs("source", {"words", "tensor"});
    for (const char* name : kOfEngines) {
        if (line.given(name) && !line.given("engines"))
            throw WrongUsage(fmt::format("--{} is an option of gloved-verify engines", name));
    }
    line.excludes("download",
                  {"source", "engines", "neighbors", "quick", "threads", "seed", "audit"});
    if (line.given("download")) {
        settings.json = line.given("json");
        settings.download = line.text("download");
        if (settings.download.empty()) throw WrongUsage("--download needs a file");
        if (line.given("model-dir")) throw WrongUsage("--download takes no MODEL_DIR");
        return settings;
    }
    read_common_settings(line, settings);
    line.each("source", [&](const std::string& source) {
        if (source.empty()) throw WrongUsage("--source takes an input");
        if (source == "-" && std::ranges::count(options.sources, "-") != 0)
            throw WrongUsage("--source - can be given once: standard input can be read once");
        options.sources.push_back(source);
    });
    options.words = line.nonempty("words", "a file");
    options.tensor = line.nonempty("tensor", "the name of a tensor");
    if (options.words == "-" && std::ranges::count(options.sources, "-") != 0)
        throw WrongUsage("--source and --words cannot both be -");
    if (options.sources.size() > 1 && !(options.words.empty() && options.tensor.empty()))
        throw WrongUsage("--words and --tensor go with one --source");
    options.quick = line.given("quick");
    options.audit.file = line.nonempty("audit", "a file of replies, or - for stdin");
    line.each("list", [&](const std::string& list) { add_list(list, options.audit); });
    options.neighbors.rows = line.text("neighbors") == "all"
                                 ? std::numeric_limits<std::size_t>::max()
                                 : line.count("neighbors", 0, format::kMaxRows);
    if (line.given("engines")) {
        read_engines(line, options);
        kProgram.say(
            "--engines and its options are accepted for one more release: use gloved-verify "
            "engines");
    }
    return settings;
}

Settings read_engines_settings(const cli::CommandLine& line) {
    Settings settings;
    read_common_settings(line, settings);
    read_engines(line, settings.options);
    return settings;
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

int run_download(const Settings& settings) {
    const auto& stop = cli::stop_on_signals(cli::SecondSignal::ends_at_once);
    const auto download = verify::read_download(settings.download, stop);
    if (!download) {
        kProgram.say(download.error().message);
        return kFault;
    }
    const auto verdict = verify::judge(*download, source::published_files());
    const bool same = verdict.state == verify::DownloadVerdict::State::same;
    const bool known = verdict.state != verify::DownloadVerdict::State::unknown;
    const std::string name = without_control_bytes(download->path);
    if (settings.json) {
        using Json = nlohmann::ordered_json;
        const Json json = {{"download", download->path},
                           {"ok", known ? Json(same) : Json(nullptr)},
                           {"name", verdict.name.empty() ? Json(nullptr) : Json(verdict.name)},
                           {"bytes", download->bytes},
                           {"sha256", download->sha256},
                           {"detail", verdict.detail}};
        fmt::print("{}\n", json.dump(-1, ' ', true, Json::error_handler_t::replace));
    } else {
        fmt::print("{:<7} {} {}\n",
                   same    ? "ok"
                   : known ? "FAILED"
                           : "unknown",
                   name, verdict.detail);
    }
    return same ? kDone : known ? kFault : kNothingKnown;
}

int run(const Settings& settings) {
    if (!settings.download.empty()) return run_download(settings);
    // A second signal ends the program at once, in the middle of an engine's large batch, say.
    const auto& stop = cli::stop_on_signals(cli::SecondSignal::ends_at_once);
    tools::explain_bus_errors(
        "gloved-verify: a file of the model became shorter while it was read, or its disk cannot "
        "be read\n");

    std::vector<verify::Check> checks;
    const auto facts = verify::verify(settings.options, stop, [&](const verify::Check& made) {
        // The detail may quote a file: a check is one line.
        verify::Check check = made;
        check.detail = without_control_bytes(made.detail);
        checks.push_back(check);
        if (settings.json) return;
        fmt::print("{:<7} {}: {}\n", check.ok ? "ok" : "FAILED", check.name, check.detail);
        std::fflush(stdout);
    });
    if (!facts) {
        kProgram.say(facts.error().message);
        return kFault;
    }
    const auto failed =
        std::ranges::count_if(checks, [](const verify::Check& check) { return !check.ok; });
    const auto of_model = std::ranges::count(checks, false, &verify::Check::of_answers);
    const bool only_answers_failed = std::ranges::all_of(
        checks, [](const verify::Check& check) { return check.ok || check.of_answers; });
    const std::string name = without_control_bytes(settings.options.model_dir);
    if (settings.json) {
        print_json(settings.options, *facts, checks, failed == 0);
    } else if (failed == 0) {
        fmt::print("{}: sound, {} checks\n", name, checks.size());
    } else if (only_answers_failed) {
        fmt::print("{}: sound, {} checks; the answers are NOT confirmed\n", name, of_model);
    } else {
        fmt::print("{}: NOT sound, {} of {} checks failed\n", name, failed, checks.size());
    }
    return failed == 0 ? kDone : kFault;
}

int run_program(int argc, char** argv) {
    auto arguments = cli::arguments_of(argc, argv);
    if (!arguments.empty() && arguments.front() == "engines") {
        arguments.erase(arguments.begin());
        return cli::run(
            kEnginesProgram, describe_engines_options(), arguments,
            [](const cli::CommandLine& line) { return run(read_engines_settings(line)); });
    }
    return cli::run(kProgram, describe_options(), arguments,
                    [](const cli::CommandLine& line) { return run(read_settings(line)); });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-verify", run_program, argc, argv);
}
