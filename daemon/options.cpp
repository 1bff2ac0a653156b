#include "daemon/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include "common/byte_count.hpp"
#include "common/nearest_name.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"
#include "common/version.hpp"
#include "common/wire/request.hpp"
#include "daemon/log.hpp"
#include "kernels/engine.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::daemon {
namespace {

namespace po = boost::program_options;
using kernels::EngineKind;

constexpr std::int64_t kMaxCount = 0xFFFFFFFF;
constexpr std::int64_t kMaxThreads = 4096;
constexpr std::int64_t kMaxIoThreads = 64;
/// By default: three loops for eight processors. The rest is for engines and clients.
constexpr unsigned kLoops = 3;
constexpr unsigned kProcessorsForLoops = 8;
constexpr unsigned kMaxDefaultIoThreads = 8;
constexpr std::int64_t kMaxBatchMs = 60000;
constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
/// A shorter time would be cut to 0 ms, which may mean «for ever».
constexpr double kMinSeconds = 0.001;
constexpr double kMaxSeconds = 1e9;
constexpr unsigned kHelpColumns = 80;
constexpr unsigned kMinDescriptionColumns = 46;

constexpr const char* kIntroduction =
    R"(Usage: gloved --model [NAME=]DIR... [options]

Serves models made by gloved-convert: answers nearest-word queries on a Unix
socket. Runs in the foreground.

Example:
  gloved --model models/glove --socket /tmp/gloved.sock
  echo 'king - man + woman' | socat -t60 - UNIX-CONNECT:/tmp/gloved.sock
  gloved --model models/glove --list animals=animals.txt
  echo 'NEAR within=animals snake' | gloved-client --lines
)";

constexpr const char* kClosing = R"(
Signals:
  SIGTERM, SIGINT  answer the requests received so far, then exit; a second
                   SIGINT, or a SIGTERM a second later, ends this at once
  SIGHUP           load all models again from their directories

Exit status:
  0  a signal stopped the daemon, or --check found no fault
  1  the daemon could not start or had to stop; the log says why
  2  wrong usage
)";

/// Adds an option to a group of the help. A default stands at the end of the description.
template <class T>
void add(po::options_description& group, const char* name, po::typed_value<T>* value,
         std::string description) {
    boost::any default_value;
    if (value->apply_default(default_value))
        description += fmt::format(" (default: {})", boost::any_cast<T>(default_value));
    group.add_options()(name, value, description.c_str());
}

/// An option that takes one word of `choices` and stores the word's value in `target`. The default
/// is the word of the value that `target` has; an empty word is accepted but not shown.
template <class T>
po::typed_value<std::string>* choice(const char* name,
                                     std::vector<std::pair<std::string, T>> choices, T& target) {
    std::string words;
    std::string default_word;
    for (const auto& [word, value] : choices) {
        if (!word.empty()) words += (words.empty() ? "" : "|") + word;
        if (value == target) default_word = word;
    }
    auto* option = po::value<std::string>()->value_name(words);
    if (!default_word.empty()) option->default_value(default_word, "");
    return option->notifier(
        [name, words, choices = std::move(choices), &target](const std::string& text) {
            const auto found =
                std::ranges::find_if(choices, [&](const auto& word) { return word.first == text; });
            if (found == choices.end()) {
                throw po::error(
                    fmt::format("--{} must be one of {}, not {}", name, words, printable(text)));
            }
            target = found->second;
        });
}

po::typed_value<std::string>* on_off(const char* name, bool& target) {
    return choice<bool>(name, {{"on", true}, {"off", false}}, target);
}

/// A time in seconds. `min_seconds` is kMinSeconds, or 0 where 0 has a meaning.
po::typed_value<double>* seconds(const char* name, std::chrono::milliseconds& target,
                                 double min_seconds = kMinSeconds) {
    return po::value<double>()
        ->default_value(std::chrono::duration<double>(target).count(), "")
        ->value_name("S")
        ->notifier([name, &target, min_seconds](double value) {
            const bool allowed =
                (value >= kMinSeconds && value <= kMaxSeconds) || (min_seconds == 0 && value == 0);
            if (!allowed) {
                throw po::error(fmt::format("--{} must be {}from {} to {} seconds, not {}", name,
                                            min_seconds == 0 ? "0, or " : "", kMinSeconds,
                                            kMaxSeconds, value));
            }
            target = std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
        });
}

/// A number from `min` to `max`. Integers are read as signed: Boost would take -1 for the largest
/// number there is.
template <class T>
auto* number(const char* name, const char* value_name, T& target, std::int64_t min,
             std::int64_t max) {
    using Read = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;
    return po::value<Read>()
        ->default_value(static_cast<Read>(target), "")
        ->value_name(value_name)
        ->notifier([name, &target, min, max](Read value) {
            if (!(value >= static_cast<Read>(min) && value <= static_cast<Read>(max))) {
                throw po::error(
                    fmt::format("--{} must be from {} to {}, not {}", name, min, max, value));
            }
            target = static_cast<T>(value);
        });
}

po::typed_value<std::int64_t>* count(const char* name, std::size_t& target) {
    return number(name, "N", target, 1, kMaxCount);
}

/// An option whose text `take` reads.
po::typed_value<std::string>* text(const char* value_name,
                                   std::function<void(const std::string&)> take) {
    return po::value<std::string>()->value_name(value_name)->notifier(std::move(take));
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
    if (model.path.empty()) throw po::error("--model needs a directory");
    if (!is_name(model.name)) {
        throw po::error(
            fmt::format("--model: {} is not a valid model name (letters, digits, '.', '_', '-'); "
                        "choose one with --model NAME=DIR",
                        printable(model.name)));
    }
    for (const ModelSetting& other : models) {
        if (other.name == model.name) {
            throw po::error(fmt::format(
                "--model: two models are called {}; rename one with --model NAME=DIR", model.name));
        }
    }
    models.push_back(std::move(model));
}

/// Refuses «-»: standard input can be read once alone, and belongs to no daemon.
void check_is_file(const std::string& option, const std::string& path) {
    if (path != "-") return;
    throw po::error(option + " takes the name of a file, not -; /dev/stdin is standard input");
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
        throw po::error(fmt::format(
            "--list takes NAME=FILE or MODEL/NAME=FILE, with a name of letters, digits, '.', '_' "
            "and '-', not {}",
            printable(text)));
    }
    check_is_file("--list", path);
    bool found = false;
    for (ModelSetting& of : models) {
        if (!model.empty() && of.name != model) continue;
        found = true;
        if (std::ranges::find(of.lists, name, &ListSetting::name) != of.lists.end()) {
            throw po::error(
                fmt::format("--list: two lists of {} are called {}; rename one", of.name, name));
        }
        if (of.lists.size() == kernels::kMaxLists) {
            throw po::error(fmt::format("--list: more than {} lists of {}; join some files",
                                        kernels::kMaxLists, of.name));
        }
        of.lists.push_back({name, path});
    }
    if (!found) {
        throw po::error(fmt::format("--list: there is no model {}; see --model", printable(model)));
    }
}

void set_devices(const std::string& text, Settings& settings) {
    auto devices = parse_devices(text);
    if (!devices) throw po::error("--device " + devices.error().message);
    settings.devices = *std::move(devices);
}

void set_gpu_memory(const std::string& text, Settings& settings) {
    if (text.empty()) return;
    const auto bytes = byte_count_from(text);
    if (!bytes || *bytes == 0) {
        throw po::error(
            "--gpu-memory must be a number of bytes, e.g. 6442450944, 6144M or 6G, not " +
            printable(text));
    }
    settings.gpu_memory_bytes = *bytes;
}

void set_rank_cache(const std::string& text, Settings& settings) {
    const auto bytes = byte_count_from(text);
    if (!bytes) {
        throw po::error(
            "--rank-cache must be a number of bytes, e.g. 67108864, 64M or 1G, or 0, not " +
            printable(text));
    }
    settings.rank_cache_bytes = *bytes;
}

po::options_description serving_options(Settings& settings) {
    po::options_description options("Models and socket");
    options.add_options()(
        "model",
        po::value<std::vector<std::string>>()
            ->value_name("[NAME=]DIR")
            ->notifier([&](const std::vector<std::string>& models) {
                for (const std::string& model : models) add_model(model, settings.models);
            }),
        "directory of a model; repeat to serve several. Requests choose a model by NAME, which "
        "defaults to the last part of DIR. The first model answers requests that choose none");
    options.add_options()(
        "list", po::value<std::vector<std::string>>()->value_name("[MODEL/]NAME=FILE"),
        "a list of words for within= and without= in requests: a file with a word a line, for all "
        "models or for MODEL; repeat for up to 64. RELOAD reads it again, unless it is a pipe");
    add(options, "lists",
        text("DIR",
             [&](const std::string& directory) {
                 if (directory.empty()) throw po::error("--lists needs a directory");
                 settings.lists_directory = directory;
             }),
        "directory of lists for all models: each file is the list of its name, without .txt. "
        "RELOAD takes up new files and drops those that are gone; --list wins over a file");
    add(options, "socket",
        text("PATH",
             [&](const std::string& path) {
                 if (path.empty()) throw po::error("--socket needs a path");
                 settings.socket_path = path;
             }),
        "socket to listen on (default: $GLOVED_SOCKET, else gloved.sock in $RUNTIME_DIRECTORY, "
        "which systemd sets, else in /run/gloved for root or $XDG_RUNTIME_DIR for other users)");
    add(options, "config", po::value<std::string>()->value_name("FILE"),
        "read options from FILE, one 'name = value' per line; the command line takes precedence");
    return options;
}

po::options_description request_options(LookUpRules& rules) {
    using wire::Unknown;
    using wire::WordCase;
    po::options_description options("Words of requests");
    add(options, "unknown",
        choice<Unknown>("unknown", {{"error", Unknown::error}, {"skip", Unknown::skip}},
                        rules.unknown),
        "what becomes of a word that the model does not have, if a request has no unknown=: error "
        "refuses the request, skip leaves the word out");
    add(options, "case",
        choice<WordCase>("case", {{"exact", WordCase::exact}, {"ignore", WordCase::ignore}},
                         rules.word_case),
        "how words are found, if a request has no case=: ignore takes snake for SNAKE if the model "
        "has no SNAKE");
    return options;
}

po::options_description engine_options(Settings& settings) {
    using Engine = std::optional<EngineKind>;
    const auto named = [](EngineKind kind) {
        return std::pair(std::string(to_string(kind)), Engine(kind));
    };
    po::options_description options("Engine");
    add(options, "engine",
        choice<Engine>("engine",
                       {{"auto", Engine()}, named(EngineKind::cuda), named(EngineKind::cpu)},
                       settings.engine),
        "what answers queries: a GPU (cuda) or the CPU; auto is cuda if it can run here, else cpu");
    add(options, "simd",
        choice<std::string>("simd",
                            {{"", ""},
                             {"avx512", "avx512"},
                             {"avx2", "avx2"},
                             {"neon", "neon"},
                             {"baseline", "baseline"}},
                            settings.simd),
        "cpu: instruction set (default: the best one of this machine)");
    add(options, "device",
        text("all|N,N...", [&](const std::string& devices) { set_devices(devices, settings); })
            ->default_value("0", ""),
        "cuda: numbers of the GPUs to use");
    using kernels::Spread;
    add(options, "spread",
        choice<Spread>(
            "spread",
            {{"auto", Spread::automatic}, {"rows", Spread::rows}, {"queries", Spread::queries}},
            settings.spread),
        "cuda: how several GPUs share the work: each answers a part of the queries, for which it "
        "holds all words, or all queries in a part of the words (rows); auto is queries if the "
        "model fits on each GPU, else rows");
    add(options, "threads", number("threads", "T", settings.threads, 0, kMaxThreads),
        "cpu: number of threads; 0 is one per core");
    add(options, "io-threads", number("io-threads", "T", settings.io_threads, 0, kMaxIoThreads),
        "number of threads that read requests and write replies; 0 is 3 per 8 cores, at most 8");
    add(options, "pin",
        choice<Pin>("pin", {{"auto", Pin::automatic}, {"on", Pin::on}, {"off", Pin::off}},
                    settings.pin),
        "cpu: lock the model in memory; if the system refuses, auto serves it unlocked, and on "
        "ends the daemon. cuda: auto and on lock it only while it is copied to the GPU");
    add(options, "planes", on_off("planes", settings.planes),
        "search a copy of the model with 4 bits per number first, then read only the vectors that "
        "it cannot rule out; off reads all vectors and saves the copy's memory");
    using enum FinePlane;
    add(options, "fine-plane",
        choice<FinePlane>("fine-plane", {{"auto", automatic}, {"on", on}, {"off", off}},
                          settings.fine_plane),
        "cpu: search batches of requests in a copy with 7 bits per number, a quarter of the "
        "vectors' size; auto makes it if memory has room for that and a reload");
    add(options, "neighbors", on_off("neighbors", settings.neighbors),
        "answer NEAR of a word from the neighbors that gloved-neighbors has stored in the model, "
        "if there are any; off asks the engine");
    add(options, "gpu-memory",
        text("BYTES", [&](const std::string& bytes) { set_gpu_memory(bytes, settings); }),
        "cuda: limit on the memory that each model takes on each GPU, e.g. 512M or 6G, where 1G "
        "is 1024M; vectors that do not fit stay in main memory. While a model is reloaded, the "
        "new one takes as much beside the old (default: all that is free)");
    add(options, "batch-ms", number("batch-ms", "MS", settings.batch_ms, 0, kMaxBatchMs),
        "answer waiting requests in batches that take about this many milliseconds; 0 is four "
        "times what one request takes, at least 1 ms");
    add(options, "rank-cache",
        text("BYTES", [&](const std::string& bytes) { set_rank_cache(bytes, settings); }),
        "where ranks against one word are asked for again and again, keep the order of all words; "
        "this much memory for each model and engine at most, 16 bytes a word; 0 keeps none "
        "(default: 64M)");
    return options;
}

po::options_description limit_options(Limits& limits) {
    po::options_description options("Limits");
    add(options, "max-k", number("max-k", "N", limits.max_k, wire::kDefaultK, kMaxCount),
        "most words that a request may ask for");
    add(options, "max-connections", count("max-connections", limits.max_connections),
        "most open connections; further ones are refused");
    add(options, "uid-share", number("uid-share", "N", limits.uid_share, 1, 100),
        "most open connections of one user, in percent of --max-connections");
    add(options, "queue-length", count("queue-length", limits.queue_length),
        "most requests that wait for an engine; further ones are refused");
    add(options, "request-timeout", seconds("request-timeout", limits.request_timeout),
        "seconds that a request may wait for an engine before it is refused");
    add(options, "line-timeout", seconds("line-timeout", limits.line_timeout),
        "seconds from the first byte of a request to the end of its line, before the connection is "
        "closed");
    add(options, "idle-timeout", seconds("idle-timeout", limits.idle_timeout, 0),
        "seconds without a request before a connection is closed; 0 is never");
    add(options, "write-timeout", seconds("write-timeout", limits.write_timeout),
        "seconds for a client to read 64 KiB of replies, or the rest if that is less, before the "
        "connection is closed");
    add(options, "drain-timeout", seconds("drain-timeout", limits.drain_timeout, 0),
        "seconds after SIGTERM for the last replies, before all connections are closed");
    return options;
}

po::options_description log_options(Options& given) {
    namespace level = spdlog::level;
    po::options_description options("Log, on standard error");
    add(options, "log-level",
        choice<level::level_enum>("log-level",
                                  {{"debug", level::debug},
                                   {"info", level::info},
                                   {"warning", level::warn},
                                   {"error", level::err}},
                                  given.log_level),
        "log lines of this level and above");
    add(options, "access-log", on_off("access-log", given.settings.access_log),
        "log each request: the client's user and process, the request's name, result and "
        "microseconds; never its words");
    return options;
}

po::options_description other_options() {
    po::options_description options("Other");
    options.add_options()  //
        ("check",
         "verify the checksums of all models, answer one test query with each, and exit; opens no "
         "socket")  //
        ("help", "print this help and exit")("version", "print the version and exit");
    return options;
}

/// All options but those of the command line alone, which write to `given`.
std::vector<po::options_description> option_groups(Options& given) {
    Settings& settings = given.settings;
    return {serving_options(settings), request_options(settings.look_up), engine_options(settings),
            limit_options(settings.limits), log_options(given)};
}

/// «; did you mean NAME?», or nothing.
std::string near_option(std::string_view typed, const po::options_description& options) {
    typed.remove_prefix(std::min(typed.find_first_not_of('-'), typed.size()));
    std::vector<std::string> names;
    for (const auto& option : options.options()) names.push_back(option->long_name());
    const std::string name = nearest_name(typed, names);
    return name.empty() ? "" : fmt::format("; did you mean {}?", name);
}

/// Reads a configuration file line by line, so that an error tells the line.
class ConfigFile {
  public:
    explicit ConfigFile(const std::string& path) : path_(path) {
        for (const auto& group : option_groups(scratch_)) options_.add(group);
    }

    /// Adds those of the options `configurable` that the file gives to `given`, and checks the
    /// value of each.
    void read(const po::options_description& configurable, po::variables_map& given) {
        check_is_file("--config", path_);
        const auto text = read_text(path_, kMaxConfigBytes);
        if (!text) throw po::error("--config: " + text.error().message);
        if (text->find('\0') != std::string::npos)
            throw po::error("--config: " + path_ + " contains a NUL byte");
        std::istringstream lines(*text);
        po::parsed_options all(&configurable);
        for (std::string line; std::getline(lines, line);) {
            ++line_;
            try {
                for (auto& option : read_line(line).options) all.options.push_back(option);
            } catch (const po::unknown_option& error) {
                throw po::error(place(line_) + error.what() +
                                near_option(error.get_option_name(), options_));
            } catch (const po::invalid_config_file_syntax&) {
                throw po::error(
                    fmt::format("{}{} is not 'name = value'", place(line_), printable(line)));
            } catch (const po::error& error) {
                throw po::error(place(line_) + error.what());
            }
        }
        po::store(all, given);
    }

    /// «PATH:LINE: » of the option `list` with this value; empty if it is not in the file.
    std::string place_of_list(const std::string& value) const {
        const auto found = lines_of_lists_.find(value);
        return found == lines_of_lists_.end() ? "" : place(found->second);
    }

  private:
    std::string place(std::size_t line) const { return fmt::format("{}:{}: ", path_, line); }

    po::parsed_options read_line(const std::string& line) {
        std::istringstream one(line);
        auto parsed = po::parse_config_file(one, options_);
        const std::size_t begin = line.find_first_not_of(" \t");
        if (begin != std::string::npos && line[begin] == '[')
            throw po::error("there are no sections here");
        for (const auto& option : parsed.options) {
            const std::string& name = option.string_key;
            if (name == "config") throw po::error("'config' is allowed on the command line only");
            if (name == "list") lines_of_lists_.try_emplace(option.value.front(), line_);
            const bool repeats = name == "model" || name == "list";
            const auto [first, is_new] = lines_of_.try_emplace(name, line_);
            if (!is_new && !repeats) {
                throw po::error(fmt::format("'{}' stands in line {} already", name, first->second));
            }
        }
        // Its value, which is read again with the whole command line.
        po::variables_map values;
        po::store(parsed, values);
        po::notify(values);
        return parsed;
    }

    const std::string path_;
    std::size_t line_ = 0;
    Options scratch_;  // what the options below write to
    po::options_description options_;
    std::map<std::string, std::size_t> lines_of_;
    std::map<std::string, std::size_t> lines_of_lists_;
};

}  // namespace

Result<std::optional<Options>> read_options(int argc, char** argv, std::ostream& out) try {
    Options options;
    Settings& settings = options.settings;
    po::options_description all(kHelpColumns, kMinDescriptionColumns);
    po::options_description configurable;
    for (const auto& group : option_groups(options)) {
        all.add(group);
        configurable.add(group);
    }
    all.add(other_options());

    po::variables_map given;
    // No abbreviations: an option added later could make one ambiguous.
    const int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    try {
        po::store(
            po::command_line_parser(argc, argv).options(all).positional({}).style(style).run(),
            given);
    } catch (const po::unknown_option& error) {
        throw po::error(error.what() + near_option(error.get_option_name(), all));
    }
    if (given.count("help") != 0) {
        out << kIntroduction << all << kClosing;
        return std::optional<Options>();
    }
    if (given.count("version") != 0) {
        out << "gloved " << kProgramVersion << "\n";
        return std::optional<Options>();
    }
    std::optional<ConfigFile> config;
    if (given.count("config") != 0)
        config.emplace(given["config"].as<std::string>()).read(configurable, given);
    po::notify(given);
    options.check = given.count("check") != 0;
    if (settings.models.empty()) throw po::error("--model is required");
    if (given.count("list") != 0) {
        for (const std::string& list : given["list"].as<std::vector<std::string>>()) {
            try {
                add_list(list, settings.models);
            } catch (const po::error& error) {
                throw po::error((config ? config->place_of_list(list) : "") + error.what());
            }
        }
    }
    if (settings.io_threads == 0) {
        settings.io_threads = std::clamp(
            kernels::usable_processors() * kLoops / kProcessorsForLoops, 1U, kMaxDefaultIoThreads);
    }
    return std::optional(std::move(options));
} catch (const po::error& error) {
    return Error{ErrorCode::bad_request, error.what()};
}

}  // namespace gloved::daemon
