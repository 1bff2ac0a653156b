#include "daemon/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include "common/byte_count.hpp"
#include "common/files.hpp"
#include "common/quoting.hpp"
#include "common/version.hpp"
#include "common/wire/request.hpp"

namespace gloved::daemon {
namespace {

namespace po = boost::program_options;
using kernels::EngineKind;

constexpr std::int64_t kMaxCount = 0xFFFFFFFF;
constexpr std::size_t kMaxDevices = 64;
constexpr std::int64_t kMaxThreads = 4096;
constexpr std::int64_t kMaxBatchMs = 60000;
constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
/// A shorter time would be cut to 0 ms, which may mean «for ever».
constexpr double kMinSeconds = 0.001;
constexpr double kMaxSeconds = 1e9;
constexpr unsigned kHelpColumns = 80;
constexpr unsigned kMinDescriptionColumns = 46;

constexpr const char* kIntroduction =
    R"(Usage: gloved --model [NAME=]DIR... [options]

Serves nearest-word queries on models made by gloved-convert, over a Unix socket.

Example:
  gloved --model models/glove --socket /tmp/gloved.sock
  echo 'king - man + woman' | socat -t60 - UNIX-CONNECT:/tmp/gloved.sock
)";

constexpr const char* kClosing = R"(
Signals: SIGTERM answers the requests received so far, then stops.
         SIGHUP reloads all models.
Exit status: 0 success, 1 runtime failure (the log says why), 2 wrong usage.
)";

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
    if (!default_word.empty()) option->default_value(default_word);
    return option->notifier(
        [name, words, choices = std::move(choices), &target](const std::string& text) {
            const auto found = std::find_if(choices.begin(), choices.end(),
                                            [&](const auto& word) { return word.first == text; });
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
        ->default_value(std::chrono::duration<double>(target).count())
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
        ->default_value(static_cast<Read>(target))
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

bool is_model_name(const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '.' || c == '_' || c == '-';
    });
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
    if (!is_model_name(model.name)) {
        throw po::error(
            fmt::format("--model: {} is not a valid model name (letters, digits, '.', "
                        "'_', '-'); choose one with --model NAME=DIR",
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

void set_devices(const std::string& text, Settings& settings) {
    settings.all_devices = text == "all";
    if (settings.all_devices) return;
    settings.devices.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        int device = -1;
        const auto [stop, fault] = std::from_chars(text.data() + begin, text.data() + end, device);
        if (fault != std::errc() || stop != text.data() + end || device < 0) {
            throw po::error("--device must be 'all' or numbers separated by commas, not " +
                            printable(text));
        }
        settings.devices.push_back(device);
        begin = end + 1;
    }
    if (settings.devices.size() > kMaxDevices)
        throw po::error(fmt::format("--device takes at most {} numbers", kMaxDevices));
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

po::options_description serving_options(Settings& settings) {
    po::options_description options("Models and socket");
    auto add = options.add_options();
    add("model",
        po::value<std::vector<std::string>>()
            ->value_name("[NAME=]DIR")
            ->notifier([&](const std::vector<std::string>& models) {
                for (const std::string& model : models) add_model(model, settings.models);
            }),
        "directory of a model; repeat for several models. NAME defaults to the directory's name. "
        "The first model is the default one");
    add("socket",
        text("PATH",
             [&](const std::string& path) {
                 if (path.empty()) throw po::error("--socket needs a path");
                 settings.socket_path = path;
             }),
        "socket path to listen on. Default: $GLOVED_SOCKET, else gloved.sock in "
        "$RUNTIME_DIRECTORY, else in /run/gloved (root) or $XDG_RUNTIME_DIR (other users)");
    add("config", po::value<std::string>()->value_name("FILE"),
        "read options from FILE, one 'name = value' per line; the command line takes precedence");
    return options;
}

po::options_description engine_options(Settings& settings) {
    using Engine = std::optional<EngineKind>;
    const auto named = [](EngineKind kind) {
        return std::pair(std::string(to_string(kind)), Engine(kind));
    };
    po::options_description options("Engine");
    auto add = options.add_options();
    add("engine",
        choice<Engine>("engine",
                       {{"auto", Engine()}, named(EngineKind::cuda), named(EngineKind::cpu)},
                       settings.engine),
        "where queries are computed; auto takes cuda if it can run here, else cpu");
    add("simd",
        choice<std::string>(
            "simd", {{"", ""}, {"avx512", "avx512"}, {"avx2", "avx2"}, {"baseline", "baseline"}},
            settings.simd),
        "cpu: instruction set. Default: the best one supported");
    add("device",
        text("all|N,N...", [&](const std::string& devices) { set_devices(devices, settings); })
            ->default_value("0"),
        "cuda: GPU numbers; the model's rows are split evenly among these GPUs");
    add("threads", number("threads", "T", settings.threads, 0, kMaxThreads),
        "cpu: number of threads; 0 means one per processor");
    add("pin",
        choice<Pin>("pin", {{"auto", Pin::automatic}, {"on", Pin::on}, {"off", Pin::off}},
                    settings.pin),
        "cpu: lock the model in memory; on fails if the system refuses. cuda: lock it while it is "
        "copied to the GPU");
    add("planes", on_off("planes", settings.planes),
        "scan a 4-bit copy of the model first, then read only the vectors that it does not rule "
        "out; off saves the copy's memory");
    add("gpu-memory",
        text("BYTES", [&](const std::string& bytes) { set_gpu_memory(bytes, settings); }),
        "cuda: cap on memory per GPU, e.g. 6G; a larger model keeps its vectors in host memory");
    add("batch-ms", number("batch-ms", "MS", settings.batch_ms, 0, kMaxBatchMs),
        "predicted time of a batch; 0 means twice that of a single query, at least 1 ms");
    return options;
}

po::options_description limit_options(Limits& limits) {
    po::options_description options("Limits (times in seconds)");
    auto add = options.add_options();
    add("max-k", count("max-k", limits.max_k), "largest k= of a request");
    add("max-connections", count("max-connections", limits.max_connections),
        "maximum number of open connections");
    add("uid-share", number("uid-share", "N", limits.uid_share, 1, 100),
        "maximum percentage of them per user");
    add("queue-length", count("queue-length", limits.queue_length),
        "maximum number of requests waiting for an engine");
    add("request-timeout", seconds("request-timeout", limits.request_timeout),
        "longest wait of a request for an engine");
    add("line-timeout", seconds("line-timeout", limits.line_timeout),
        "longest time from a line's first byte to its end");
    add("idle-timeout", seconds("idle-timeout", limits.idle_timeout, 0),
        "close a connection after this long without requests; 0 means never");
    add("write-timeout", seconds("write-timeout", limits.write_timeout),
        "longest time for a client to take the next 64 KiB of its replies");
    add("drain-timeout", seconds("drain-timeout", limits.drain_timeout, 0),
        "longest time from SIGTERM to closing all connections");
    return options;
}

po::options_description log_options(Options& given) {
    namespace level = spdlog::level;
    po::options_description options("Log, on standard error");
    auto add = options.add_options();
    add("log-level",
        choice<level::level_enum>("log-level",
                                  {{"debug", level::debug},
                                   {"info", level::info},
                                   {"warning", level::warn},
                                   {"error", level::err}},
                                  given.log_level),
        "log lines of this level and above");
    add("access-log", on_off("access-log", given.settings.access_log),
        "log each request: user, process, verb, outcome, microseconds; never its words");
    return options;
}

po::options_description other_options() {
    po::options_description options("Other");
    auto add = options.add_options();
    add("check", "verify each model's checksums, answer a query, exit");
    add("help", "print this help and exit");
    add("version", "print the version and exit");
    return options;
}

void read_config_file(const std::string& path, const po::options_description& configurable,
                      po::variables_map& given) {
    const auto text = read_whole_file(path, kMaxConfigBytes);
    if (!text) throw po::error("--config: " + text.error().message);
    if (text->find('\0') != std::string::npos)
        throw po::error("--config: " + path + " contains a NUL byte");
    std::istringstream file(*text);
    const auto parsed = po::parse_config_file(file, configurable);
    for (const auto& option : parsed.options) {
        if (option.string_key == "config")
            throw po::error(path + ": 'config' is allowed on the command line only");
    }
    po::store(parsed, given);
}

}  // namespace

Result<std::optional<Options>> read_options(int argc, char** argv, std::ostream& out) try {
    Options options;
    Settings& settings = options.settings;
    po::options_description all(kHelpColumns, kMinDescriptionColumns);
    po::options_description configurable;
    for (const auto& group : {serving_options(settings), engine_options(settings),
                              limit_options(settings.limits), log_options(options)}) {
        all.add(group);
        configurable.add(group);
    }
    all.add(other_options());

    po::variables_map given;
    // No abbreviations: an option added later could make one ambiguous.
    const int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(all).positional({}).style(style).run(),
              given);
    if (given.count("help") != 0) {
        out << kIntroduction << all << kClosing;
        return std::optional<Options>();
    }
    if (given.count("version") != 0) {
        out << "gloved " << kProgramVersion << "\n";
        return std::optional<Options>();
    }
    if (given.count("config") != 0)
        read_config_file(given["config"].as<std::string>(), configurable, given);
    po::notify(given);
    options.check = given.count("check") != 0;
    if (settings.models.empty()) throw po::error("--model is required");
    if (settings.limits.max_k < wire::kDefaultK) {
        throw po::error(fmt::format("--max-k must be at least {}, the k of requests without k=",
                                    wire::kDefaultK));
    }
    return std::optional(std::move(options));
} catch (const po::error& error) {
    return Error{ErrorCode::bad_request, error.what()};
}

}  // namespace gloved::daemon
