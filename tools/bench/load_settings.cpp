#include "tools/bench/load_settings.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/expr/expression.hpp"
#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::bench {
namespace {

using cli::WrongUsage;

constexpr std::uint64_t kMaxConnections = 100'000;
constexpr std::uint64_t kMaxDepth = 65'536;
constexpr std::uint64_t kMaxRate = 1'000'000'000;
constexpr double kMinSeconds = 0.1;

double read_share(const cli::CommandLine& line) {
    const auto share = expr::parse_number(line.text("check"));
    if (!share || !(*share >= 0 && *share <= 1))
        throw WrongUsage("--check takes a share from 0 to 1, not " + printable(line.text("check")));
    return *share;
}

}  // namespace

void describe_load_options(boost::program_options::options_description& group) {
    cli::OptionAdder{group}  //
    ("load", cli::value("SOCKET"),
     "instead of measuring engines, ask the daemon that listens there, and print answers per "
     "second, latencies, and the processor time of both sides; with --model, --threads (default: "
     "one per two cores), --k, --seed and --format")  //
        ("mix", cli::value("LIST", "near"),
         "with --load: what to ask, kinds with commas between, each with its weight, e.g. "
         "near=8,sim=1,ping=1; the man page lists them")                                  //
        ("connections", cli::value("N", "16"), "with --load: connections to the daemon")  //
        ("depth", cli::value("N", "16"),
         "with --load: requests of each connection that are sent ahead of replies")  //
        ("rate", cli::value("R"),
         "with --load: send R requests per second in all, whatever the daemon does, and measure "
         "latencies from the time when each was due")                                 //
        ("seconds", cli::value("S", "10"), "with --load: how long to send requests")  //
        ("check", cli::value("SHARE", "0.01"),
         "with --load: share of the requests whose answers are compared with those of a quiet "
         "daemon")  //
        ("lone",
         "with --load: add a client that asks one request at a time, with latencies of its own")  //
        ("daemon-pid", cli::value("PID"),
         "with --load: the daemon's process (default: the one that opened the socket)");
}

void refuse_load_options(const cli::CommandLine& line) {
    line.needs("load",
               {"mix", "connections", "depth", "rate", "seconds", "check", "lone", "daemon-pid"});
}

LoadSettings read_load_settings(const cli::CommandLine& line) {
    line.excludes("load", {"rows", "dim", "keep", "engine", "simd", "device", "spread", "pin",
                           "planes", "wgmma", "gpu-memory", "batches", "top", "range", "within",
                           "exclude", "min", "repeat"});
    line.excludes("rate", {"depth"});
    LoadSettings settings;
    read_run_settings(line, settings);
    settings.socket = line.nonempty("load", "the path of a socket");
    settings.model = line.nonempty("model", "a directory");
    settings.connections = line.count("connections", 1, kMaxConnections);
    // The daemon and its engines need the other cores.
    if (line.text("threads") == "0")
        settings.threads = std::max(1U, kernels::usable_processors() / 2);
    settings.threads =
        static_cast<unsigned>(std::min<std::size_t>(settings.threads, settings.connections));
    settings.depth = line.count("depth", 1, kMaxDepth);
    settings.rate = static_cast<double>(line.count("rate", 1, kMaxRate, 0));
    settings.mix = parse_mix(line.text("mix"));
    settings.k = line.count("k", 1, format::kMaxRows);
    settings.seconds = line.seconds("seconds", kMinSeconds);
    settings.check = read_share(line);
    settings.lone = line.given("lone");
    settings.daemon_pid =
        static_cast<pid_t>(line.count("daemon-pid", 1, std::numeric_limits<pid_t>::max(), 0));
    return settings;
}

}  // namespace gloved::bench
