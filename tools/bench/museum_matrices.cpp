// gloved-bench museum, and of its three measurements minimum and distances.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/registry.hpp"
#include "kernels/reduce/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "museum/distances.hpp"
#include "museum/minimum.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/matrix_report.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/museum.hpp"

namespace gloved::bench {
namespace {

using kernels::reduce::MinMax;

constexpr std::size_t kWidth = 9;  // 3 x 3
constexpr std::array<std::size_t, 5> kEdges = {128, 256, 512, 1024, 2048};

/// What one of gloved's engines takes, which needs no layout of its own.
Result<museum::Minimum> run_reducer(const std::string& engine, std::span<const double> values,
                                    const MuseumSettings& settings) {
    kernels::reduce::ReducerOptions options;
    options.width = kWidth;
    options.count = values.size() / kWidth;
    options.device = settings.device();
    options.threads = settings.threads;
    options.keep = true;
    auto reducer = kernels::reduce::make_reducer<double>(engine, options);
    if (!reducer) return reducer.error();
    if (Status done = (*reducer)->add(values); !done) return done.error();
    auto range = (*reducer)->finish();
    if (!range) return range.error();
    std::vector<double> again;
    for (std::size_t run = 0; run <= settings.repeat; ++run) {
        const auto ms = (*reducer)->time_again();
        if (!ms) return ms.error();
        if (run > 0) again.push_back(*ms);
    }
    return museum::Minimum{*std::move(range), (*reducer)->times().transfer_ms, 0, median(again)};
}

Result<museum::Minimum> run_way(const std::string& way, std::span<const double> values,
                                const MuseumSettings& settings) {
    if (way != "original") return run_reducer(way, values, settings);
    return museum::find_minimum(values, kWidth, settings.device(), settings.repeat);
}

/// Whether both are the same numbers; -0 equals 0.
bool are_equal(const MinMax<double>& a, const MinMax<double>& b) {
    return std::ranges::equal(a.minimum(), b.minimum()) &&
           std::ranges::equal(a.maximum(), b.maximum());
}

/// Milliseconds of a way to the distances, after a check of all bytes.
Result<std::vector<double>> time_distances(const std::string& way, std::span<const float> points,
                                           std::size_t rows, std::span<const float> canonical,
                                           const MuseumSettings& settings) {
    std::vector<float> values;
    std::vector<double> ms;
    const auto versions = museum::distance_versions();
    const auto version = std::ranges::find(versions, way, &museum::DistanceVersion::name);
    if (version != versions.end()) {
        auto found = museum::find_distances(*version, points, rows, settings.device(),
                                            version->launch == nullptr ? 1 : settings.repeat);
        if (!found) return found.error();
        values = std::move(found->values);
        ms = std::move(found->ms);
    } else {
        kernels::distance::DistanceOptions options;
        options.threads = settings.threads;
        options.device = settings.device();
        auto engine = kernels::distance::make_distance_engine(
            way, {points.data(), rows, points.size() / rows},
            kernels::distance::Metric::sqeuclidean, options);
        if (!engine) return engine.error();
        values.resize(rows * rows);
        Status done = (*engine)->run({0, rows, 0, rows}, values.data(), rows, nullptr, 0);
        if (!done) return done.error();
        for (std::size_t run = 0; run <= settings.repeat; ++run) {
            const auto took = (*engine)->time_resident();
            if (!took) return took.error();
            if (run > 0) ms.push_back(*took);
        }
    }
    if (std::memcmp(values.data(), canonical.data(), canonical.size_bytes()) != 0) {
        return error_with(ErrorCode::internal,
                          "{} is wrong: some of {} x {} distances are not the "
                          "canonical ones",
                          way, rows, rows);
    }
    return ms;
}

}  // namespace

Status print_museum(const MuseumSettings& settings) {
    const auto device = start_device(settings.device());
    if (!device) return device.error();
    print_note(settings.format, "processor  " + processor_text(settings));
    print_note(settings.format, "device     " + device->name);
    if (settings.subject == "search") return print_museum_search(settings);
    return settings.subject == "minimum" ? print_museum_minimum(settings)
                                         : print_museum_distances(settings);
}

Status print_museum_minimum(const MuseumSettings& settings) {
    std::mt19937_64 random(settings.seed);
    std::uniform_real_distribution<double> number(-100, 100);
    std::vector<double> values(settings.count * kWidth);
    for (double& value : values) value = number(random);
    kernels::ThreadPool pool(settings.threads);
    const MinMax<double> right =
        kernels::reduce::min_max<double>(pool, std::span<const double>(values), kWidth);
    auto reader = DeviceReader::create(values.size() * sizeof(double), settings.device());
    if (!reader) return reader.error();
    const auto read_ms = reader->read_ms();
    if (!read_ms) return read_ms.error();

    Table table({"way", "copy ms", "layout ms", "computing ms", "GB/s", "x read"});
    for (const std::string& way : settings.versions) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        const auto figures = run_way(way, values, settings);
        if (!figures) return figures.error();
        if (!are_equal(figures->range, right))
            return error_with(ErrorCode::internal, "{} is wrong", way);
        const double ms = figures->layout_ms + figures->reduce_ms;
        const auto gb = static_cast<double>(values.size() * sizeof(double)) / 1e9;
        table.add({way, figure(figures->copy_ms), figure(figures->layout_ms),
                   figure(figures->reduce_ms), fmt::format("{:.1f}", gb / ms * 1e3),
                   way == "cpu" ? "" : fmt::format("{:.2f}", ms / *read_ms)});
    }
    print_note(settings.format,
               fmt::format("matrices   {} of 3 x 3; a plain read by the device takes {} ms",
                           with_commas(settings.count), figure(*read_ms)));
    print_note(settings.format, "checked    all results are equal");
    fmt::print("\n");
    table.print(stdout, settings.format);
    print_note(settings.format, "GB/s and x read: of layout and computing");
    return {};
}

Status print_museum_distances(const MuseumSettings& settings) {
    std::vector<DistmatSize> sizes;
    for (const std::size_t rows : kEdges) {
        std::mt19937_64 random(settings.seed);
        std::normal_distribution<float> number;
        std::vector<float> points(rows * rows);
        for (float& value : points) value = number(random);
        std::vector<float> canonical(rows * rows);
        kernels::ThreadPool pool(settings.threads);
        pool.for_ranges(rows, 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                for (std::size_t j = 0; j < rows; ++j) {
                    canonical[i * rows + j] = kernels::distance::canonical_sum(
                        points.data() + i * rows, points.data() + j * rows, rows);
                }
            }
        });
        DistmatSize size{rows, rows, {}};
        for (const std::string& way : settings.versions) {
            if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
            auto ms = time_distances(way, points, rows, canonical, settings);
            if (!ms) return ms.error();
            size.engines.push_back(
                {way, way == "sequential" || way == "cpu", *std::move(ms), std::nullopt});
        }
        sizes.push_back(std::move(size));
    }
    print_note(settings.format, "checked    all distances are the canonical ones");
    fmt::print("\n");
    distmat_table(sizes).print(stdout, settings.format);
    return {};
}

}  // namespace gloved::bench
