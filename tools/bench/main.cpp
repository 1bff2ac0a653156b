// gloved-bench: the engines, the ladder and a daemon, beside what memory allows on the same machine
// in the same run; what gloved-matmin and gloved-distmat do, likewise.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/format/model.hpp"
#include "common/program_main.hpp"
#include "common/version.hpp"
#include "kernels/registry.hpp"
#include "tools/bench/daemon_probe.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/distmat.hpp"
#include "tools/bench/engines.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/leak.hpp"
#include "tools/bench/loads.hpp"
#include "tools/bench/matmin.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/rungs.hpp"
#include "tools/bench/scratch.hpp"
#include "tools/bench/settings.hpp"
#include "tools/bench/table.hpp"

namespace {

using namespace gloved;
using namespace gloved::bench;

constexpr int kDone = 0;
constexpr int kAtFault = 1;
constexpr int kUsage = 2;

/// Enough for a 99th percentile that means something, where a query takes about a millisecond.
constexpr std::size_t kManySingles = 2000;
constexpr std::size_t kDaemonRounds = 9;

int fail(int code, const std::string& message) {
    say_on_stderr("gloved-bench", message);
    return code;
}

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) == 0)
            return line.substr(std::min(line.find(": ") + 2, line.size()));
    }
    return "unknown processor";
}

/// The daemon beside the first read of its file.
Status print_daemon(const format::Model& model, const Settings& settings,
                    const std::string& scratch) {
    DaemonOptions options;
    options.program = settings.daemon;
    options.directory = scratch;
    options.engine = !settings.daemon_engine.empty() ? settings.daemon_engine
                     : settings.engine == "all"      ? "auto"
                                                     : settings.engine;
    options.threads = settings.threads;
    options.k = settings.k;
    options.rounds = settings.repeat == 0 ? kDaemonRounds : settings.repeat;
    const auto engines = kernels::list_engines();
    const bool fast = options.engine == "cuda" ||
                      (options.engine == "auto" && engines.front().unavailable.empty() &&
                       engines.front().name == "cuda");
    options.singles = fast ? kManySingles : kQueriesBeforeMemory;
    options.seed = settings.seed;
    const auto figures = measure_daemon(model, options, interrupted);
    if (!figures) return figures.error();
    Table table({"what", "times", "ms p50", "ms min", "ms p99", "x fresh read", "ms a query"});
    for (const Series* series :
         {&figures->fresh_read, &figures->listening, &figures->first_answer, &figures->single,
          &figures->inside, &figures->echo, &figures->pipelined}) {
        const double ms = series->median();
        table.add({series->what, fmt::to_string(series->ms.size()), figure(ms),
                   figure(series->least()), figure(series->percentile(0.99)),
                   fmt::format("{:.2f}", ms / figures->fresh_read.median()),
                   series->queries == 0
                       ? ""
                       : fmt::format("{:.3f}", ms / static_cast<double>(series->queries))});
    }
    fmt::print("\n");
    table.print(stdout, settings.format);
    print_note(settings.format, fmt::format("daemon's memory beyond the mapped files after {} "
                                            "queries, {} of them with k={}: {:.1f} MB",
                                            kQueriesBeforeMemory, kLargeQueries, kLargeK,
                                            static_cast<double>(figures->own_bytes) / 1e6));
    return {};
}

void print_header(const format::Model& model, const Settings& settings) {
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    note(fmt::format("gloved-bench {}", kProgramVersion));
    note(fmt::format("machine  {}, {} thread{}", processor_name(), settings.threads,
                     settings.threads == 1 ? "" : "s"));
    note(fmt::format("model    {} x {} float32, {:.3f} GB of vectors, generation {}",
                     grouped(model.rows()), model.dim(),
                     static_cast<double>(model.vectors().size_bytes()) / 1e9,
                     format::hex(model.generation())));
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (!entry.unavailable.empty())
            note(fmt::format("no {}: {}", entry.name, entry.unavailable));
    }
}

void print_device(const Settings& settings, const Result<DeviceFacts>& device) {
    if (!device) return;  // what needs one says why there is none
    print_note(settings.format, fmt::format("device   {}, {:.1f} GB, driver {}; ready in {} ms",
                                            device->name, static_cast<double>(device->bytes) / 1e9,
                                            device->driver, figure(device->start_ms)));
}

Status measure_all(const format::Model& model, const Settings& settings,
                   const std::string& scratch) {
    const bool rungs = !settings.rungs.empty();
    // Before anything else asks the driver: the first to do so pays for its start.
    std::optional<Result<DeviceFacts>> device;
    if (rungs || settings.loads || settings.engine != "cpu") device = start_device(settings.device);
    print_header(model, settings);
    if (device) print_device(settings, *device);
    if (settings.leak_queries != 0) return print_leaks(model, settings);
    if (rungs) {
        if (Status printed = print_rungs(model, settings, processor_name()); !printed)
            return printed;
    } else {
        std::optional<OpenBlas> blas;
        if (wants_processor(settings)) {
            auto loaded =
                model.rows() > std::numeric_limits<int>::max()
                    ? Error{ErrorCode::unavailable, "more rows than its interface can count"}
                    : OpenBlas::load(settings.threads);
            print_note(settings.format,
                       "sgemv    " + (loaded ? loaded->description()
                                             : "left out: " + loaded.error().message));
            if (loaded) blas.emplace(*std::move(loaded));
        }
        if (Status printed = print_engines(model, settings, blas ? &*blas : nullptr); !printed)
            return printed;
    }
    std::fflush(stdout);
    if (rungs || settings.loads) {
        if (Status printed = print_loads(model, settings, scratch); !printed) return printed;
        std::fflush(stdout);
    }
    return settings.daemon.empty() ? Status() : print_daemon(model, settings, scratch);
}

Status run(const Settings& settings) {
    auto scratch = ScratchDirectory::create();
    if (!scratch) return scratch.error();
    std::string directory = settings.model;
    if (settings.generate) {
        directory = settings.keep.empty() ? scratch->path() + "/model" : settings.keep;
        Status made;
        const double ms = time_ms([&] {
            if (const auto header = generate_model(directory, *settings.generate, interrupted);
                !header)
                made = header.error();
        });
        if (!made) return made;
        say_on_stderr("gloved-bench", fmt::format("made {} in {:.1f} s", directory, ms / 1000));
    }
    auto model = format::Model::open(directory);
    if (!model) return model.error();
    const auto norms = model->norms();
    if (std::none_of(norms.begin(), norms.end(), [](double norm) { return norm > 0; })) {
        return Error{ErrorCode::bad_source,
                     directory + ": every vector is zero; there is nothing to ask for"};
    }
    return measure_all(*model, settings, scratch->path());
}

/// The rest of main for a measurement with a command line of its own.
template <class Settings>
int run_measurement(const Result<std::optional<Settings>>& settings,
                    Status (*print)(const Settings& settings, const std::string& processor_name),
                    const char* help) {
    if (!settings) return fail(kUsage, settings.error().message + "; try " + help);
    if (!*settings) return kDone;
    end_on_signals();
    if (Status done = print(**settings, processor_name()); !done)
        return fail(kAtFault, done.error().message);
    return kDone;
}

int run_program(int argc, char** argv) {
    const std::string_view measurement = argc > 1 ? argv[1] : "";
    if (measurement == "distmat") {
        return run_measurement(read_distmat_settings(argc - 1, argv + 1, std::cout), print_distmat,
                               "distmat --help");
    }
    if (measurement == "matmin") {
        return run_measurement(read_matmin_settings(argc - 1, argv + 1, std::cout), print_matmin,
                               "matmin --help");
    }
    auto settings = read_command_line(argc, argv, std::cout);
    if (!settings) return fail(kUsage, settings.error().message + "; try --help");
    if (!*settings) return kDone;
    if (!(*settings)->rungs.empty()) {
        if (const auto chosen = choose_rungs(**settings); !chosen) {
            return fail(kUsage, chosen.error().message + "; try --help");
        }
    }
    end_on_signals();
    if (Status done = run(**settings); !done) return fail(kAtFault, done.error().message);
    return kDone;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-bench", run_program, argc, argv);
}
