#include "daemon/options.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "common/quoting.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::daemon {
namespace {

using cli::CommandLine;
using cli::OptionAdder;
using cli::WrongUsage;
using Group = boost::program_options::options_description;

constexpr std::uint64_t kMaxCount = 0xFFFFFFFF;
constexpr std::uint64_t kMaxThreads = 4096;
constexpr std::uint64_t kMaxIoThreads = 64;
/// By default: three loops for eight processors. The rest is for engines and clients.
constexpr unsigned kLoops = 3;
constexpr unsigned kProcessorsForLoops = 8;
constexpr unsigned kMaxDefaultIoThreads = 8;
constexpr double kMaxBatchMs = 60000;
constexpr double kMaxSeconds = 1e9;
constexpr unsigned kHelpColumns = 80;
constexpr unsigned kMinDescriptionColumns = 46;

constexpr cli::Program kProgram = {"gloved",
                                   R"(Usage: gloved --model [NAME=]DIR... [options]

Serves models made by gloved-convert: answers nearest-word queries on a Unix
socket. Runs in the foreground.

Example:
  gloved --model models/glove --socket /tmp/gloved.sock
  echo 'king - man + woman' | socat -t60 - UNIX-CONNECT:/tmp/gloved.sock
  gloved --model models/glove --list animals=animals.txt
  echo 'NEAR within=animals snake' | gloved-client --lines
)",
                                   R"(
Signals:
  SIGTERM, SIGINT  answer the requests received so far, then exit; a second
                   SIGINT, or a SIGTERM a second later, ends this at once
  SIGHUP           load all models again from their directories

Exit status:
  0  a signal stopped the daemon, or --check found no fault
  1  the daemon could not start or had to stop; the log says why
  2  wrong usage
)"};

/// Whether standard input is a file whose end comes later.
bool input_can_end() {
    struct stat status {};
    return ::fstat(STDIN_FILENO, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(STDIN_FILENO) != 0);
}

void add_model(const std::string& text, std::vector<ModelSetting>& models) {
    ModelSetting model;
    const std::size_t equals = text.find('=');
    const std::size_t slash = text.find('/');
    // «a/b=c» is a path: a name has no slash.
    if (equals != std::string::npos && (slash == std::string::npos || equals < slash)) {
        model.name = text.substr(0, equals);
        model.path = text.substr(equals + 1);
    } else {
        model.path = text;
        std::string trimmed = text;
        while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
        model.name = trimmed.substr(trimmed.rfind('/') + 1);
    }
    if (model.path.empty()) throw WrongUsage("--model needs a directory");
    if (!is_name(model.name)) {
        throw WrongUsage(
            fmt::format("--model: {} is not a valid model name (letters, digits, '.', '_', '-'); "
                        "choose one with --model NAME=DIR",
                        printable(model.name)));
    }
    for (const ModelSetting& other : models) {
        if (other.name == model.name) {
            throw WrongUsage(fmt::format(
                "--model: two models are called {}; rename one with --model NAME=DIR", model.name));
        }
    }
    models.push_back(std::move(model));
}

/// Gives a list «[MODEL/]NAME=FILE» to the model that it names, or to all.
void add_list(const std::string& text, std::vector<ModelSetting>& models) {
    const std::size_t equals = std::min(text.find('='), text.size());
    std::string name = text.substr(0, equals);
    const std::string path = equals < text.size() ? text.substr(equals + 1) : "";
    const std::size_t slash = name.find('/');
    const std::string model = slash == std::string::npos ? "" : name.substr(0, slash);
    if (slash != std::string::npos) name.erase(0, slash + 1);
    if (path.empty() || !is_name(name) || (slash != std::string::npos && model.empty())) {
        throw WrongUsage(fmt::format(
            "--list takes NAME=FILE or MODEL/NAME=FILE, with a name of letters, digits, '.', '_' "
            "and '-', not {}",
            printable(text)));
    }
    cli::check_is_file("list", path);
    bool found = false;
    for (ModelSetting& of : models) {
        if (!model.empty() && of.name != model) continue;
        found = true;
        if (std::ranges::find(of.lists, name, &ListSetting::name) != of.lists.end()) {
            throw WrongUsage(
                fmt::format("--list: two lists of {} are called {}; rename one", of.name, name));
        }
        if (of.lists.size() == kernels::kMaxLists) {
            throw WrongUsage(fmt::format("--list: more than {} lists of {}; join some files",
                                         kernels::kMaxLists, of.name));
        }
        of.lists.push_back({name, path});
    }
    if (!found) {
        throw WrongUsage(
            fmt::format("--list: there is no model {}; see --model", printable(model)));
    }
}

/// A time of Limits as the text of a default.
std::string seconds(std::chrono::milliseconds time) {
    return fmt::format("{}", std::chrono::duration<double>(time).count());
}

Group serving_options() {
    Group group("Models and socket");
    OptionAdder add(group);
    add("model", cli::values("[NAME=]DIR"),
        "directory of a model; repeat to serve several. Requests choose a model by NAME, which "
        "defaults to the last part of DIR. The first model answers requests that choose none");
    add("list", cli::values("[MODEL/]NAME=FILE"),
        "a list of words for within= and without= in requests: a file with a word a line, for all "
        "models or for MODEL; repeat for up to 64. RELOAD reads it again, unless it is a pipe");
    add("lists", cli::value("DIR"),
        "directory of lists for all models: each file is the list of its name, without .txt. "
        "RELOAD takes up new files and drops those that are gone; --list wins over a file");
    add("socket", cli::value("PATH"),
        "socket to listen on (default: $GLOVED_SOCKET, else gloved.sock in $RUNTIME_DIRECTORY, "
        "which systemd sets, else in /run/gloved for root or $XDG_RUNTIME_DIR for other "
        "users)");
    add("config", cli::value("FILE"),
        "read options from FILE, one 'name = value' per line; the command line takes "
        "precedence");
    return group;
}

void read_serving(const CommandLine& line, Settings& settings) {
    line.each("model", [&](const std::string& model) { add_model(model, settings.models); });
    settings.lists_directory = line.nonempty("lists", "a directory");
    settings.socket_path = line.nonempty("socket", "a path");
}

Group request_options() {
    Group group("Words of requests");
    OptionAdder add(group);
    add("unknown", cli::value("error|skip", "error"),
        "what becomes of a word that the model does not have, if a request has no unknown=: error "
        "refuses the request, skip leaves the word out");
    add("case", cli::value("exact|ignore", "exact"),
        "how words are found, if a request has no case=: ignore takes snake for SNAKE if the "
        "model has no SNAKE");
    return group;
}

void read_look_up(const CommandLine& line, LookUpRules& rules) {
    using wire::Unknown;
    using wire::WordCase;
    rules.unknown =
        line.choice<Unknown>("unknown", {{"error", Unknown::error}, {"skip", Unknown::skip}});
    rules.word_case =
        line.choice<WordCase>("case", {{"exact", WordCase::exact}, {"ignore", WordCase::ignore}});
}

Group engine_options() {
    Group group("Engine");
    OptionAdder add(group);
    add("engine", cli::value("auto|cuda|cpu", "auto"),
        "what answers queries: a GPU (cuda) or the CPU; auto is cuda if it can run here, else cpu");
    add("simd", cli::value("avx512|avx2|neon|baseline"),
        "cpu: instruction set (default: the best one of this machine)");
    add("device", cli::value("all|N,N...", "0"), "cuda: numbers of the GPUs to use");
    add("spread", cli::value("auto|rows|queries", "auto"),
        "cuda: how several GPUs share the work: each answers a part of the queries, for which it "
        "holds all words, or all queries in a part of the words (rows); auto is queries if the "
        "model fits on each GPU, else rows");
    add("threads", cli::value("T", "0"), "cpu: number of threads; 0 is one per core");
    add("io-threads", cli::value("T", "0"),
        "number of threads that read requests and write replies; 0 is 3 per 8 cores, at most "
        "8");
    add("pin", cli::value("auto|on|off", "auto"),
        "cpu: lock the model in memory; if the system refuses, auto serves it unlocked, and on "
        "ends the daemon. cuda: auto and on lock it only while it is copied to the GPU");
    add("planes", cli::value("on|off", "on"),
        "search a copy of the model with 4 bits per number first, then read only the vectors that "
        "it cannot rule out; off reads all vectors and saves the copy's memory");
    add("fine-plane", cli::value("auto|on|off", "auto"),
        "cpu: search batches of requests in a copy with 7 bits per number, a quarter of the "
        "vectors' size; auto makes it if memory has room for that and a reload");
    add("neighbors", cli::value("on|off", "on"),
        "answer NEAR of a word from the neighbors that gloved-neighbors has stored in the model, "
        "if there are any; off asks the engine");
    add("gpu-memory", cli::value("BYTES"),
        "cuda: limit on the memory that each model takes on each GPU, e.g. 512M or 6G, where 1G "
        "is 1024M; vectors that do not fit stay in main memory. While a model is reloaded, the "
        "new one takes as much beside the old (default: all that is free)");
    add("batch-ms", cli::value("MS", "0"),
        "answer waiting requests in batches that take about this many milliseconds; 0 is four "
        "times what one request takes, at least 1 ms");
    add("rank-cache", cli::value("BYTES", "64M"),
        "where ranks against one word are asked for again and again, keep the order of all words; "
        "this much memory for each model and engine at most, 16 bytes a word; 0 keeps none");
    return group;
}

void read_engine(const CommandLine& line, Settings& settings) {
    using Engine = std::optional<kernels::EngineKind>;
    using kernels::EngineKind;
    using kernels::Spread;
    settings.engine = line.choice<Engine>(
        "engine", {{"auto", Engine()}, {"cuda", EngineKind::cuda}, {"cpu", EngineKind::cpu}});
    if (line.given("simd")) settings.simd = line.word("simd");
    settings.devices = line.devices("device");
    settings.spread = line.choice<Spread>(
        "spread",
        {{"auto", Spread::automatic}, {"rows", Spread::rows}, {"queries", Spread::queries}});
    settings.threads = static_cast<unsigned>(line.count("threads", 0, kMaxThreads));
    settings.io_threads = static_cast<unsigned>(line.count("io-threads", 0, kMaxIoThreads));
    if (settings.io_threads == 0) {
        settings.io_threads = std::clamp(
            kernels::usable_processors() * kLoops / kProcessorsForLoops, 1U, kMaxDefaultIoThreads);
    }
    settings.pin =
        line.choice<Pin>("pin", {{"auto", Pin::automatic}, {"on", Pin::on}, {"off", Pin::off}});
    settings.planes = line.on_or_off("planes");
    settings.fine_plane = line.choice<FinePlane>(
        "fine-plane",
        {{"auto", FinePlane::automatic}, {"on", FinePlane::on}, {"off", FinePlane::off}});
    settings.neighbors = line.on_or_off("neighbors");
    if (line.given("gpu-memory")) settings.gpu_memory_bytes = line.bytes("gpu-memory", 1);
    settings.batch_ms = line.number("batch-ms", 0, kMaxBatchMs);
    settings.rank_cache_bytes = line.bytes("rank-cache", 0);
}

Group limit_options(const Limits& limits) {
    Group group("Limits");
    OptionAdder add(group);
    add("max-k", cli::value("N", fmt::to_string(limits.max_k)),
        "most words that a request may ask for");
    add("max-connections", cli::value("N", fmt::to_string(limits.max_connections)),
        "most open connections; further ones are refused");
    add("uid-share", cli::value("N", fmt::to_string(limits.uid_share)),
        "most open connections of one user, in percent of --max-connections");
    add("queue-length", cli::value("N", fmt::to_string(limits.queue_length)),
        "most requests that wait for an engine; further ones are refused");
    add("request-timeout", cli::value("S", seconds(limits.request_timeout)),
        "seconds that a request may wait for an engine before it is refused");
    add("line-timeout", cli::value("S", seconds(limits.line_timeout)),
        "seconds from the first byte of a request to the end of its line, before the connection "
        "is closed");
    add("idle-timeout", cli::value("S", seconds(limits.idle_timeout)),
        "seconds without a request before a connection is closed; 0 is never");
    add("write-timeout", cli::value("S", seconds(limits.write_timeout)),
        "seconds for a client to read 64 KiB of replies, or the rest if that is less, before the "
        "connection is closed");
    add("drain-timeout", cli::value("S", seconds(limits.drain_timeout)),
        "seconds after SIGTERM for the last replies, before all connections are closed");
    return group;
}

void read_limits(const CommandLine& line, Limits& limits) {
    limits.max_k = line.count("max-k", wire::kDefaultK, kMaxCount);
    limits.max_connections = line.count("max-connections", 1, kMaxCount);
    limits.uid_share = line.count("uid-share", 1, 100);
    limits.queue_length = line.count("queue-length", 1, kMaxCount);
    limits.request_timeout = line.seconds("request-timeout", cli::kMinSeconds, kMaxSeconds);
    limits.line_timeout = line.seconds("line-timeout", cli::kMinSeconds, kMaxSeconds);
    limits.idle_timeout = line.seconds("idle-timeout", 0, kMaxSeconds);
    limits.write_timeout = line.seconds("write-timeout", cli::kMinSeconds, kMaxSeconds);
    limits.drain_timeout = line.seconds("drain-timeout", 0, kMaxSeconds);
}

Group log_options() {
    Group group("Log, on standard error");
    OptionAdder add(group);
    add("log-level", cli::value("debug|info|warning|error", "info"),
        "log lines of this level and above");
    add("access-log", cli::value("on|off", "off"),
        "log each request: the client's user and process, the request's name, result and "
        "microseconds; never its words");
    return group;
}

void read_log(const CommandLine& line, Options& options) {
    namespace level = spdlog::level;
    options.log_level = line.choice<level::level_enum>("log-level", {{"debug", level::debug},
                                                                     {"info", level::info},
                                                                     {"warning", level::warn},
                                                                     {"error", level::err}});
    options.settings.access_log = line.on_or_off("access-log");
}

cli::Options describe_options() {
    Group other("Other");
    OptionAdder add(other);
    add("check",
        "verify the checksums of all models, answer one test query with each, and "
        "exit; opens no socket");
    add("stop-at-eof",
        "stop as after SIGTERM when standard input, a pipe or a socket, ends: so the daemon ends "
        "with the program that started it");
    cli::add_help(other);
    cli::Options options{.shown = {kHelpColumns, kMinDescriptionColumns}};
    options.shown.add(serving_options())
        .add(request_options())
        .add(engine_options())
        .add(limit_options({}))
        .add(log_options())
        .add(other);
    return options;
}

/// All options but the lists, which need all models.
Options options_of(const CommandLine& line) {
    Options options;
    read_serving(line, options.settings);
    read_look_up(line, options.settings.look_up);
    read_engine(line, options.settings);
    read_limits(line, options.settings.limits);
    read_log(line, options);
    options.check = line.given("check");
    options.settings.stop_at_eof = line.given("stop-at-eof");
    if (options.settings.stop_at_eof && !input_can_end()) {
        throw WrongUsage(
            "--stop-at-eof needs a pipe, a socket or a terminal as standard input: the end of "
            "which would stop the daemon");
    }
    return options;
}

}  // namespace

Result<std::optional<Options>> read_options(int argc, char** argv, std::ostream& out) try {
    const cli::Options described = describe_options();
    CommandLine line(described, cli::arguments_of(argc, argv));
    if (cli::answer_help(kProgram, described, line, out)) return std::optional<Options>();
    if (line.given("config")) {
        const CommandLine file = CommandLine::of_file(described, line, "config");
        // Also a line that the command line replaces must be right.
        (void)options_of(file);
        line.add(file);
    }
    Options options = options_of(line);
    std::vector<ModelSetting>& models = options.settings.models;
    if (models.empty()) {
        throw WrongUsage(line.given("config")
                             ? fmt::format("{}: has no line 'model = NAME=DIR', which is needed",
                                           line.text("config"))
                             : "--model is required");
    }
    line.each("list", [&](const std::string& list) { add_list(list, models); });
    return std::optional(std::move(options));
} catch (const WrongUsage& wrong) {
    return Error{ErrorCode::bad_request, wrong.what()};
}

}  // namespace gloved::daemon
