#include "tools/bench/museum.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/format/layout.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {
namespace {

constexpr std::uint64_t kMaxCount = 1'000'000'000;
constexpr std::uint64_t kMaxRepeat = 100'000;
constexpr std::uint64_t kMaxSeconds = 100'000;

/// What can be measured of a subject, in the order of its table.
std::vector<std::string_view> known_versions(const std::string& subject) {
    if (subject == "search") return {"v0", "v1", "v2", "v3", "v4", "cpu", "cuda"};
    if (subject == "minimum") return {"original", "cpu", "cuda"};
    return {"sequential", "global", "shared8", "shared16", "shared32", "cpu", "cuda"};
}

}  // namespace

const cli::Program kMuseumProgram = {
    "gloved-bench museum",
    R"(Usage: gloved-bench museum search|minimum|distances [options]

Measures the kernels of the student projects that gloved descends from, beside
gloved's engines. First checks that every result is right: a search within its
bound, a minimum and distances to the last bit. Needs a GPU.

  search     v0 to v4, for ten words: milliseconds, speedups, parts
  minimum    of each element over many matrices of 3 x 3
  distances  between all rows of matrices with 128, 256, 512, 1024 and 2048 rows

)",
    R"(
Examples:
  gloved-bench museum search --rows 2196016
  gloved-bench museum search --model models/glove --versions v3,v4,cuda
  gloved-bench museum minimum --count 50000000
  gloved-bench museum distances --format csv > distances.csv

Exit status:
  0  success
  1  a measurement failed, or a result is wrong
  2  wrong usage
)"};

cli::Options describe_museum_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("model", cli::value("DIR"), "search: search this model");
    add("rows", cli::value("N", "400000"), "search: make up a model of N words");
    add("dim", cli::value("D", "300"), "search: numbers of a made-up word");
    add("k", cli::value("K", "10"), "search: words per answer, at most 32");
    add("count", cli::value("N", "20000000"), "minimum: number of matrices");
    add("versions", cli::value("LIST|all", "all"),
        "what to measure, with commas between: v0 to v4, original, sequential, global, shared8, "
        "shared16, shared32, and the engines cpu and cuda");
    add("repeat", cli::value("R", "10"), "rounds, after one that does not count");
    add("seconds", cli::value("S", "30"),
        "search: what has taken this many seconds skips its remaining rounds");
    add("threads", cli::value("T", "0"), "cpu: number of threads; 0 is one per core");
    add_run_options(add, "seed of what is made up");
    options.operands = {"subject"};
    return options;
}

MuseumSettings read_museum_settings(const cli::CommandLine& line) {
    MuseumSettings settings;
    settings.subject = line.text("subject");
    constexpr std::array<std::string_view, 3> kSubjects = {"search", "minimum", "distances"};
    if (std::ranges::find(kSubjects, settings.subject) == kSubjects.end())
        throw cli::WrongUsage("what to measure is missing: search, minimum or distances");
    line.excludes("model", {"rows"});
    settings.model = line.text("model");
    settings.rows = line.count("rows", 1, format::kMaxRows);
    settings.dim = line.count("dim", 1, format::kMaxDim);
    settings.k = line.count("k", 1, kMaxMuseumHits);
    settings.count = line.count("count", 1, kMaxCount);
    settings.repeat = line.count("repeat", 1, kMaxRepeat);
    settings.seconds = static_cast<double>(line.count("seconds", 0, kMaxSeconds));
    read_run_settings(line, settings);
    read_one_device(line, settings);
    const auto known = known_versions(settings.subject);
    if (line.text("versions") != "all")
        settings.versions = parse_names("--versions", line.text("versions"), known);
    else
        settings.versions.assign(known.begin(), known.end());
    return settings;
}

}  // namespace gloved::bench
