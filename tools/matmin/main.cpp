// gloved-matmin: command line, signals, output. Reading is in source.cpp, reducing in
// kernels/reduce.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/files.hpp"
#include "common/program_main.hpp"
#include "kernels/reduce/registry.hpp"
#include "tools/matmin/result_text.hpp"
#include "tools/matmin/source.hpp"
#include "tools/program.hpp"

namespace {

using namespace gloved;
namespace po = boost::program_options;
using tools::kDone;
using tools::kFault;

constexpr std::int64_t kMaxThreads = 256;
constexpr unsigned kDefaultThreads = 8;  // more wait for the thread that reads

constexpr const char* kHelpHead =
    "Usage: gloved-matmin [options] INPUT|-\n"
    "Prints the smallest number of each element of many equal matrices: one matrix, of the "
    "smallest top left number, "
    "and\n"
    "so on. INPUT is text (a line with the number of matrices, then matrices, a line for each row, "
    "with lines of ***\n"
    "between them) or a NumPy array (.npy) of shape (matrices, rows, columns); plain, gzip, or a "
    "member of a zip "
    "archive;\n"
    "- reads stdin.\n\n";
constexpr const char* kHelpTail =
    "\nauto is cpu: matrices are reduced while they are in the cache, beside reading, which takes "
    "much longer. All "
    "engines\n"
    "print the same bytes.\n"
    "\nExamples:\n"
    "  printf '2\\n***\\n1 2\\n3 4\\n***\\n4 3\\n2 1\\n' | gloved-matmin -\n"
    "  gloved-matmin --op minmax --times matrices.txt.gz\n"
    "  gloved-matmin --engine sequential matrices.npy\n\n"
    "Exit status: 0 done, 1 the data or the system is at fault, 2 wrong usage.\n";
constexpr tools::Program kProgram = {"gloved-matmin", kHelpHead, kHelpTail};

enum class Op { minimum, maximum, both };

/// What the command line asks for.
struct Task {
    std::string input;
    std::string member;
    Op op = Op::minimum;
    std::optional<npy::Type> type;
    std::string engine;
    matmin::ReadOptions reading;
    bool times = false;
};

/// The task of the command line, or the exit status to end with.
int parse(int argc, char** argv, std::optional<Task>& parsed) {
    std::string op;
    std::string type;
    std::int64_t threads = 0;
    Task task;

    po::options_description visible("Options");
    visible.add_options()  //
        ("op", po::value(&op)->default_value("min")->value_name("min|max|minmax"),
         "the smallest numbers, the largest ones, or both, with a line of *** between")  //
        ("type", po::value(&type)->value_name("float64|float32|int32"),
         "what numbers are read as (default: float64; of an array, its own)")  //
        ("engine",
         po::value(&task.engine)
             ->default_value("auto")
             ->value_name("auto|cuda|cpu|sequential|original"),
         "what reduces: cuda, a GPU; sequential, one plain loop; original, a GPU in the original "
         "program's way")  //
        ("times", po::bool_switch(&task.times),
         "print on stderr what reading, transfer and computing took")  //
        ("threads", po::value(&threads)->value_name("T"),
         "threads that parse (default: one a core, at most 8)")  //
        ("member", po::value(&task.member)->value_name("NAME"),
         "the file to take from a zip archive of several")  //
        ("help", "show this")("version", "show the version");
    po::options_description all;
    all.add(visible).add_options()("input", po::value(&task.input));
    po::positional_options_description positional;
    positional.add("input", 1);

    po::variables_map values;
    if (const auto status = kProgram.read(argc, argv, visible, all, positional, values))
        return *status;
    if (task.input.empty()) return kProgram.wrong_usage("INPUT is needed, or - for stdin");
    if (op == "max") {
        task.op = Op::maximum;
    } else if (op == "minmax") {
        task.op = Op::both;
    } else if (op != "min") {
        return kProgram.wrong_usage("--op is min, max or minmax");
    }
    if (type == "float64") {
        task.type = npy::Type::float64;
    } else if (type == "float32") {
        task.type = npy::Type::float32;
    } else if (type == "int32") {
        task.type = npy::Type::int32;
    } else if (values.count("type") != 0) {
        return kProgram.wrong_usage("--type is float64, float32 or int32");
    }
    if (task.engine == "auto") task.engine = "cpu";
    const auto engines = kernels::reduce::list_reducers();
    if (std::none_of(engines.begin(), engines.end(),
                     [&](const auto& entry) { return entry.name == task.engine; })) {
        return kProgram.wrong_usage("--engine is auto, cuda, cpu, sequential or original");
    }
    if (values.count("member") != 0 && task.member.empty()) {
        return kProgram.wrong_usage("--member is the name of a file in the archive");
    }
    if (values.count("threads") != 0 && (threads < 1 || threads > kMaxThreads)) {
        return kProgram.wrong_usage(fmt::format("--threads is 1 to {}", kMaxThreads));
    }
    task.reading.threads =
        threads != 0 ? static_cast<std::size_t>(threads)
                     : std::clamp(std::thread::hardware_concurrency(), 1U, kDefaultThreads);
    parsed = std::move(task);
    return kDone;
}

template <class T>
std::string result_text(const kernels::reduce::MinMax<T>& range, matmin::Shape shape, Op op) {
    std::string text;
    if (op != Op::maximum) text += matmin::matrix_text(range.minimum(), shape);
    if (op == Op::both) text += "***\n";
    if (op != Op::minimum) text += matmin::matrix_text(range.maximum(), shape);
    return text;
}

/// Reads, reduces and prints.
template <class T>
Status run(const Task& task, matmin::Source& source) {
    namespace reduce = kernels::reduce;
    std::unique_ptr<reduce::Reducer<T>> reducer;  // none where the threads that parse reduce too
    const auto begin = [&](std::uint64_t count,
                           matmin::Shape shape) -> Result<reduce::Reducer<T>*> {
        if (task.engine == "cpu") return nullptr;
        reduce::ReducerOptions options;
        options.width = shape.numbers();
        options.count = count;
        auto made = reduce::make_reducer<T>(task.engine, options);
        if (!made) return made.error();
        reducer = *std::move(made);
        return reducer.get();
    };
    auto reading = source.read<T>(task.reading, begin);
    if (!reading) return reading.error();
    reduce::ReduceTimes times{0, reading->reduce_ms};
    if (reducer) {
        auto range = reducer->finish();
        if (!range) return range.error();
        reading->range = *std::move(range);
        times = reducer->times();
    }
    const std::string text = result_text(reading->range, reading->shape, task.op);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
        return system_error("stdout", "cannot write the result", errno);
    }
    if (task.times) {
        const double reading_ms = std::max(0.0, reading->wall_ms - reading->reduce_ms);
        const double megabytes = static_cast<double>(reading->bytes) / 1e6;
        std::string figures = fmt::format(
            "matrices   {} of {} x {}, {}\nengine     {}\n", reading->count, reading->shape.rows,
            reading->shape.columns, matmin::kTypeName<T>, task.engine);
        figures += fmt::format("reading    {:>10.1f} ms  ({:.0f} MB/s)\n", reading_ms,
                               megabytes / std::max(reading_ms, 1e-3) * 1e3);
        figures += fmt::format("transfer   {:>10.1f} ms\ncomputing  {:>10.1f} ms\n",
                               times.transfer_ms, times.compute_ms);
        std::fputs(figures.c_str(), stderr);
    }
    return {};
}

Status run(const Task& task, const std::atomic<bool>& stop) {
    auto source = matmin::Source::open(task.input, stop, task.member);
    if (!source) return source.error();
    switch (task.type.value_or(source->type())) {
        case npy::Type::float32:
            return run<float>(task, *source);
        case npy::Type::int32:
            return run<std::int32_t>(task, *source);
        case npy::Type::float64:
        case npy::Type::other:
            break;
    }
    return run<double>(task, *source);
}

int run_program(int argc, char** argv) {
    std::optional<Task> task;
    if (const int status = parse(argc, argv, task); !task) return status;
    const auto& stop = tools::stop_on_signals(tools::SecondSignal::ends_at_once);
    if (const Status done = run(*task, stop); !done) {
        kProgram.say(done.error().message);
        return kFault;
    }
    return kDone;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-matmin", run_program, argc, argv);
}
