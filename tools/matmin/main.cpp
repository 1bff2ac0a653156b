// gloved-matmin: its command line and output. Reading is in source.cpp, reducing in kernels/reduce.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/files.hpp"
#include "common/npy.hpp"
#include "common/program_main.hpp"
#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"
#include "kernels/reduce/reducer.hpp"
#include "kernels/reduce/registry.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/matmin/result_text.hpp"
#include "tools/matmin/source.hpp"
#include "tools/old_engines.hpp"

namespace {

using namespace gloved;

constexpr cli::Program kProgram = {"gloved-matmin", R"(Usage: gloved-matmin [options] INPUT

Reads many matrices of the same shape and prints one of that shape: each element
is the smallest that any matrix has in its place. INPUT is text or a NumPy array
(.npy) of shape (matrices, rows, columns). It may be plain, compressed by gzip,
bzip2, xz or zstd, or a file in a zip or tar archive; - is stdin.

Text begins with a line that has the number of matrices. The matrices follow,
one row per line. Between two matrices is a line ***, which may also stand
before the first and after the last.

)",
                                   R"(
All engines print the same bytes.

Examples:
  printf '2\n***\n1 2\n3 4\n***\n4 3\n2 1\n' | gloved-matmin -
  gloved-matmin --op minmax --times matrices.txt.gz
  gloved-matmin --engine cuda matrices.npy

Exit status:
  0  the result is printed
  1  the input is malformed or cannot be read, the engine cannot run, or a
     signal came
  2  wrong usage
)"};

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

cli::Options describe_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("op", cli::value("min|max|minmax", "min"),
        "print the smallest elements, the largest, or both with a line *** between");
    add("type", cli::value("float64|float32|int32"),
        "type of the numbers (default: float64 for text, its own type for an array)");
    add("engine", cli::value("auto|cuda|cpu", "auto"),
        "what computes: all threads that read (cpu), or a GPU (cuda). auto is cpu: reading takes "
        "most of the time, even if there is a GPU");
    add("times", "print on stderr how long reading, copying to a GPU and computing take");
    add("threads", cli::value("T"), "threads that read (default: one per core, at most 8)");
    add("member", cli::value("NAME"), "file to read from an archive, if it has several");
    options.operands = {"input"};
    return options;
}

Task read_task(const cli::CommandLine& line) {
    Task task;
    task.input = line.text("input");
    if (task.input.empty()) throw cli::WrongUsage("INPUT is needed, or - for stdin");
    task.op =
        line.choice<Op>("op", {{"min", Op::minimum}, {"max", Op::maximum}, {"minmax", Op::both}});
    if (line.given("type")) {
        task.type = line.choice<npy::Type>("type", {{"float64", npy::Type::float64},
                                                    {"float32", npy::Type::float32},
                                                    {"int32", npy::Type::int32}});
    }
    tools::refuse_old_engines(line, {"sequential", "original"}, "minimum");
    task.engine =
        line.choice<const char*>("engine", {{"auto", "cpu"}, {"cuda", "cuda"}, {"cpu", "cpu"}});
    task.member = line.nonempty("member", "the name of a file in the archive");
    task.reading.threads = line.threads(cli::kFewThreads);
    task.times = line.given("times");
    return task;
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
    std::unique_ptr<reduce::Reducer<T>> reducer;  // null if the threads that parse also reduce
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
    return cli::run(kProgram, describe_options(), cli::arguments_of(argc, argv),
                    [](const cli::CommandLine& line) {
                        const Task task = read_task(line);
                        const auto& stop = cli::stop_on_signals(cli::SecondSignal::ends_at_once);
                        const Status done = run(task, stop);
                        if (!done) kProgram.say(done.error().message);
                        return done ? cli::kDone : cli::kFault;
                    });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-matmin", run_program, argc, argv);
}
