#include "tools/bench/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>

#include "common/format/layout.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::bench {
namespace {

constexpr std::uint64_t kMaxThreads = 4096;

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t comma = text.find(',');
        parts.push_back(text.substr(0, comma));
        if (comma == std::string_view::npos) return parts;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace

void add_run_options(cli::OptionAdder& add, const char* seed) {
    add("device", cli::value("N", "0"), "number of the GPU");
    add("seed", cli::value("S", "1"), seed);
    add("format", cli::value("text|csv", "text"), "how to print results");
}

void read_run_settings(const cli::CommandLine& line, RunSettings& settings) {
    settings.threads = static_cast<unsigned>(line.count("threads", 0, kMaxThreads));
    if (settings.threads == 0) settings.threads = kernels::usable_processors();
    settings.seed = line.count("seed", 0, std::numeric_limits<std::uint64_t>::max());
    settings.format = line.choice<TableFormat>(
        "format", {{"text", TableFormat::text}, {"csv", TableFormat::csv}});
}

void read_one_device(const cli::CommandLine& line, RunSettings& settings) {
    settings.devices = line.devices("device");
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

std::vector<std::size_t> parse_batches(std::string_view text) {
    std::set<std::size_t> batches = {1};
    for (const std::string_view part : split(text)) {
        batches.insert(
            cli::parse_count("--batches (numbers with commas between)", part, 1, 1 << 20));
    }
    return {batches.begin(), batches.end()};
}

std::vector<std::size_t> parse_list_sizes(std::string_view text) {
    std::vector<std::size_t> sizes;
    for (const std::string_view part : split(text)) {
        sizes.push_back(
            cli::parse_count("--within (numbers with commas between)", part, 1, format::kMaxRows));
    }
    if (sizes.size() > kernels::kMaxLists)
        throw cli::WrongUsage(fmt::format("--within takes up to {} sizes", kernels::kMaxLists));
    return sizes;
}

std::vector<std::string> parse_names(std::string_view name, std::string_view text,
                                     std::span<const std::string_view> known) {
    const auto wanted = split(text);
    for (const std::string_view one : wanted) {
        if (std::ranges::find(known, one) != known.end()) continue;
        throw cli::WrongUsage(
            fmt::format("{}: there is no '{}'; there are {}", name, one, fmt::join(known, ", ")));
    }
    std::vector<std::string> names;
    for (const std::string_view one : known) {
        if (std::ranges::find(wanted, one) != wanted.end()) names.emplace_back(one);
    }
    return names;
}

}  // namespace gloved::bench
