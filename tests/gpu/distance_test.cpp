// The distances of the device against the plain loop, byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/distance/device_distance.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/distance/registry.hpp"
#include "tests/gpu/device.hpp"

namespace gloved::tests {
namespace {

using namespace kernels::distance;
using kernels::cuda::make_device_distance;

constexpr Metric kMetrics[] = {Metric::sqeuclidean, Metric::euclidean, Metric::cosine};
/// DistanceOptions::tile; 0 is what users have.
constexpr unsigned kTiles[] = {0, 32, 64, 128};
/// A NaN that no kernel makes: what still has it was not written.
constexpr std::uint32_t kPoison = 0xFFC0BEEF;

std::vector<float> random_points(std::size_t rows, std::size_t dim) {
    std::mt19937 random(static_cast<unsigned>(rows * 7919 + dim));
    std::normal_distribution<float> normal;
    std::vector<float> values(rows * dim);
    for (float& value : values) value = normal(random);
    for (std::size_t row = 3; row < rows; row += 5) {
        // A copy of another row, and a row that is nearly one.
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row / 2 * dim), dim,
                    values.begin() + static_cast<std::ptrdiff_t>(row * dim));
        if (row % 2 == 0) values[row * dim] += 1e-30F;
    }
    return values;
}

float poison() {
    float value;
    std::memcpy(&value, &kPoison, sizeof value);
    return value;
}

/// A matrix in host memory with room behind its rows, poisoned.
struct Canvas {
    std::size_t rows;
    std::size_t columns;
    std::size_t stride;
    std::vector<float> values;

    Canvas(std::size_t row_count, std::size_t column_count, std::size_t spare)
        : rows(row_count),
          columns(column_count),
          stride(column_count + spare),
          values(rows * stride, poison()) {}
};

/// The first place where the bytes differ, the room behind rows included; nothing where none do.
std::string difference(const Canvas& wanted, const Canvas& found) {
    if (std::memcmp(wanted.values.data(), found.values.data(),
                    wanted.values.size() * sizeof(float)) == 0)
        return {};
    for (std::size_t i = 0; i < wanted.values.size(); ++i) {
        if (std::memcmp(&wanted.values[i], &found.values[i], sizeof(float)) == 0) continue;
        return "row " + std::to_string(i / wanted.stride) + ", column " +
               std::to_string(i % wanted.stride) + ": " + std::to_string(found.values[i]) +
               ", not " + std::to_string(wanted.values[i]);
    }
    return {};
}

std::unique_ptr<Engine> made(Result<std::unique_ptr<Engine>> engine) {
    if (!engine) throw std::runtime_error(engine.error().message);
    return *std::move(engine);
}

std::unique_ptr<Engine> device_engine(PointsView points, Metric metric, unsigned tile) {
    DistanceOptions options;
    options.tile = tile;
    return made(make_device_distance(points, metric, options));
}

void run(Engine& engine, const Rectangle& rectangle, Canvas& out, Canvas* mirror) {
    const Status done = engine.run(rectangle, out.values.data(), out.stride,
                                   mirror == nullptr ? nullptr : mirror->values.data(),
                                   mirror == nullptr ? 0 : mirror->stride);
    if (!done) throw std::runtime_error(done.error().message);
}

/// What `run` of an engine writes.
void plain_loop(PointsView points, Metric metric, const Rectangle& rectangle, Canvas& out,
                Canvas* mirror) {
    for (std::size_t i = 0; i < rectangle.rows; ++i) {
        const float* const x = points.row(rectangle.first_row + i);
        for (std::size_t j = 0; j < rectangle.columns; ++j) {
            const float sum = canonical_sum(x, points.row(rectangle.first_column + j), points.dim);
            const float distance = distance_from_sum(metric, sum);
            out.values[i * out.stride + j] = distance;
            if (mirror != nullptr) mirror->values[j * mirror->stride + i] = distance;
        }
    }
}

void expect_all_equal(std::size_t rows, std::size_t dim, Metric metric) {
    const std::vector<float> values = random_points(rows, dim);
    const PointsView points{values.data(), rows, dim};
    Canvas wanted(rows, rows, 1);
    plain_loop(points, metric, {0, rows, 0, rows}, wanted, nullptr);
    for (const unsigned tile : kTiles) {
        SCOPED_TRACE("tile " + std::to_string(tile) + ", " + std::to_string(rows) + " x " +
                     std::to_string(dim) + ", metric " + std::to_string(static_cast<int>(metric)));
        const auto engine = device_engine(points, metric, tile);
        for (int again = 0; again < 2; ++again) {
            Canvas found(rows, rows, 1);
            run(*engine, {0, rows, 0, rows}, found, nullptr);
            ASSERT_EQ(difference(wanted, found), "");
        }
    }
}

TEST(DistanceGpu, SmallShapesHaveTheBytesOfThePlainLoop) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    for (const Metric metric : kMetrics) {
        for (const std::size_t rows : {1UL, 2UL, 33UL}) {
            for (const std::size_t dim : {1UL, 7UL, 33UL}) expect_all_equal(rows, dim, metric);
        }
    }
    expect_all_equal(5, 1025, Metric::euclidean);
}

TEST(DistanceGpu, ShapesHaveTheBytesOfThePlainLoop) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    std::size_t which = 0;
    for (const std::size_t rows : {3UL, 31UL, 64UL, 129UL, 255UL, 300UL}) {
        for (const std::size_t dim : {1UL, 7UL, 8UL, 300UL, 511UL, 512UL, 513UL, 1300UL}) {
            expect_all_equal(rows, dim, kMetrics[which++ % std::size(kMetrics)]);
        }
    }
}

TEST(DistanceGpu, LargeSquaresHaveTheBytesOfTheProcessor) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    constexpr std::size_t kRows = 2500;  // more than a piece
    constexpr std::size_t kDim = 530;
    const std::vector<float> values = random_points(kRows, kDim);
    const PointsView points{values.data(), kRows, kDim};
    Canvas wanted(kRows, kRows, 0);
    run(*made(make_distance_engine("cpu", points, Metric::sqeuclidean, {})), {0, kRows, 0, kRows},
        wanted, nullptr);
    for (const unsigned tile : kTiles) {
        SCOPED_TRACE("tile " + std::to_string(tile));
        Canvas found(kRows, kRows, 0);
        run(*device_engine(points, Metric::sqeuclidean, tile), {0, kRows, 0, kRows}, found,
            nullptr);
        ASSERT_EQ(difference(wanted, found), "");
    }
}

void expect_rectangles_equal(std::size_t rows, std::size_t dim,
                             const std::vector<Rectangle>& rectangles) {
    const std::vector<float> values = random_points(rows, dim);
    const PointsView points{values.data(), rows, dim};
    std::vector<std::unique_ptr<Engine>> engines;
    for (const unsigned tile : kTiles)
        engines.push_back(device_engine(points, Metric::euclidean, tile));
    for (const Rectangle& rectangle : rectangles) {
        Canvas wanted(rectangle.rows, rectangle.columns, 3);
        Canvas wanted_mirror(rectangle.columns, rectangle.rows, 5);
        const Canvas untouched = wanted_mirror;
        plain_loop(points, Metric::euclidean, rectangle, wanted, &wanted_mirror);
        for (const bool mirrored : {false, true}) {
            for (std::size_t i = 0; i < engines.size(); ++i) {
                SCOPED_TRACE(
                    "tile " + std::to_string(kTiles[i]) + ", rows " +
                    std::to_string(rectangle.first_row) + " and " + std::to_string(rectangle.rows) +
                    " on, columns " + std::to_string(rectangle.first_column) + " and " +
                    std::to_string(rectangle.columns) + " on" + (mirrored ? ", mirrored" : ""));
                Canvas found(rectangle.rows, rectangle.columns, 3);
                Canvas found_mirror(rectangle.columns, rectangle.rows, 5);
                run(*engines[i], rectangle, found, mirrored ? &found_mirror : nullptr);
                ASSERT_EQ(difference(wanted, found), "");
                ASSERT_EQ(difference(mirrored ? wanted_mirror : untouched, found_mirror), "")
                    << "in the mirror image";
            }
        }
    }
}

TEST(DistanceGpu, SmallRectanglesAreRightAtOddOffsets) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    expect_rectangles_equal(
        41, 9, {{0, 41, 0, 41}, {3, 7, 19, 21}, {5, 1, 0, 41}, {0, 41, 40, 1}, {7, 30, 7, 30}});
}

TEST(DistanceGpu, RectanglesAreRightAtOddOffsets) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const std::vector<Rectangle> rectangles = {
        {0, 470, 0, 470},                                             // square, in pieces
        {3, 463, 3, 463},                                             // likewise, at an odd offset
        {17, 100, 203, 55},                                           // apart
        {5, 1, 7, 290},       {7, 290, 5, 1},   {100, 201, 150, 99},  // overlapping
        {0, 292, 192, 100},                                           // its last piece is a square
        {192, 100, 192, 278}, {1, 469, 0, 470},
    };
    for (const std::size_t dim : {37UL, 513UL}) expect_rectangles_equal(470, dim, rectangles);
}

TEST(DistanceGpu, TimesWhatIsResident) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const std::vector<float> values = random_points(65, 40);
    for (const unsigned tile : kTiles) {
        const auto engine = device_engine({values.data(), 65, 40}, Metric::sqeuclidean, tile);
        for (int again = 0; again < 2; ++again) {
            const auto ms = engine->time_resident();
            ASSERT_TRUE(ms) << ms.error().message;
            EXPECT_GT(*ms, 0);
        }
    }
}

TEST(DistanceGpu, SaysWhatIsNotThere) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const float point = 0;
    DistanceOptions options;
    options.device = 1000;
    const auto device = make_device_distance({&point, 1, 1}, Metric::sqeuclidean, options);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace gloved::tests
