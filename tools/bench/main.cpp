// gloved-bench: measures the engines, a daemon, gloved-matmin, gloved-distmat and the museum next
// to a plain read of memory. Each measurement is a subcommand.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "tools/bench/distmat.hpp"
#include "tools/bench/engines.hpp"
#include "tools/bench/load.hpp"
#include "tools/bench/matmin.hpp"
#include "tools/bench/museum.hpp"

namespace {

using namespace gloved;
using namespace gloved::bench;

using Arguments = std::vector<std::string>;

constexpr cli::Program kProgram = {"gloved-bench",
                                   R"(Usage: gloved-bench engines --model DIR|--rows N [options]
       gloved-bench load SOCKET [options]
       gloved-bench matmin|distmat [options]
       gloved-bench museum search|minimum|distances [options]

  engines  times queries by the engines, beside a plain read of the same memory
           and, on the CPU, OpenBLAS's sgemv and sgemm
  load     asks a running daemon as much as it can answer, or at a fixed rate
  matmin   times the engines of gloved-matmin
  distmat  times the engines of gloved-distmat
  museum   times the kernels that gloved descends from

)",
                                   R"(
Each has options of its own: gloved-bench engines --help

Examples:
  gloved-bench engines --rows 400000 --simd all
  gloved-bench load /tmp/gloved.sock --mix near=8,sim=1,ping=1 --lone

Exit status:
  0  success
  1  a measurement failed, or a result is wrong
  2  wrong usage
)"};

/// A subcommand.
struct Measurement {
    const char* name;
    int (*run)(const Arguments& arguments);
};

/// The run of a subcommand: reads its settings and runs it; a signal interrupts it. Returns the
/// exit status.
template <const cli::Program& kMeasured, auto kDescribe, auto kRead, auto kPrint>
int run_measurement(const Arguments& arguments) {
    return cli::run(kMeasured, kDescribe(), arguments, [](const cli::CommandLine& line) {
        const auto settings = kRead(line);
        cli::stop_on_signals(cli::SecondSignal::ignored);
        const Status done = kPrint(settings);
        if (!done) kMeasured.say(done.error().message);
        return done ? cli::kDone : cli::kFault;
    });
}

constexpr Measurement kMeasurements[] = {
    {"engines", run_measurement<kEnginesProgram, describe_engines_options, read_engines_settings,
                                print_engines>},
    {"load", run_measurement<kLoadProgram, describe_load_options, read_load_settings, print_load>},
    {"matmin",
     run_measurement<kMatminProgram, describe_matmin_options, read_matmin_settings, print_matmin>},
    {"distmat", run_measurement<kDistmatProgram, describe_distmat_options, read_distmat_settings,
                                print_distmat>},
    {"museum",
     run_measurement<kMuseumProgram, describe_museum_options, read_museum_settings, print_museum>},
};

/// Options without a subcommand, as they were once given: those of a load with --load SOCKET, else
/// of engines.
Arguments with_subcommand(Arguments arguments) {
    const auto load = std::ranges::find_if(arguments, [](const std::string& argument) {
        return argument == "--load" || argument.starts_with("--load=");
    });
    const bool is_load = load != arguments.end();
    if (is_load) {
        // What follows is the operand now.
        load->erase(0, std::string("--load=").size());
        if (load->empty()) arguments.erase(load);
    }
    arguments.insert(arguments.begin(), is_load ? "load" : "engines");
    kProgram.say(
        fmt::format("options without a subcommand are accepted for one more release: use "
                    "gloved-bench {}",
                    is_load ? "load SOCKET" : "engines"));
    return arguments;
}

int run_program(int argc, char** argv) {
    Arguments arguments = cli::arguments_of(argc, argv);
    const bool has_options = !arguments.empty() && arguments.front().starts_with('-');
    if (has_options && arguments.front() != "--help" && arguments.front() != "--version")
        arguments = with_subcommand(std::move(arguments));
    const std::string name = arguments.empty() ? "" : arguments.front();
    const auto* const found = std::ranges::find(kMeasurements, name, &Measurement::name);
    if (found != std::end(kMeasurements))
        return found->run({arguments.begin() + 1, arguments.end()});
    cli::Options options;
    options.operands = {"subcommand"};
    return cli::run(kProgram, options, arguments, [](const cli::CommandLine& line) -> int {
        const std::string there = "there are engines, load, matmin, distmat and museum";
        if (!line.given("subcommand")) throw cli::WrongUsage("a subcommand is missing: " + there);
        throw cli::WrongUsage("there is no subcommand " + printable(line.text("subcommand")) +
                              ": " + there);
    });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-bench", run_program, argc, argv);
}
