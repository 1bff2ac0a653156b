// gloved-distmat: its command line and signals. The work is in distmat.cpp.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/program_main.hpp"
#include "common/result.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bus_error.hpp"
#include "tools/distmat/distmat.hpp"
#include "tools/distmat/word_options.hpp"
#include "tools/old_engines.hpp"

namespace {

using namespace gloved;
using cli::WrongUsage;

constexpr cli::Program kProgram = {"gloved-distmat", R"(Usage: gloved-distmat [options] INPUT OUTPUT

Computes the distances between all rows of a matrix. INPUT is text, one row per
line, or a NumPy array (.npy) of float32 or float64 of shape (rows, columns). It
may be plain, compressed by gzip, bzip2, xz or zstd, or a file in a zip or tar
archive; - is stdin. With --model, INPUT has one word per line, and the rows are
the words' vectors.

OUTPUT is a NumPy array if its name ends in .npy, a table with labels for R,
pandas and spreadsheets if it ends in .csv, otherwise text; - is stdout. Without
--top it is a matrix of shape (rows, rows), float32, in the order of INPUT. Text
has one row per line, with blanks between the numbers and without labels.

)",
                                   R"(
All engines write the same bytes.

Examples:
  printf '0 0\n3 4\n6 8\n' | gloved-distmat --metric euclidean - -
  gloved-distmat points.npy distances.npy
  gloved-distmat --top 10 points.txt.gz nearest.txt
  gloved-distmat --model models/glove --metric similarity words.txt cosines.csv

Exit status:
  0  success
  1  the input is malformed, a file cannot be read or written, the engine cannot
     run, or a signal came; OUTPUT is unchanged
  2  wrong usage
)"};

cli::Options describe_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("metric", cli::value("sqeuclidean|euclidean|cosine|similarity", "sqeuclidean"),
        "distance: the sum of the squared differences, its square root, or 1 minus the cosine; or "
        "instead of a distance the cosine itself, for which nearest is largest");
    add("format", cli::value("text|csv|tsv|npy"),
        "what OUTPUT is: text; a table with headings and labels, in which commas or TABs stand "
        "between cells and words with quotes are quoted; or a NumPy array (default: by its name, "
        "csv, npy or else text)");
    add("engine", cli::value("auto|cuda|cpu", "auto"),
        "what computes: a GPU (cuda) or the CPU; auto is cuda if it can run here, else cpu");
    add("model", cli::value("DIR"), "model made by gloved-convert, for the words in INPUT");
    distmat::add_word_options(add);
    add("top", cli::value("K"),
        "write only the K nearest other rows of each row, nearest first. Text has lines of row "
        "(from 0), other row and distance, separated by TABs, with words for rows with --model. A "
        ".npy array has the fields index and distance");
    add("threads", cli::value("T"), "threads that read and compute (default: one per core)");
    add("simd", cli::value("avx512|avx2|neon|baseline"),
        "cpu: instruction set (default: the best one of this machine)");
    add("device", cli::value("N", "0"), "cuda: number of the GPU");
    add("member", cli::value("NAME"), "file to read from an archive, if it has several");
    add("times", "print on stderr how long reading, computing and writing take");
    // For tests, whose matrices are smaller than a block.
    options.hidden.add_options()("block", cli::value("N"));
    options.operands = {"input", "output"};
    return options;
}

distmat::Format read_format(const cli::CommandLine& line, const std::string& output) {
    using distmat::Format;
    if (!line.given("format")) return distmat::format_of(output);
    const auto format = line.choice<Format>(
        "format",
        {{"text", Format::text}, {"csv", Format::csv}, {"tsv", Format::tsv}, {"npy", Format::npy}});
    if (format == Format::npy && output == "-")
        throw WrongUsage("a NumPy array needs a file for OUTPUT, not stdout");
    return format;
}

distmat::DistmatOptions read_options(const cli::CommandLine& line) {
    using kernels::distance::Metric;
    constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();
    distmat::DistmatOptions options;
    options.input = line.text("input");
    options.output = line.text("output");
    if (options.input.empty() || options.output.empty())
        throw WrongUsage("INPUT and OUTPUT are needed");
    options.metric = line.choice<Metric>("metric", {{"sqeuclidean", Metric::sqeuclidean},
                                                    {"euclidean", Metric::euclidean},
                                                    {"cosine", Metric::cosine},
                                                    {"similarity", Metric::cosine}});
    options.is_similarity = line.text("metric") == "similarity";
    options.format = read_format(line, options.output);
    tools::refuse_old_engines(line, {"sequential", "global", "shared8", "shared16", "shared32"},
                              "distances");
    options.engine =
        line.choice<const char*>("engine", {{"auto", "auto"}, {"cuda", "cuda"}, {"cpu", "cpu"}});
    options.model_dir = line.nonempty("model", "a directory");
    line.needs("model", {"unknown", "case"});
    options.word_rules = distmat::read_word_options(line);
    options.member = line.nonempty("member", "the name of a file in the archive");
    options.top = line.count("top", 1, kMaxSize, 0);
    options.block = line.count("block", 0, kMaxSize, 0);
    options.threads = line.threads();
    options.times = line.given("times");
    options.engine_options.threads = static_cast<unsigned>(options.threads);
    options.engine_options.simd = line.text("simd");
    options.engine_options.device = static_cast<int>(
        line.count("device", 0, static_cast<std::uint64_t>(std::numeric_limits<int>::max())));
    return options;
}

int run(const distmat::DistmatOptions& options) {
    const auto& stop = cli::stop_on_signals(cli::SecondSignal::ignored);
    cli::let_writes_fail();
    tools::explain_bus_errors(
        "gloved-distmat: a file became shorter while it was read or written, or its disk fails\n");
    const Status done =
        distmat::distmat(options, stop, [](const std::string& message) { kProgram.say(message); });
    if (done) return cli::kDone;
    const Error& error = done.error();
    kProgram.say(error.code == ErrorCode::interrupted && options.output != "-"
                     ? fmt::format("interrupted; {} is unchanged", options.output)
                     : error.message);
    return cli::kFault;
}

int run_program(int argc, char** argv) {
    return cli::run(kProgram, describe_options(), cli::arguments_of(argc, argv),
                    [](const cli::CommandLine& line) { return run(read_options(line)); });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-distmat", run_program, argc, argv);
}
