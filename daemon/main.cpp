// gloved: options in, exit code out. Everything else is in the library beside it.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include "common/byte_count.hpp"
#include "common/format/model.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/socket_places.hpp"
#include "common/version.hpp"
#include "daemon/known_answer.hpp"
#include "daemon/log.hpp"
#include "daemon/lost_pages.hpp"
#include "daemon/out_of_memory.hpp"
#include "daemon/pin.hpp"
#include "daemon/server.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/signals.hpp"
#include "kernels/registry.hpp"

namespace {

namespace po = boost::program_options;
using namespace gloved;
using daemon::log_error;
using daemon::log_info;
using daemon::Settings;
using daemon::write_log_always;
using kernels::EngineKind;

constexpr int kDone = 0;
constexpr int kFault = 1;
constexpr int kUsage = 2;

constexpr std::int64_t kMaxCount = 0xFFFFFFFF;
constexpr std::size_t kMaxDevices = 64;
constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
/// In seconds, of limits where no time at all would serve nobody.
constexpr double kMinSeconds = 0.001;

constexpr const char* kIntroduction =
    "Usage: gloved --model [NAME=]DIR ... [options]\n"
    "\n"
    "Serves nearest-word queries on models made by gloved-convert, over a Unix socket.\n"
    "\n"
    "  gloved --model models/glove --socket /tmp/gloved.sock\n"
    "  echo 'king - man + woman' | socat -t60 - UNIX-CONNECT:/tmp/gloved.sock\n"
    "\n"
    "SIGTERM answers what has been asked and stops; SIGHUP loads the models anew. Exit status: 0 "
    "done, 1 the model or "
    "the system is at fault,\n"
    "2 wrong usage.\n\n";

const auto kStarted = std::chrono::steady_clock::now();

double ms_since_start() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - kStarted)
        .count();
}

struct Arguments {
    Settings settings;
    spdlog::level::level_enum log_level = spdlog::level::info;
    bool check = false;
};

bool is_model_name(const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '.' || c == '_' || c == '-';
    });
}

void add_model(const std::string& text, Settings& settings) {
    daemon::ModelSetting model;
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
        throw po::error("--model: " + printable(model.name) +
                        " is no model name (letters, digits, '.', '_', '-'); say --model NAME=DIR");
    }
    for (const daemon::ModelSetting& other : settings.models) {
        if (other.name == model.name) {
            throw po::error("--model: two models are called " + model.name +
                            "; say --model NAME=DIR for one of them");
        }
    }
    settings.models.push_back(std::move(model));
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
            throw po::error("--device takes all, or numbers with commas between, not " +
                            printable(text));
        }
        settings.devices.push_back(device);
        begin = end + 1;
    }
    if (settings.devices.size() > kMaxDevices)
        throw po::error(fmt::format("--device takes at most {} numbers", kMaxDevices));
}

/// Reads the command line and the configuration file. Throws po::error for wrong usage. Nothing
/// when help was all.
std::optional<Arguments> parse(int argc, char** argv) {
    Arguments arguments;
    Settings& settings = arguments.settings;
    daemon::Limits& limits = settings.limits;
    std::vector<std::string> models;
    std::string config;
    std::string engine = "auto";
    std::string pin = "auto";
    std::string planes = "on";
    std::string gpu_memory;
    std::string device;
    std::string access_log = "off";
    std::string log_level = "info";
    const auto seconds = [](const char* name, std::chrono::milliseconds& target,
                            double smallest = kMinSeconds) {
        return po::value<double>()
            ->default_value(std::chrono::duration<double>(target).count())
            ->value_name("S")
            ->notifier([name, &target, smallest](double value) {
                // What is less than a millisecond would be cut to 0, which may mean «for ever».
                const bool allowed =
                    (value >= kMinSeconds && value <= 1e9) || (smallest == 0 && value == 0);
                if (!allowed) {
                    throw po::error(fmt::format("--{} is {}from {} to 1e9 seconds, not {}", name,
                                                smallest == 0 ? "0, or " : "", kMinSeconds, value));
                }
                target = std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
            });
    };
    // Read as signed: Boost would take -1 for the largest number there is.
    const auto count = [](const char* name, std::size_t& target, std::int64_t largest = kMaxCount) {
        return po::value<std::int64_t>()
            ->default_value(static_cast<std::int64_t>(target))
            ->value_name("N")
            ->notifier([name, &target, largest](std::int64_t value) {
                if (value < 1 || value > largest)
                    throw po::error(
                        fmt::format("--{} is from 1 to {}, not {}", name, largest, value));
                target = static_cast<std::size_t>(value);
            });
    };

    // clang-format off
    po::options_description served("What is served");
    served.add_options()
        ("model", po::value(&models)->value_name("[NAME=]DIR"), "a model; NAME is the directory's by default. Of several the first is the default")
        ("socket", po::value(&settings.socket_path)->value_name("PATH"),
         "where to listen; default $GLOVED_SOCKET, else gloved.sock in $RUNTIME_DIRECTORY (set by systemd), in /run/gloved (root), or in "
         "$XDG_RUNTIME_DIR")
        ("config", po::value(&config)->value_name("FILE"), "options as lines 'name = value'; the command line goes first");
    po::options_description computing("How it is computed");
    computing.add_options()
        ("engine", po::value(&engine)->default_value("auto")->value_name("NAME"), "auto, cuda or cpu")
        ("simd", po::value(&settings.simd)->value_name("NAME"), "cpu: avx512, avx2 or baseline; default the best")
        ("device", po::value(&device)->default_value("0")->value_name("all|N,N..."),
         "cuda: the devices that share the model's rows, as CUDA numbers them")
        ("threads", po::value(&settings.threads)->default_value(0)->value_name("T"), "0: one a processor")
        ("pin", po::value(&pin)->default_value("auto")->value_name("auto|on|off"), 
         "cpu: lock the model in memory (on: end where that is refused); cuda: lock it while it is copied")
        ("planes", po::value(&planes)->default_value("on")->value_name("on|off"),
         "read a 4-bit copy of the model first, and only the vectors that it lets through; off saves its memory")
        ("gpu-memory", po::value(&gpu_memory)->value_name("BYTES"),
         "cuda: of each device's memory use so much at most, as 6G; a model that does not fit is read from the host's where it matters")
        ("batch-ms", po::value(&settings.batch_ms)->default_value(0)->value_name("MS"),
         "predicted time of a batch; 0: twice that of a single query, 1 at least");
    po::options_description bounds("Limits (times in seconds)");
    bounds.add_options()
        ("max-k", count("max-k", limits.max_k), "largest k= of a request")
        ("max-connections", count("max-connections", limits.max_connections), "connections open at once")
        ("uid-share", count("uid-share", limits.uid_share, 100), "how many percent of these one user may have open")
        ("queue-length", count("queue-length", limits.queue_length), "requests that may wait for an engine")
        ("request-timeout", seconds("request-timeout", limits.request_timeout), "longest wait for an engine")
        ("line-timeout", seconds("line-timeout", limits.line_timeout), "from a line's first byte to its end")
        ("idle-timeout", seconds("idle-timeout", limits.idle_timeout, 0), "with nothing sent and nothing owed; 0: for ever")
        ("write-timeout", seconds("write-timeout", limits.write_timeout), "for a peer to take the next 64 KiB of its answers")
        ("drain-timeout", seconds("drain-timeout", limits.drain_timeout, 0), "from SIGTERM to cutting what is left");
    po::options_description logging("Log, on standard error");
    logging.add_options()
        ("log-level", po::value(&log_level)->default_value("info")->value_name("LEVEL"), "debug, info, warning or error")
        ("access-log", po::value(&access_log)->default_value("off")->value_name("on|off"),
         "a line a request: who, verb, outcome, microseconds; never the words");
    po::options_description other("Other");
    other.add_options()
        ("check", "verify the model's checksums, answer one query, exit")
        ("help", "this text")
        ("version", "the version");
    // clang-format on
    po::options_description all;
    all.add(served).add(computing).add(bounds).add(logging).add(other);

    po::variables_map given;
    // An abbreviation that is right today means something else, or two things, when options are
    // added.
    const int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv).options(all).positional({}).style(style).run(),
              given);
    if (given.count("help") != 0) {
        std::cout << kIntroduction << all;
        return std::nullopt;
    }
    if (given.count("version") != 0) {
        std::cout << "gloved " << kProgramVersion << "\n";
        return std::nullopt;
    }
    if (given.count("config") != 0) {
        const auto path = given["config"].as<std::string>();
        const auto text = read_whole_file(path, kMaxConfigBytes);
        if (!text) throw po::error("--config: " + text.error().message);
        if (text->find('\0') != std::string::npos)
            throw po::error("--config: " + path + ": there is a NUL in it");
        std::istringstream file(*text);
        po::options_description configurable;
        configurable.add(served).add(computing).add(bounds).add(logging);
        const auto settings_of_file = po::parse_config_file(file, configurable);
        for (const auto& option : settings_of_file.options) {
            if (option.string_key == "config")
                throw po::error(path + ": config = stands on the command line only");
        }
        po::store(settings_of_file, given);
    }
    po::notify(given);
    if (given.count("socket") != 0 && settings.socket_path.empty())
        throw po::error("--socket needs a path");
    arguments.check = given.count("check") != 0;
    if (models.empty()) throw po::error("--model is needed");
    for (const std::string& model : models) add_model(model, settings);
    const auto kind = kernels::parse_engine(engine);
    if (!kind) throw po::error("--engine takes auto, cuda or cpu, not " + printable(engine));
    settings.engine = *kind;
    // Empty is the default: the best that the processor has.
    if (!settings.simd.empty() && settings.simd != "avx512" && settings.simd != "avx2" &&
        settings.simd != "baseline")
        throw po::error("--simd takes avx512, avx2 or baseline, not " + printable(settings.simd));
    if (pin != "auto" && pin != "on" && pin != "off")
        throw po::error("--pin takes auto, on or off, not " + printable(pin));
    settings.pin = pin == "auto" ? daemon::Pin::automatic
                   : pin == "on" ? daemon::Pin::on
                                 : daemon::Pin::off;
    if (planes != "on" && planes != "off")
        throw po::error("--planes takes on or off, not " + printable(planes));
    settings.planes = planes == "on";
    if (!gpu_memory.empty()) {
        const auto bytes = byte_count_from(gpu_memory);
        if (!bytes || *bytes == 0) {
            throw po::error(
                "--gpu-memory takes a number of bytes, as 6442450944, 6144M or 6G, not " +
                printable(gpu_memory));
        }
        settings.gpu_memory_bytes = *bytes;
    }
    set_devices(device, settings);
    if (access_log != "on" && access_log != "off")
        throw po::error("--access-log takes on or off, not " + printable(access_log));
    settings.access_log = access_log == "on";
    arguments.log_level = spdlog::level::from_str(log_level);
    if (log_level != "debug" && log_level != "info" && log_level != "warning" &&
        log_level != "error")
        throw po::error("--log-level takes debug, info, warning or error, not " +
                        printable(log_level));
    if (settings.limits.max_k < wire::kDefaultK) {
        throw po::error(fmt::format(
            "--max-k is at least {}, which requests ask for that name no k=", wire::kDefaultK));
    }
    if (settings.threads > 4096) throw po::error("--threads is at most 4096");
    if (!(settings.batch_ms >= 0 && settings.batch_ms <= 60000))
        throw po::error("--batch-ms is from 0 to 60000");
    return arguments;
}

/// Connections are descriptors: as many as the system lets this process have.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

kernels::EngineOptions engine_options(const Settings& settings) {
    kernels::EngineOptions options;
    options.threads = settings.threads;
    options.simd = settings.simd;
    options.devices = settings.devices;
    options.all_devices = settings.all_devices;
    options.pin = settings.pin != daemon::Pin::off;
    options.planes = settings.planes;
    options.gpu_memory_bytes = settings.gpu_memory_bytes;
    options.log = [](const std::string& line) { write_log_always(spdlog::level::info, line); };
    return options;
}

Status verify(const format::Model& model) {
    for (const format::Section& section : model.header().sections) {
        if (Status verified = model.verify_section(section); !verified) return verified;
    }
    return model.verify_planes();
}

struct Opened {
    std::shared_ptr<const format::Model> model;
    std::unique_ptr<kernels::Engine> engine;
};

/// A model with the engine that was asked for, which answers a query whose answer is known. With
/// `verified` everything that can be wrong with the model is looked for first.
Result<Opened> open(const daemon::ModelSetting& setting, const Settings& settings, bool verified) {
    auto opened = format::Model::open(setting.path);
    if (!opened) return opened.error();
    auto model = std::make_shared<const format::Model>(*std::move(opened));
    if (verified) {
        if (Status sound = verify(*model); !sound) return sound.error();
    }
    auto engine = kernels::make_engine(settings.engine, *model, engine_options(settings));
    if (!engine) return engine.error();
    // All rows of a model that is not in memory yet take the time of reading it. Under a watchdog
    // it is taken now: once the service is ready, a first query that waits for a slow disk would
    // look like an engine that hangs.
    const bool of_all_rows =
        verified || (*engine)->kind() != EngineKind::cpu || daemon::watchdog_interval();
    if (Status answered = daemon::KnownAnswer(model).ask(**engine, of_all_rows); !answered)
        return answered.error();
    return Opened{std::move(model), *std::move(engine)};
}

/// A model with the engine that was asked for and, beside a GPU, the cpu engine for those who ask
/// for it.
Result<std::shared_ptr<daemon::LoadedModel>> load(const daemon::ModelSetting& setting,
                                                  const Settings& settings, bool verified) {
    auto opened = open(setting, settings, verified);
    if (!opened) return opened.error();
    auto& [model, engine] = *opened;
    if (settings.pin == daemon::Pin::on && engine->kind() == EngineKind::cpu) {
        if (Status locked = daemon::lock_values(*model); !locked) return locked.error();
    }
    log_info("model {}: {} words × {}, generation {}", setting.name, model->rows(), model->dim(),
             format::hex(model->generation()));
    log_info("engine {}: {}", engine->name(), engine->description());
    const bool other = engine->kind() != EngineKind::cpu;
    std::vector<std::unique_ptr<kernels::Engine>> engines;
    engines.push_back(std::move(engine));
    if (other) {
        auto cpu = kernels::make_engine(EngineKind::cpu, *model, engine_options(settings));
        if (!cpu) return cpu.error();
        log_info("engine cpu, for requests that name it: {}", (*cpu)->description());
        engines.push_back(*std::move(cpu));
    }
    return std::make_shared<daemon::LoadedModel>(setting.name, std::move(model), std::move(engines),
                                                 settings);
}

/// Why auto takes none that it would prefer to the cpu; empty where it need not say.
std::string missing_engines() {
    std::string text;
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.unavailable.empty()) continue;
        log_info("engine {}: {}", to_string(entry.kind), entry.unavailable);
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", to_string(entry.kind),
                            entry.unavailable);
    }
    return text;
}

/// --check: everything that can be wrong with the models, and one query of each whose answer is
/// known.
Result<int> check(const Settings& settings) {
    for (const daemon::ModelSetting& setting : settings.models) {
        const auto opened = open(setting, settings, true);
        if (!opened) return opened.error();
        const auto& [model, engine] = *opened;
        std::cout << without_control_bytes(fmt::format(
                         "{}: {} words x {}, generation {}, checksums hold, engine {} ({}) answers",
                         setting.path, model->rows(), model->dim(),
                         format::hex(model->generation()), engine->name(), engine->description()))
                  << "\n";
    }
    if (!std::cout.flush()) return Error{ErrorCode::io, "cannot write the result"};
    return kDone;
}

/// A socket that was passed goes before all.
Result<daemon::ListeningSocket> listen(const std::string& path) {
    auto passed = daemon::passed_socket();
    if (!passed) return passed.error();
    if (*passed) return daemon::ListeningSocket::adopt(**std::move(passed));
    const auto place = socket_to_listen_at(path, ::geteuid() == 0);
    if (!place) return place.error();
    // The directory is what a service manager would make. If that fails, binding says why.
    // Whatever the umask: a directory that was there keeps its mode.
    if (*place == kSystemSocket && ::mkdir("/run/gloved", 0755) == 0)
        (void)::chmod("/run/gloved", 0755);
    return daemon::ListeningSocket::bind(*place);
}

/// The exit status. Error: what kept it from beginning.
Result<int> serve(Settings& settings) {
    // First the socket: a second daemon finds out at once, and clients may already line up while
    // the model loads.
    auto listening = listen(settings.socket_path);
    if (!listening) return listening.error();
    const std::string address = listening->address();
    const auto loader = [&settings, is_first = true](const daemon::ModelSetting& setting,
                                                     bool verified) mutable {
        // Here, beside the loop: a driver that hangs keeps nobody from stopping the daemon.
        if (std::exchange(is_first, false) && !settings.engine)
            settings.missing_engines = missing_engines();
        return load(setting, settings, verified);
    };
    daemon::Server server(settings, loader, *std::move(listening));
    const bool served = server.run([&address] {
        log_info("ready, {:.0f} ms after the start; listening on {}", ms_since_start(), address);
    });
    log_info("stopped");
    daemon::end_log();
    // Whatever is being loaded is of no use any more, and nobody should wait for it.
    if (served && server.is_loading()) std::_Exit(kDone);
    return served ? kDone : kFault;
}

int run_program(int argc, char** argv) {
    daemon::block_signals();
    daemon::install_out_of_memory_handler();
    std::optional<Arguments> arguments;
    try {
        arguments = parse(argc, argv);
    } catch (const po::error& error) {
        // It may be journald that reads, and what was given may be anything.
        const std::string_view prefix = daemon::log_prefix_of_errors();
        std::cerr << prefix << "gloved: " << without_control_bytes(error.what()) << "\n"
                  << prefix << "Try 'gloved --help'.\n";
        return kUsage;
    }
    if (!arguments) return kDone;
    daemon::start_log(arguments->log_level);
    daemon::install_sigbus_handler();
    ::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    // Nothing is to be cleaned up after a check.
    if (arguments->check) daemon::unblock_signals();
    try {
        const Result<int> done =
            arguments->check ? check(arguments->settings) : serve(arguments->settings);
        if (done) return *done;
        log_error("{}", done.error().message);
    } catch (const std::exception& error) {
        log_error("{}", error.what());
    }
    daemon::end_log();
    return kFault;
}

}  // namespace

int main(int argc, char** argv) { return gloved::program_main("gloved", run_program, argc, argv); }
