#include "tools/bench/matmin.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "kernels/makers.hpp"
#include "kernels/reduce/reducer.hpp"
#include "kernels/reduce/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/matrix_report.hpp"
#include "tools/bench/measure.hpp"
#include "tools/matmin/generate.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/matmin/source.hpp"

namespace gloved::bench {
namespace {

using kernels::reduce::MinMax;
using kernels::reduce::Reducer;
using kernels::reduce::ReducerOptions;

/// In the order of the table.
constexpr std::array<std::string_view, 2> kEngines = {"cpu", "cuda"};
constexpr std::uint64_t kMaxCount = 10'000'000'000;
constexpr std::uint64_t kMaxEdge = 100'000;
constexpr std::uint64_t kMaxRepeat = 100'000;

bool on_host(std::string_view engine) { return engine == "cpu"; }

/// Whether two lists are equal; −0 differs from 0.
template <class T>
bool same(std::span<const T> a, const std::vector<double>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](T x, double y) {
               const T rounded = static_cast<T>(y);
               return x == rounded && std::signbit(static_cast<double>(x)) == std::signbit(y);
           });
}

/// The text and the expected result.
struct Text {
    std::string path;
    matmin::Generated answer;
    std::uint64_t value_bytes = 0;
};

template <class T>
Status check(const std::string& engine, const MinMax<T>& range, const Text& text) {
    if (same(range.minimum(), text.answer.minimum) && same(range.maximum(), text.answer.maximum))
        return {};
    return error_with(ErrorCode::internal,
                      "{} is wrong: its smallest or largest elements are not those of the plain "
                      "loop over the numbers as they were drawn",
                      engine);
}

/// Reads and reduces in the same threads, as gloved-matmin does.
template <class T>
Result<double> read_text(const MatminSettings& settings, const Text& text) {
    auto source = matmin::Source::open(text.path, cli::stop_flag());
    if (!source) return source.error();
    const matmin::Begin<T> begin = [](std::uint64_t, matmin::Shape) -> Result<Reducer<T>*> {
        return static_cast<Reducer<T>*>(nullptr);
    };
    const auto reading = source->template read<T>({.threads = settings.threads}, begin);
    if (!reading) return reading.error();
    if (Status right = check("reading", reading->range, text); !right) return right.error();
    return reading->wall_ms;
}

template <class T>
Result<MatminFigures> time_engine(const std::string& engine, const MatminSettings& settings,
                                  const Text& text) {
    auto source = matmin::Source::open(text.path, cli::stop_flag());
    if (!source) return source.error();
    std::unique_ptr<Reducer<T>> reducer;
    const matmin::Begin<T> begin = [&](std::uint64_t count,
                                       matmin::Shape shape) -> Result<Reducer<T>*> {
        ReducerOptions options;
        options.width = shape.numbers();
        options.count = count;
        options.device = settings.device();
        options.threads = settings.threads;
        options.keep = true;
        auto made = kernels::reduce::make_reducer<T>(engine, options);
        if (!made) return made.error();
        reducer = *std::move(made);
        return reducer.get();
    };
    const auto reading = source->template read<T>({.threads = settings.threads}, begin);
    if (!reading) return reading.error();
    const auto range = reducer->finish();
    if (!range) return range.error();
    if (Status right = check(engine, *range, text); !right) return right.error();

    MatminFigures figures;
    figures.engine = engine;
    figures.reading_ms = reading->wall_ms - reading->reduce_ms;
    figures.transfer_ms = reducer->times().transfer_ms;
    figures.compute_ms = reducer->times().compute_ms;
    std::optional<DeviceReader> reader;
    if (!on_host(engine)) {
        auto made = DeviceReader::create(text.value_bytes, settings.device());
        if (!made) return made.error();
        reader.emplace(*std::move(made));
    }
    std::vector<double> reads;
    for (std::size_t run = 0; run <= settings.repeat; ++run) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        // Before each run, to empty the device's caches.
        if (reader) {
            const auto ms = reader->read_ms();
            if (!ms) return ms.error();
            reads.push_back(*ms);
        }
        const auto ms = reducer->time_again();
        if (!ms && ms.error().code == ErrorCode::unavailable) break;
        if (!ms) return ms.error();
        if (run > 0) figures.recompute_ms.push_back(*ms);
    }
    if (!reads.empty()) figures.read_ms = median(reads);
    return figures;
}

/// Measures plain reads of as many bytes of host memory.
std::vector<double> read_host(const MatminSettings& settings, std::uint64_t bytes) {
    kernels::ThreadPool pool(settings.threads);
    // Written, so that the pages are not the shared page of zeros, which would stay in a cache.
    const std::vector<std::byte> values(bytes, std::byte{1});
    std::vector<double> reads;
    for (std::size_t run = 0; run <= settings.repeat && !cli::stop_requested(); ++run) {
        const double ms = time_ms([&] { read_all(pool, values); });
        if (run > 0) reads.push_back(ms);
    }
    return reads;
}

template <class T>
Status measure_type(const MatminSettings& settings, const Text& text) {
    const auto own = read_text<T>(settings, text);
    if (!own) return own.error();
    print_note(settings.format,
               fmt::format("reading    {} ms as in gloved-matmin, with reducing: {:.0f} MB/s",
                           figure(*own), static_cast<double>(text.answer.bytes) / *own / 1e3));
    const auto entries = kernels::reduce::list_reducers();
    std::vector<MatminFigures> all;
    // Host memory is read before and after the runs that are compared with it.
    std::vector<double> host_reads;
    const auto read_host_again = [&] {
        const auto reads = read_host(settings, text.value_bytes);
        host_reads.insert(host_reads.end(), reads.begin(), reads.end());
    };
    read_host_again();
    bool host = true;
    for (const std::string_view engine : kEngines) {
        const auto entry = std::ranges::find(entries, engine, &kernels::MakerEntry::name);
        if (entry == entries.end()) continue;
        if (!entry->unavailable.empty()) {
            print_note(settings.format,
                       fmt::format("left out   {}: {}", engine, entry->unavailable));
            continue;
        }
        if (host && !on_host(engine)) read_host_again();
        host = on_host(engine);
        auto figures = time_engine<T>(std::string(engine), settings, text);
        if (!figures) return figures.error();
        all.push_back(*std::move(figures));
    }
    if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
    if (host) read_host_again();
    std::optional<double> device_read;
    for (MatminFigures& figures : all) {
        if (on_host(figures.engine)) figures.read_ms = median(host_reads);
        if (!on_host(figures.engine)) device_read = figures.read_ms;
    }
    const auto speed = [&](double ms) {
        return fmt::format("{} ms, {:.1f} GB/s", figure(ms),
                           static_cast<double>(text.value_bytes) / ms / 1e6);
    };
    print_note(settings.format, fmt::format("plain read processor {}{}", speed(median(host_reads)),
                                            device_read ? "; device " + speed(*device_read) : ""));
    print_note(settings.format, "checked    every engine gives the result of the plain loop");
    fmt::print("\n");
    matmin_table(all, text.answer.bytes, text.value_bytes).print(stdout, settings.format);
    print_note(settings.format,
               "GB/s and x read: of computing again over all values in memory; x read: 1 is a "
               "plain read by the same processor or device");
    return {};
}

}  // namespace

const cli::Program kMatminProgram = {"gloved-bench matmin",
                                     R"(Usage: gloved-bench matmin [options]

Measures every engine of gloved-matmin. Makes up random matrices, writes them as
text to a temporary file, and measures reading, copying to the GPU and
computing. Then it computes again from memory, and compares with a plain read of
as many bytes. The text takes about 8 bytes per number: 3.5 GB with the
defaults.

)",
                                     R"(
Examples:
  gloved-bench matmin --count 1000000 --repeat 5
  gloved-bench matmin --count 20000000 --shape 4x4 --type float32 --format csv

Exit status:
  0  success
  1  a measurement failed, or a result is wrong
  2  wrong usage
)"};

cli::Options describe_matmin_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("count", cli::value("N", "50000000"), "number of matrices");
    add("shape", cli::value("RxC", "3x3"), "rows and columns of each matrix");
    add("type", cli::value("float64|float32|int32", "float64"), "type of the numbers");
    add("repeat", cli::value("R", "10"), "computations from memory, after one that does not count");
    add("threads", cli::value("T", "0"), "threads that read and compute; 0 is one per core");
    add_run_options(add, "seed of the random numbers");
    return options;
}

MatminSettings read_matmin_settings(const cli::CommandLine& line) {
    MatminSettings settings;
    settings.count = line.count("count", 1, kMaxCount);
    const std::string shape = line.text("shape");
    const std::size_t cross = shape.find('x');
    if (cross == std::string::npos)
        throw cli::WrongUsage("--shape takes rows and columns with an x between, as 3x3");
    settings.rows = cli::parse_count("--shape, rows", shape.substr(0, cross), 1, kMaxEdge);
    settings.columns = cli::parse_count("--shape, columns", shape.substr(cross + 1), 1, kMaxEdge);
    settings.repeat = line.count("repeat", 1, kMaxRepeat);
    read_run_settings(line, settings);
    read_one_device(line, settings);
    settings.type = line.choice<npy::Type>("type", {{"float64", npy::Type::float64},
                                                    {"float32", npy::Type::float32},
                                                    {"int32", npy::Type::int32}});
    return settings;
}

Status print_matmin(const MatminSettings& settings) {
    const auto device = start_device(settings.device());
    print_note(settings.format, "processor  " + processor_text(settings));
    if (device) print_note(settings.format, "device     " + device->name);
    auto scratch = ScratchDirectory::create();
    if (!scratch) return scratch.error();
    Text text;
    text.path = scratch->path() + "/matrices.txt";
    matmin::GenerateOptions options;
    options.count = settings.count;
    options.rows = settings.rows;
    options.columns = settings.columns;
    options.numbers =
        settings.type == npy::Type::int32 ? matmin::Numbers::integers : matmin::Numbers::decimals;
    options.seed = settings.seed;
    options.threads = settings.threads;
    {
        const UniqueFd file(
            ::open(text.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (file.get() < 0) return system_error(text.path, "cannot create", errno);
        auto made = matmin::generate(options, file.get(), text.path);
        if (!made) return made.error();
        text.answer = *std::move(made);
    }
    const std::uint64_t numbers = settings.count * settings.rows * settings.columns;
    text.value_bytes =
        numbers * (settings.type == npy::Type::float64 ? sizeof(double) : sizeof(float));
    print_note(settings.format,
               fmt::format("matrices   {} of {} x {}: {:.3f} GB of text, {:.3f} GB of values",
                           with_commas(settings.count), settings.rows, settings.columns,
                           static_cast<double>(text.answer.bytes) / 1e9,
                           static_cast<double>(text.value_bytes) / 1e9));
    std::fflush(stdout);
    switch (settings.type) {
        case npy::Type::float32:
            return measure_type<float>(settings, text);
        case npy::Type::int32:
            return measure_type<std::int32_t>(settings, text);
        case npy::Type::float64:
        case npy::Type::other:
            break;
    }
    return measure_type<double>(settings, text);
}

}  // namespace gloved::bench
