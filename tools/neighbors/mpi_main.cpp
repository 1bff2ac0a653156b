// gloved-neighbors-mpi: the processes of an MPI job draw the parts of a model's neighbors file from
// one counter and compute them; process 0 joins the parts. The work is in neighbors.cpp.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/program_main.hpp"
#include "common/progress.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/registry.hpp"
#include "tools/bus_error.hpp"
#include "tools/neighbors/command.hpp"
#include "tools/neighbors/neighbors.hpp"
#include "tools/neighbors/parts.hpp"
#include "tools/neighbors/processes.hpp"

namespace {

using namespace gloved;
using neighbors::Access;
using neighbors::Parts;
using neighbors::Processes;

constexpr cli::Program kProgram = {"gloved-neighbors-mpi",
                                   R"(Usage: mpirun [...] gloved-neighbors-mpi [options] MODEL_DIR

Finds the nearest other words of every word of a model, exactly, as
gloved-neighbors does, by all processes of an MPI job. Each takes the next part
of the work whenever it has finished one; the first process stores the result in
the model.
If a run is stopped, the next one goes on where it was.

)",
                                   R"(
The hosts share the directory of the parts, and have the same model. The result
is the same, byte for byte, as that of gloved-neighbors. Afterwards
gloved-neighbors writes lists from it (--output) and tells of hubs (--hubs).

Examples:
  mpirun --map-by ppr:1:node --bind-to none gloved-neighbors-mpi models/glove
  mpirun --map-by ppr:8:node gloved-neighbors-mpi --engine cuda models/glove

Exit status:
  0  success
  1  a file cannot be read or written, the engine cannot run, a process died, or
     a signal came; finished parts are kept
  2  wrong usage
)"};

struct CommandSettings {
    neighbors::Settings settings;
    bool has_device = false;  // --device
};

cli::Options describe_options() {
    cli::Options options;
    neighbors::add_computing_options(options, "the processes of a host share its cores evenly",
                                     "the processes of a host take its GPUs in turn");
    cli::OptionAdder add(options.shown);
    add("times",
        "print on stderr how long computing, writing and joining take, "
        "in the slowest process");
    return options;
}

/// What process 0 tells the others before they compute.
struct Plan {
    bool is_stored = false;        ///< the file is there, so nothing is left to do
    std::uint64_t generation = 0;  ///< of the model
    std::uint64_t k = 0;
    std::uint64_t part_rows = 0;
    std::vector<std::size_t> missing = {};  ///< numbers of the parts to compute

    std::vector<std::uint64_t> to_numbers() const {
        std::vector<std::uint64_t> numbers = {is_stored ? 1U : 0U, generation, k, part_rows};
        numbers.insert(numbers.end(), missing.begin(), missing.end());
        return numbers;
    }
    static Plan from_numbers(const std::vector<std::uint64_t>& numbers) {
        return {numbers[0] == 1,
                numbers[1],
                numbers[2],
                numbers[3],
                {numbers.begin() + 4, numbers.end()}};
    }
};

/// Divides the host's processors and GPUs between its processes, unless the command line says what
/// each takes.
neighbors::Settings divide_host(const CommandSettings& asked, const Processes& processes) {
    neighbors::Settings settings = asked.settings;
    kernels::EngineOptions& options = settings.engine_options;
    if (options.threads == 0) options.threads = processes.processors();
    if (asked.has_device) return settings;
    // If no engine can run, making it will tell why.
    const auto engine = kernels::choose_engine(settings.engine);
    if (!engine || *engine != kernels::EngineKind::cuda) return settings;
    const std::size_t devices = kernels::count_devices();
    if (devices != 0)
        options.devices.numbers = {static_cast<int>(processes.rank_on_host() % devices)};
    return settings;
}

/// Computes parts together with the other processes, and returns when all parts are there. Returns
/// each step's duration in the slowest process.
Result<neighbors::Times> compute_together(const CommandSettings& asked, Processes& processes,
                                          const format::Model& model, const Parts& parts,
                                          const std::vector<std::size_t>& missing,
                                          const std::atomic<bool>& stop) {
    const auto begun = std::chrono::steady_clock::now();
    const bool is_first = processes.rank() == 0;
    neighbors::Settings settings = asked.settings;
    // Counting GPUs starts the driver, for which a process without work has no use.
    if (processes.rank() < missing.size()) settings = divide_host(asked, processes);
    std::optional<Progress> progress;
    if (is_first)
        progress.emplace("computing", neighbors::count_rows(parts, missing),
                         ProgressUnit{"words", 1});
    const auto on_rows = [&](std::size_t rows) {
        if (!is_first) return;
        progress->update(rows);
        Processes::answer_draws();
    };
    const auto computed = neighbors::compute_drawn(
        model, settings, parts, missing, [&] { return processes.draw(); }, on_rows, stop);
    if (!computed) return computed.error();
    std::uint64_t rows = computed->rows;
    if (Status all = processes.sum({&rows, 1}); !all) return all.error();
    progress.reset();
    const auto& times = computed->times;
    std::array<double, 3> slowest = {times.engine, times.computing, times.writing};
    if (Status all = processes.maximum(slowest); !all) return all.error();
    if (is_first && rows != 0) {
        kProgram.say(fmt::format(
            "{}; {} process{}; {}", neighbors::describe_rate(rows, seconds_since(begun)),
            processes.count(), processes.count() == 1 ? "" : "es", computed->engine));
    }
    return neighbors::Times{slowest[0], slowest[1], slowest[2], 0};
}

/// The work of process 0.
Status lead(const CommandSettings& asked, Processes& processes, const std::atomic<bool>& stop) {
    const neighbors::Settings& settings = asked.settings;
    const auto say = [](const std::string& message) { kProgram.say(message); };
    const auto model = format::Model::open(settings.model_dir);
    if (!model) return model.error();
    const auto stored = neighbors::find_stored(*model, settings, say);
    if (!stored) return stored.error();
    Plan plan = {stored->has_value(), model->generation(), settings.k, settings.part_rows};
    if (plan.is_stored) {
        auto numbers = plan.to_numbers();
        return processes.broadcast(numbers);
    }
    if (Status storable = neighbors::check_can_store(settings); !storable) return storable;
    Result<neighbors::Times> computed = [&]() -> Result<neighbors::Times> {
        const auto parts = neighbors::open_parts(*model, settings, Access::shared);
        if (!parts) return parts.error();
        const auto missing = neighbors::list_missing(*parts, {}, stop, say);
        if (!missing) return missing.error();
        plan.missing = *missing;
        auto numbers = plan.to_numbers();
        if (Status sent = processes.broadcast(numbers); !sent) return sent.error();
        return compute_together(asked, processes, *model, *parts, *missing, stop);
    }();
    if (!computed) return computed.error();
    // All have closed, and so unlocked, the directory.
    if (Status met = processes.meet(); !met) return met;
    const auto made =
        neighbors::join_parts(*model, settings, neighbors::Storing::required, stop, say, *computed);
    return made ? Status() : made.error();
}

/// Refuses (mismatch) a model or options other than those of process 0.
Status check_same(const Plan& plan, const format::Model& model,
                  const neighbors::Settings& settings) {
    if (model.generation() != plan.generation) {
        return error_with(ErrorCode::mismatch,
                          "{}: has generation {} here and {} where rank 0 runs; all hosts need the "
                          "same model",
                          model.path(), format::hex(model.generation()),
                          format::hex(plan.generation));
    }
    if (settings.k == plan.k && settings.part_rows == plan.part_rows) return {};
    return error_with(ErrorCode::mismatch, "--k {} differs from --k {} of rank 0", settings.k,
                      plan.k);
}

/// The work of the other processes.
Status follow(const CommandSettings& asked, Processes& processes, const std::atomic<bool>& stop) {
    const neighbors::Settings& settings = asked.settings;
    std::vector<std::uint64_t> numbers;
    if (Status received = processes.broadcast(numbers); !received) return received;
    const Plan plan = Plan::from_numbers(numbers);
    if (plan.is_stored) return {};
    const auto model = format::Model::open(settings.model_dir);
    if (!model) return model.error();
    if (Status same = check_same(plan, *model, settings); !same) return same;
    {
        const auto parts = neighbors::open_parts(*model, settings, Access::shared_existing);
        if (!parts) {
            if (parts.error().code != ErrorCode::io) return parts.error();
            return error_with(ErrorCode::io,
                              "{}; all hosts must share the directory of the parts (--parts)",
                              parts.error().message);
        }
        const auto computed =
            compute_together(asked, processes, *model, *parts, plan.missing, stop);
        if (!computed) return computed.error();
    }
    return processes.meet();
}

/// Says what ended this process, and ends the others.
int fail(const Processes& processes, const Error& error) {
    if (error.code != ErrorCode::interrupted) {
        kProgram.say(
            fmt::format("rank {} on {}: {}", processes.rank(), processes.host(), error.message));
    } else if (processes.rank() == 0) {
        kProgram.say("interrupted; finished parts are kept, and the next run goes on from them");
    }
    Processes::abort(cli::kFault);
    return cli::kFault;
}

int run(const CommandSettings& asked) {
    // mpirun sends a second signal to the processes that still run when the first one has ended.
    const auto& stop = cli::stop_on_signals(cli::SecondSignal::ignored);
    cli::let_writes_fail();
    Processes processes(stop);
    // After the start of MPI, whose handler would say less.
    tools::explain_bus_errors(
        "gloved-neighbors-mpi: a file became shorter while it was read or written, or its disk "
        "fails\n");
    Status done = [&]() -> Status {
        try {
            return processes.rank() == 0 ? lead(asked, processes, stop)
                                         : follow(asked, processes, stop);
        } catch (const std::exception& error) {
            // Such as a lack of memory, which must end the other processes too.
            return Error{ErrorCode::unavailable, explain(error)};
        }
    }();
    if (done) done = processes.finish();
    return done ? cli::kDone : fail(processes, done.error());
}

int run_program(int argc, char** argv) {
    return cli::run(kProgram, describe_options(), cli::arguments_of(argc, argv),
                    [](const cli::CommandLine& line) {
                        return run({neighbors::read_computing_options(line), line.given("device")});
                    });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-neighbors-mpi", run_program, argc, argv);
}
