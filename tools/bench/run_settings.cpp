#include "tools/bench/run_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "kernels/thread_pool.hpp"

namespace gloved::bench {
namespace {

constexpr std::uint64_t kMaxThreads = 4096;

}  // namespace

void read_run_settings(const cli::CommandLine& line, RunSettings& settings) {
    settings.threads = static_cast<unsigned>(line.count("threads", 0, kMaxThreads));
    if (settings.threads == 0) settings.threads = kernels::usable_processors();
    settings.devices = line.devices("device");
    settings.seed = line.count("seed", 0, std::numeric_limits<std::uint64_t>::max());
    settings.format = line.choice<TableFormat>(
        "format", {{"text", TableFormat::text}, {"csv", TableFormat::csv}});
}

void require_one_device(const RunSettings& settings) {
    if (settings.devices.all || settings.devices.numbers.size() > 1)
        throw cli::WrongUsage("--device takes one number here");
}

std::string processor_text(const RunSettings& settings) {
    std::string name = "unknown processor";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("model name")) continue;
        name = line.substr(std::min(line.find(": ") + 2, line.size()));
        break;
    }
    return fmt::format("{}, {} thread{}", name, settings.threads, settings.threads == 1 ? "" : "s");
}

}  // namespace gloved::bench
