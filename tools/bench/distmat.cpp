#include "tools/bench/distmat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "kernels/distance/canonical.hpp"
#include "kernels/distance/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/command_line.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/distmat_report.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/lists.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/svg.hpp"

namespace gloved::bench {
namespace {

namespace po = boost::program_options;
using kernels::distance::Engine;
using kernels::distance::Metric;
using kernels::distance::PointsView;
using kernels::distance::Rectangle;

constexpr std::array<std::size_t, 5> kGrid = {128, 256, 512, 1024, 2048};
/// In the order of the table: the slow before the fast.
constexpr std::array<const char*, 7> kRungs = {"sequential", "cpu",      "global", "shared8",
                                               "shared16",   "shared32", "cuda"};
constexpr Metric kMetric = Metric::sqeuclidean;
constexpr std::uint64_t kMaxRows = 1'000'000;
constexpr std::uint64_t kMaxDim = kernels::distance::kMaxDim;
constexpr std::uint64_t kMaxRepeat = 100'000;
constexpr std::uint64_t kMaxSeconds = 100'000;
/// Of more rows a few are checked, and not all.
constexpr std::size_t kMaxCheckedRows = 4096;
/// Of those, and of each end of the others.
constexpr std::size_t kSampledRows = 33;

constexpr const char* kSynopsis = R"(Usage: gloved-bench distmat [OPTIONS]
Times every way to compute the squared Euclidean distances of all rows of a matrix of random numbers, after checking that it
gives the canonical bytes. Without --rows the matrices are square, of 128 to 2048 rows, as the original measured.
)";
constexpr const char* kExamples = R"(
  gloved-bench distmat --repeat 20 --svg distmat.svg
  gloved-bench distmat --rows 2000 --dim 300 --rungs cpu
  gloved-bench distmat --rows 16384 --dim 300 --rungs cuda --format csv

Exit status: 0 done, 1 something could not be measured or is wrong, 2 wrong usage.
)";

po::options_description all_options() {
    po::options_description options("Options");
    // clang-format off
    options.add_options()
        ("rows", value("N"), "one matrix of N rows, instead of the grid")
        ("dim", preset("D", "300"), "with --rows: its columns")
        ("rungs", preset("LIST|all", "all"), "what computes: sequential,cpu,global,shared8,shared16,shared32,cuda")
        ("repeat", preset("R", "10"), "timed runs, after one that does not count")
        ("rung-seconds", preset("S", "10"), "a rung that takes longer ends before its last run")
        ("threads", preset("T", "0"), "threads of the processor's rungs; 0: one a usable processor")
        ("device", preset("N", "0"), "which device")
        ("seed", preset("S", "1"), "decides the numbers")
        ("svg", value("FILE"), "draw a chart there")
        ("format", preset("text|csv", "text"), "how results are printed")
        ("help", "this text");
    // clang-format on
    return options;
}

Result<DistmatSettings> read_settings(CommandLine& line) {
    DistmatSettings settings;
    if (line.given("rows")) {
        settings.sizes = {{static_cast<std::size_t>(line.count("rows", 1, kMaxRows)),
                           static_cast<std::size_t>(line.count("dim", 1, kMaxDim))}};
    } else {
        if (line.given("dim")) return wrong_usage("--dim goes with --rows");
        for (const std::size_t edge : kGrid) settings.sizes.push_back({edge, edge});
    }
    settings.repeat = static_cast<std::size_t>(line.count("repeat", 1, kMaxRepeat));
    settings.seconds = static_cast<double>(line.count("rung-seconds", 0, kMaxSeconds));
    settings.threads = line.threads();
    settings.device = line.device();
    settings.seed = line.count("seed", 0, std::numeric_limits<std::uint64_t>::max());
    settings.format = line.format();
    if (line.fault()) return *line.fault();
    if (line.text("rungs") != "all") {
        auto rungs = parse_names("--rungs", line.text("rungs"), kRungs);
        if (!rungs) return rungs.error();
        settings.rungs = *std::move(rungs);
    }
    if (line.given("svg") && line.text("svg").empty())
        return wrong_usage("--svg takes the name of a file");
    settings.svg = line.text("svg");
    return settings;
}

bool on_host(const std::string& rung) { return rung == "sequential" || rung == "cpu"; }

/// The rungs to be measured. Those that cannot run here are left out, and that is said, unless they
/// were asked for by name.
std::vector<std::string> choose(const DistmatSettings& settings) {
    if (!settings.rungs.empty()) return settings.rungs;
    std::vector<std::string> run;
    std::vector<std::string> left_out;
    std::string why;
    const auto entries = kernels::distance::list_distance_engines();
    for (const char* rung : kRungs) {
        const auto entry = std::find_if(entries.begin(), entries.end(),
                                        [&](const auto& e) { return e.name == rung; });
        if (entry == entries.end()) continue;
        if (entry->unavailable.empty()) {
            run.emplace_back(rung);
        } else {
            left_out.emplace_back(rung);
            why = entry->unavailable;
        }
    }
    if (!left_out.empty()) {
        print_note(settings.format, fmt::format("left out {}: {}", fmt::join(left_out, ", "), why));
    }
    return run;
}

/// Rows of a matrix of random numbers, and some of their distances by the definition.
class Sample {
  public:
    Sample(std::size_t rows, std::size_t dim, const DistmatSettings& settings)
        : rows_(rows), dim_(dim), values_(rows * dim) {
        std::mt19937_64 random(settings.seed);
        std::normal_distribution<float> normal;
        for (float& value : values_) value = normal(random);
        if (rows_ <= kMaxCheckedRows) {
            checked_ = {{0, rows_, 0, rows_}};
            // A 31st of many rows: whatever squares a rung computes, each of 32 rows or more has
            // one of them.
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
        right_.resize(sampled.size() * rows_);
        kernels::ThreadPool pool(settings.threads);
        pool.for_ranges(sampled.size(), 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t s = begin; s < end; ++s) {
                for (std::size_t j = 0; j < rows_; ++j) {
                    const float sum = kernels::distance::canonical_sum(points().row(sampled[s]),
                                                                       points().row(j), dim_);
                    right_[s * rows_ + j] = kernels::distance::distance_from_sum(kMetric, sum);
                }
            }
        });
    }

    PointsView points() const { return {values_.data(), rows_, dim_}; }

    /// Compares with the definition what `engine` says.
    Status check(const std::string& rung, Engine& engine) {
        const float* right = right_.data();
        for (const Rectangle& rectangle : checked_) {
            if (interrupted()) return Error{ErrorCode::interrupted, "interrupted"};
            // NaN is no distance: what has not been written shows.
            out_.assign(rectangle.rows * rows_, std::numeric_limits<float>::quiet_NaN());
            if (Status done = engine.run(rectangle, out_.data(), rows_, nullptr, 0); !done)
                return done;
            for (std::size_t i = 0; i < rectangle.rows; i += step_, right += rows_) {
                if (std::memcmp(out_.data() + i * rows_, right, rows_ * sizeof(float)) == 0)
                    continue;
                return Error{ErrorCode::internal,
                             fmt::format("rung {} is wrong: of {} x {}, the distances of row {} "
                                         "are not the canonical ones",
                                         rung, rows_, dim_, rectangle.first_row + i)};
            }
        }
        return {};
    }

    /// Milliseconds until all distances are in the host's memory; nothing where not all of them are
    /// checked.
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
    std::size_t step_ = 1;            // and of those, the rows to compare
    std::vector<float> right_;        // their distances, one row behind the other
    std::vector<float> out_;
};

Result<DistmatFigures> time_rung(const std::string& rung, Sample& sample,
                                 const DistmatSettings& settings) {
    kernels::distance::EngineOptions options;
    options.threads = settings.threads;
    options.device = settings.device;
    auto engine = kernels::distance::make_distance_engine(rung, sample.points(), kMetric, options);
    if (!engine) return engine.error();
    if (Status right = sample.check(rung, **engine); !right) return right.error();
    DistmatFigures figures{rung, on_host(rung), {}, {}};
    if (!figures.on_host) {
        const auto host_ms = sample.time_to_host(**engine);
        if (!host_ms) return host_ms.error();
        figures.host_ms = *host_ms;
    }
    double spent_ms = 0;
    for (std::size_t run = 0; run <= settings.repeat; ++run) {
        if (interrupted()) return Error{ErrorCode::interrupted, "interrupted"};
        const auto ms = (*engine)->time_resident();
        if (!ms) return ms.error();
        spent_ms += *ms;
        // The first run pays for what is made once.
        if (run > 0) figures.ms.push_back(*ms);
        if (run > 0 && spent_ms > settings.seconds * 1000) break;
    }
    return figures;
}

}  // namespace

Result<std::optional<DistmatSettings>> read_distmat_settings(int argc, char** argv,
                                                             std::ostream& out) {
    return read_settings_of(argc, argv, all_options(), kSynopsis, kExamples, out, read_settings);
}

Status print_distmat(const DistmatSettings& settings, const std::string& processor_name) {
    const std::vector<std::string> rungs = choose(settings);
    std::string device_name;
    if (!std::all_of(rungs.begin(), rungs.end(), on_host)) {
        const auto device = start_device(settings.device);
        if (!device) return device.error();
        device_name = device->name;
    }
    print_note(settings.format, fmt::format("processor  {}, {} thread{}", processor_name,
                                            settings.threads, settings.threads == 1 ? "" : "s"));
    if (!device_name.empty()) print_note(settings.format, "device     " + device_name);
    print_note(
        settings.format,
        fmt::format("runs       {} of each, or as many as {:.0f} s allow, behind one that does "
                    "not count",
                    settings.repeat, settings.seconds));
    std::fflush(stdout);
    std::vector<DistmatSize> sizes;
    for (const auto& [rows, dim] : settings.sizes) {
        Sample sample(rows, dim, settings);
        DistmatSize size{rows, dim, {}};
        for (const std::string& rung : rungs) {
            auto figures = time_rung(rung, sample, settings);
            if (!figures) return figures.error();
            size.rungs.push_back(*std::move(figures));
        }
        sizes.push_back(std::move(size));
    }
    print_note(settings.format, "checked    every rung: canonical bytes\n");
    distmat_table(sizes).print(stdout, settings.format);
    print_note(settings.format,
               "GFLOP/s: three operations for every component of all pairs, computed by halves or "
               "not; ms to host: until the "
               "result is in the host's memory, once");
    if (settings.svg.empty()) return {};
    const ChartText text{
        fmt::format("All distances of a matrix on {}",
                    device_name.empty() ? processor_name : device_name),
        "rows x columns; mean of all runs, logarithmic scale; light bars are the processor's",
        "ms"};
    return write_chart(settings.svg, distmat_chart(sizes, text));
}

}  // namespace gloved::bench
