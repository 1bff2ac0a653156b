// gloved-distmat: command line and signals. The work is in distmat.cpp.
#include <fmt/format.h>
#include <signal.h>

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/program_main.hpp"
#include "kernels/distance/cpu.hpp"
#include "kernels/distance/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bus_error.hpp"
#include "tools/distmat/distmat.hpp"
#include "tools/program.hpp"

namespace {

using namespace gloved;
namespace po = boost::program_options;
using tools::kDone;
using tools::kFault;

constexpr std::int64_t kMaxThreads = 256;

constexpr const char* kHelpHead =
    "Usage: gloved-distmat [options] INPUT|- OUTPUT|-\n"
    "Computes the distance of every row of a matrix to every other. INPUT is text, a row a line, "
    "or a .npy file of\n"
    "float32 or float64 of shape (rows, columns); plain, gzip, or a member of a zip archive. "
    "OUTPUT is NumPy's array\n"
    "where its name ends in .npy, otherwise text; - is text on stdout. With --model, INPUT holds "
    "words, one a "
    "line.\n\n";
constexpr const char* kHelpTail =
    "\nExamples:\n"
    "  printf '0 0\\n3 4\\n6 8\\n' | gloved-distmat --metric euclidean - -\n"
    "  gloved-distmat points.npy distances.npy\n"
    "  gloved-distmat --top 10 points.txt.gz nearest.txt\n"
    "  gloved-distmat --model models/glove --metric cosine words.txt cosines.npy\n\n"
    "Exit status: 0 done, 1 the data or the system is at fault, 2 wrong usage.\n";
constexpr tools::Program kProgram = {"gloved-distmat", kHelpHead, kHelpTail};

std::optional<kernels::distance::Metric> metric_from(std::string_view name) {
    using kernels::distance::Metric;
    if (name == "sqeuclidean") return Metric::sqeuclidean;
    if (name == "euclidean") return Metric::euclidean;
    if (name == "cosine") return Metric::cosine;
    return std::nullopt;
}

/// What the command line asks for, or the exit status to end with.
int parse(int argc, char** argv, std::optional<distmat::DistmatOptions>& parsed) {
    distmat::DistmatOptions options;
    std::string metric;
    std::int64_t top = 0;
    std::int64_t threads = 0;
    std::int64_t block = 0;
    po::options_description visible("Options");
    visible.add_options()  //
        ("metric",
         po::value(&metric)
             ->default_value("sqeuclidean")
             ->value_name("sqeuclidean|euclidean|cosine"),
         "what a distance is: the sum of squared differences, its root, or 1 - cosine")  //
        ("engine",
         po::value(&options.engine)
             ->default_value("auto")
             ->value_name("auto|cuda|cpu|sequential|global|shared8|shared16|shared32"),
         "what computes; auto is cuda where there is a GPU, else cpu. All give the same bytes; the "
         "last five are for "
         "measuring")  //
        ("model", po::value(&options.model_dir)->value_name("DIR"),
         "a model of gloved-convert: INPUT holds words, one a line, and their vectors are the "
         "rows")  //
        ("top", po::value(&top)->value_name("K"),
         "write only the K nearest others of each row (all, where there are fewer)")  //
        ("threads", po::value(&threads)->value_name("T"),
         "threads that read and compute (default: one a processor)")  //
        ("simd", po::value(&options.engine_options.simd)->value_name("avx512|avx2|baseline"),
         "instruction set of the cpu engine (default: the best that the processor has)")  //
        ("device", po::value(&options.engine_options.device)->default_value(0)->value_name("N"),
         "which GPU")  //
        ("member", po::value(&options.member)->value_name("NAME"),
         "the file to take from a zip archive of several")  //
        ("times", po::bool_switch(&options.times),
         "say how long reading, computing and writing took")  //
        ("help", "show this")("version", "show the version");
    po::options_description all;
    // The last one is for tests, whose matrices are smaller than a block.
    all.add(visible).add_options()("input", po::value(&options.input))(
        "output", po::value(&options.output))("block", po::value(&block));
    po::positional_options_description positional;
    positional.add("input", 1).add("output", 1);

    po::variables_map values;
    if (const auto status = kProgram.read(argc, argv, visible, all, positional, values))
        return *status;
    if (options.input.empty() || options.output.empty())
        return kProgram.wrong_usage("INPUT and OUTPUT are needed");
    const auto known_metric = metric_from(metric);
    if (!known_metric) return kProgram.wrong_usage("--metric is sqeuclidean, euclidean or cosine");
    options.metric = *known_metric;
    bool known_engine = options.engine == "auto";
    for (const auto& entry : kernels::distance::list_distance_engines())
        known_engine |= entry.name == options.engine;
    if (!known_engine) {
        return kProgram.wrong_usage(
            "--engine is auto, cuda, cpu, sequential, global, shared8, shared16 or shared32");
    }
    if (values.count("model") != 0 && options.model_dir.empty())
        return kProgram.wrong_usage("--model is a directory");
    if (values.count("member") != 0 && options.member.empty()) {
        return kProgram.wrong_usage("--member is the name of a file in the archive");
    }
    if (values.count("top") != 0 && top < 1) return kProgram.wrong_usage("--top is 1 or more");
    if (values.count("threads") != 0 && (threads < 1 || threads > kMaxThreads)) {
        return kProgram.wrong_usage(fmt::format("--threads is 1 to {}", kMaxThreads));
    }
    if (options.engine_options.device < 0)
        return kProgram.wrong_usage("--device is the number of a GPU, from 0");
    options.top = static_cast<std::size_t>(top);
    options.block = static_cast<std::size_t>(block);
    options.threads =
        threads != 0 ? static_cast<std::size_t>(threads) : kernels::usable_processors();
    options.engine_options.threads = static_cast<unsigned>(options.threads);
    parsed = std::move(options);
    return kDone;
}

int run_program(int argc, char** argv) {
    std::optional<distmat::DistmatOptions> options;
    if (const int status = parse(argc, argv, options); !options) return status;
    const auto& stop = tools::stop_on_signals(tools::SecondSignal::waits_too);
    tools::let_writes_fail();
    tools::explain_bus_errors(
        "gloved-distmat: a file became shorter while it was read or written, or its disk fails\n");
    const Status done =
        distmat::distmat(*options, stop, [](const std::string& message) { kProgram.say(message); });
    if (done) return kDone;
    const Error& error = done.error();
    kProgram.say(error.code == ErrorCode::interrupted && options->output != "-"
                     ? fmt::format("interrupted; {} is as it was", options->output)
                     : error.message);
    return kFault;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-distmat", run_program, argc, argv);
}
