// gloved-bench: measures the engines, a daemon, gloved-matmin, gloved-distmat and the museum next
// to a plain read of memory.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/program_main.hpp"
#include "common/result.hpp"
#include "common/version.hpp"
#include "kernels/engine.hpp"
#include "kernels/registry.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/distmat.hpp"
#include "tools/bench/engines.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/load.hpp"
#include "tools/bench/load_settings.hpp"
#include "tools/bench/matmin.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/museum.hpp"
#include "tools/bench/run_settings.hpp"
#include "tools/bench/scratch.hpp"
#include "tools/bench/settings.hpp"
#include "tools/bench/table.hpp"

namespace {

using namespace gloved;
using namespace gloved::bench;

void print_header(const format::Model& model, const Settings& settings) {
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    note(fmt::format("gloved-bench {}", kProgramVersion));
    note("machine  " + processor_text(settings));
    note(fmt::format("model    {} x {} float32, {:.3f} GB of vectors, generation {}",
                     grouped(model.rows()), model.dim(),
                     static_cast<double>(model.vectors().size_bytes()) / 1e9,
                     format::hex(model.generation())));
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (!entry.unavailable.empty())
            note(fmt::format("no {}: {}", to_string(entry.kind), entry.unavailable));
    }
}

Status measure_all(const format::Model& model, const Settings& settings) {
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
    return print_engines(model, settings, blas ? &*blas : nullptr);
}

Status run(const Settings& settings) {
    auto scratch = ScratchDirectory::create();
    if (!scratch) return scratch.error();
    std::string directory = settings.model;
    if (settings.generate) {
        directory = settings.keep.empty() ? scratch->path() + "/model" : settings.keep;
        Result<format::Header> made = format::Header();
        const double ms = time_ms(
            [&] { made = generate_model(directory, *settings.generate, cli::stop_requested); });
        if (!made) return made.error();
        kProgram.say(fmt::format("made {} in {:.1f} s", directory, ms / 1000));
    }
    auto model = format::Model::open(directory);
    if (!model) return model.error();
    const auto norms = model->norms();
    if (std::ranges::none_of(norms, [](double norm) { return norm > 0; })) {
        return Error{ErrorCode::bad_source,
                     directory + ": every vector is zero; there is nothing to ask for"};
    }
    return measure_all(*model, settings);
}

/// Reads the settings and runs a measurement, which a signal interrupts. Returns the exit status.
template <class Given>
int run_measurement(const cli::Program& program, const cli::CommandLine& line,
                    Given (*read)(const cli::CommandLine&), Status (*print)(const Given&)) {
    const Given settings = read(line);
    cli::stop_on_signals(cli::SecondSignal::ignored);
    const Status done = print(settings);
    if (!done) program.say(done.error().message);
    return done ? cli::kDone : cli::kFault;
}

int run_program(int argc, char** argv) {
    std::vector<std::string> arguments = cli::arguments_of(argc, argv);
    const std::string measurement = arguments.empty() ? "" : arguments.front();
    if (measurement == "matmin" || measurement == "distmat" || measurement == "museum")
        arguments.erase(arguments.begin());
    if (measurement == "museum") {
        return cli::run(kMuseumProgram, describe_museum_options(), arguments, [](const auto& line) {
            return run_measurement(kMuseumProgram, line, read_museum_settings, print_museum);
        });
    }
    if (measurement == "matmin") {
        return cli::run(kMatminProgram, describe_matmin_options(), arguments, [](const auto& line) {
            return run_measurement(kMatminProgram, line, read_matmin_settings, print_matmin);
        });
    }
    if (measurement == "distmat") {
        return cli::run(
            kDistmatProgram, describe_distmat_options(), arguments, [](const auto& line) {
                return run_measurement(kDistmatProgram, line, read_distmat_settings, print_distmat);
            });
    }
    return cli::run(kProgram, describe_options(), arguments, [](const auto& line) {
        if (line.given("load"))
            return run_measurement(kProgram, line, read_load_settings, print_load);
        return run_measurement(kProgram, line, read_settings, run);
    });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-bench", run_program, argc, argv);
}
