#include "tools/bench/distmat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "cli/signals.hpp"
#include "common/error_with.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/distance/registry.hpp"
#include "kernels/makers.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/matrix_report.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::bench {
namespace {

using kernels::distance::Engine;
using kernels::distance::Metric;
using kernels::distance::PointsView;
using kernels::distance::Rectangle;

constexpr std::array<std::size_t, 5> kGrid = {128, 256, 512, 1024, 2048};
/// In the order of the table.
constexpr std::array<std::string_view, 2> kEngines = {"cpu", "cuda"};
constexpr Metric kMetric = Metric::sqeuclidean;
constexpr std::uint64_t kMaxRows = 1'000'000;
constexpr std::uint64_t kMaxDim = kernels::distance::kMaxDim;
constexpr std::uint64_t kMaxRepeat = 100'000;
/// Of a matrix with more rows, only some are checked.
constexpr std::size_t kMaxCheckedRows = 4096;
/// Rows checked at each end and in the middle of a large matrix.
constexpr std::size_t kSampledRows = 33;

bool on_host(const std::string& engine) { return engine == "cpu"; }

/// The engines to measure. Those that cannot run here are left out, with a note, unless they are
/// named.
std::vector<std::string> choose(const DistmatSettings& settings) {
    if (!settings.engines.empty()) return settings.engines;
    std::vector<std::string> run;
    std::vector<std::string> left_out;
    std::string why;
    const auto entries = kernels::distance::list_distance_engines();
    for (const std::string_view engine : kEngines) {
        const auto entry = std::ranges::find(entries, engine, &kernels::MakerEntry::name);
        if (entry == entries.end()) continue;
        if (entry->unavailable.empty()) {
            run.emplace_back(engine);
        } else {
            left_out.emplace_back(engine);
            why = entry->unavailable;
        }
    }
    if (!left_out.empty()) {
        print_note(settings.format, fmt::format("left out {}: {}", fmt::join(left_out, ", "), why));
    }
    return run;
}

/// A matrix of random numbers and some of its canonical distances.
class Sample {
  public:
    Sample(std::size_t rows, std::size_t dim, const DistmatSettings& settings)
        : rows_(rows), dim_(dim), values_(rows * dim) {
        std::mt19937_64 random(settings.seed);
        std::normal_distribution<float> normal;
        for (float& value : values_) value = normal(random);
        if (rows_ <= kMaxCheckedRows) {
            checked_ = {{0, rows_, 0, rows_}};
            // Every 31st row, so that each tile of 32 rows or more has one.
            if (rows_ > kMaxCheckedRows / 4) step_ = 31;
        } else {
            for (const std::size_t first : {std::size_t{0}, rows_ / 2 + 1, rows_ - kSampledRows}) {
                checked_.push_back({first, kSampledRows, 0, rows_});
            }
        }
        std::vector<std::size_t> sampled;
        for (const Rectangle& rectangle : checked_) {
            for (std::size_t i = 0; i < rectangle.rows; i += step_)
                sampled.push_back(rectangle.first_row + i);
        }
        canonical_.resize(sampled.size() * rows_);
        kernels::ThreadPool pool(settings.threads);
        pool.for_ranges(sampled.size(), 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t s = begin; s < end; ++s) {
                for (std::size_t j = 0; j < rows_; ++j) {
                    const float sum = kernels::distance::canonical_sum(points().row(sampled[s]),
                                                                       points().row(j), dim_);
                    canonical_[s * rows_ + j] = kernels::distance::distance_from_sum(kMetric, sum);
                }
            }
        });
    }

    PointsView points() const { return {values_.data(), rows_, dim_}; }

    /// Compares the engine's distances with the canonical ones.
    Status check(const std::string& name, Engine& engine) {
        const float* right = canonical_.data();
        for (const Rectangle& rectangle : checked_) {
            if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
            // NaN is not a distance, so unwritten elements are noticed.
            out_.assign(rectangle.rows * rows_, std::numeric_limits<float>::quiet_NaN());
            if (Status done = engine.run(rectangle, out_.data(), rows_, nullptr, 0); !done)
                return done;
            for (std::size_t i = 0; i < rectangle.rows; i += step_, right += rows_) {
                if (std::memcmp(out_.data() + i * rows_, right, rows_ * sizeof(float)) == 0)
                    continue;
                return error_with(ErrorCode::internal,
                                  "engine {} is wrong: of {} x {}, the distances of row {} are not "
                                  "the canonical ones",
                                  name, rows_, dim_, rectangle.first_row + i);
            }
        }
        return {};
    }

    /// Milliseconds until all distances are in host memory; nothing if only some are checked.
    Result<std::optional<double>> time_to_host(Engine& engine) {
        if (checked_.size() > 1) return std::optional<double>();
        Status done;
        const double ms =
            time_ms([&] { done = engine.run(checked_[0], out_.data(), rows_, nullptr, 0); });
        if (!done) return done.error();
        return std::optional(ms);
    }

  private:
    std::size_t rows_;
    std::size_t dim_;
    std::vector<float> values_;
    std::vector<Rectangle> checked_;  // all columns of some rows
    std::size_t step_ = 1;            // compare every step_-th of them
    std::vector<float> canonical_;    // their canonical distances, row after row
    std::vector<float> out_;
};

Result<DistmatFigures> time_engine(const std::string& name, Sample& sample,
                                   const DistmatSettings& settings) {
    kernels::distance::DistanceOptions options;
    options.threads = settings.threads;
    options.device = settings.device();
    auto engine = kernels::distance::make_distance_engine(name, sample.points(), kMetric, options);
    if (!engine) return engine.error();
    if (Status right = sample.check(name, **engine); !right) return right.error();
    DistmatFigures figures{name, on_host(name), {}, {}};
    if (!figures.on_host) {
        const auto host_ms = sample.time_to_host(**engine);
        if (!host_ms) return host_ms.error();
        figures.host_ms = *host_ms;
    }
    for (std::size_t run = 0; run <= settings.repeat; ++run) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        const auto ms = (*engine)->time_resident();
        if (!ms) return ms.error();
        // The first run includes one-time work.
        if (run > 0) figures.ms.push_back(*ms);
    }
    return figures;
}

}  // namespace

const cli::Program kDistmatProgram = {"gloved-bench distmat",
                                      R"(Usage: gloved-bench distmat [options]

Measures every engine of gloved-distmat on the squared Euclidean distances
between all rows of a random matrix. First checks that its results are right to
the last bit. Without --rows it measures square matrices with 128, 256, 512,
1024 and 2048 rows.

)",
                                      R"(
Examples:
  gloved-bench distmat --repeat 20 --format csv > distmat.csv
  gloved-bench distmat --rows 2000 --dim 300 --engines cpu
  gloved-bench distmat --rows 16384 --dim 300 --engines cuda

Exit status:
  0  success
  1  a measurement failed, or a result is wrong
  2  wrong usage
)"};

cli::Options describe_distmat_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("rows", cli::value("N"), "measure one matrix of N rows instead of five squares");
    add("dim", cli::value("D", "300"), "with --rows: columns");
    add("engines", cli::value("all|cpu|cuda[,...]", "all"),
        "engines, with commas between; all are those that can run here");
    add("repeat", cli::value("R", "10"), "runs, after one that does not count");
    add("threads", cli::value("T", "0"), "cpu: number of threads; 0 is one per core");
    add_run_options(add, "seed of the random numbers");
    return options;
}

DistmatSettings read_distmat_settings(const cli::CommandLine& line) {
    DistmatSettings settings;
    line.needs("rows", {"dim"});
    if (line.given("rows")) {
        settings.sizes = {{line.count("rows", 1, kMaxRows), line.count("dim", 1, kMaxDim)}};
    } else {
        for (const std::size_t edge : kGrid) settings.sizes.push_back({edge, edge});
    }
    settings.repeat = line.count("repeat", 1, kMaxRepeat);
    read_run_settings(line, settings);
    read_one_device(line, settings);
    if (line.text("engines") != "all")
        settings.engines = parse_names("--engines", line.text("engines"), kEngines);
    return settings;
}

Status print_distmat(const DistmatSettings& settings) {
    const std::vector<std::string> engines = choose(settings);
    std::string device_name;
    if (!std::ranges::all_of(engines, on_host)) {
        const auto device = start_device(settings.device());
        if (!device) return device.error();
        device_name = device->name;
    }
    print_note(settings.format, "processor  " + processor_text(settings));
    if (!device_name.empty()) print_note(settings.format, "device     " + device_name);
    print_note(settings.format, fmt::format("runs       {} of each, after one that does not count",
                                            settings.repeat));
    std::fflush(stdout);
    std::vector<DistmatSize> sizes;
    for (const auto& [rows, dim] : settings.sizes) {
        Sample sample(rows, dim, settings);
        DistmatSize size{rows, dim, {}};
        for (const std::string& engine : engines) {
            auto figures = time_engine(engine, sample, settings);
            if (!figures) return figures.error();
            size.engines.push_back(*std::move(figures));
        }
        sizes.push_back(std::move(size));
    }
    print_note(settings.format, "checked    every engine gives the canonical bytes");
    fmt::print("\n");
    distmat_table(sizes).print(stdout, settings.format);
    print_note(settings.format,
               "GFLOP/s: three operations for every component of all pairs, even if each pair is "
               "computed once; ms to host: one run until the result is in host memory");
    return {};
}

}  // namespace gloved::bench
