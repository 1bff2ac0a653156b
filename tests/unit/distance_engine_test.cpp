// The distance that canonical.hpp defines against a sum of other arithmetic, and the engine of the
// processor against it, by bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/cpu.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/distance/registry.hpp"

namespace gloved::kernels::distance {
namespace {

constexpr Metric kMetrics[] = {Metric::sqeuclidean, Metric::euclidean, Metric::cosine};
constexpr float kNotWritten = -7.0F;

std::vector<std::size_t> dims() {
    std::vector<std::size_t> all;
    for (std::size_t dim = 1; dim <= 70; ++dim) all.push_back(dim);
    all.insert(all.end(), {300, 511, 512, 513, 1300});
    return all;
}

/// Rows of a normal distribution; every fifth is another row moved by little, every seventh a copy
/// of another.
std::vector<float> points(std::size_t rows, std::size_t dim, float scale = 1) {
    std::mt19937 random(static_cast<unsigned>(rows * 7919 + dim));
    std::normal_distribution<float> normal;
    std::vector<float> values(rows * dim);
    for (float& value : values) value = scale * normal(random);
    for (std::size_t row = 1; row < rows; ++row) {
        if (row % 5 != 0 && row % 7 != 0) continue;
        for (std::size_t k = 0; k < dim; ++k) {
            const float moved = row % 7 == 0 ? 0.0F : scale * 1e-4F * normal(random);
            values[row * dim + k] = values[(row / 2) * dim + k] + moved;
        }
    }
    return values;
}

std::unique_ptr<Engine> engine(const std::string& name, PointsView view, Metric metric,
                               const DistanceOptions& options = {}) {
    auto made = make_distance_engine(name, view, metric, options);
    if (!made) {
        ADD_FAILURE() << made.error().message;
        return nullptr;
    }
    return *std::move(made);
}

/// All distances, pair by pair.
std::vector<float> plain_loop(PointsView view, Metric metric) {
    std::vector<float> out;
    for (std::size_t i = 0; i < view.rows; ++i) {
        for (std::size_t j = 0; j < view.rows; ++j) {
            const float sum = canonical_sum(view.row(i), view.row(j), view.dim);
            out.push_back(distance_from_sum(metric, sum));
        }
    }
    return out;
}

std::vector<float> all_distances(Engine& engine, std::size_t rows) {
    std::vector<float> out(rows * rows, kNotWritten);
    const Status done = engine.run({0, rows, 0, rows}, out.data(), rows, nullptr, 0);
    EXPECT_TRUE(done);
    return out;
}

/// The first place where bits differ, or «».
std::string difference(const std::vector<float>& a, const std::vector<float>& b,
                       std::size_t width) {
    if (a.size() != b.size()) return "sizes";
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
            return std::to_string(i / width) + ", " + std::to_string(i % width) + ": " +
                   std::to_string(a[i]) + " and " + std::to_string(b[i]);
        }
    }
    return "";
}

TEST(CanonicalDistance, IsWithinItsBoundHoweverNearThePointsAre) {
    double worst = 0;
    for (const std::size_t dim : dims()) {
        for (const float scale : {1.0F, 1e-3F, 1e15F, 1e-20F, 1e-38F}) {
            constexpr std::size_t kRows = 15;
            const auto values = points(kRows, dim, scale);
            const PointsView view{values.data(), kRows, dim};
            for (std::size_t i = 0; i < kRows; ++i) {
                for (std::size_t j = 0; j < kRows; ++j) {
                    long double truth = 0;
                    for (std::size_t k = 0; k < dim; ++k) {
                        const auto d = static_cast<long double>(view.row(i)[k]) -
                                       static_cast<long double>(view.row(j)[k]);
                        truth += d * d;
                    }
                    const float sum = canonical_sum(view.row(i), view.row(j), dim);
                    const auto error =
                        static_cast<double>(std::abs(static_cast<long double>(sum) - truth));
                    const double relative = relative_bound(dim) * static_cast<double>(truth);
                    ASSERT_FALSE(!(error <= relative + underflow_bound(dim)))
                        << "dim " << dim << ", scale " << scale << ", rows " << i << " and " << j
                        << ": " << sum;
                    if (relative > 0 && scale >= 1e-3F) worst = std::max(worst, error / relative);
                    const auto root = static_cast<double>(std::sqrt(truth));
                    const double root_error = std::abs(
                        static_cast<double>(distance_from_sum(Metric::euclidean, sum)) - root);
                    ASSERT_FALSE(!(root_error <=
                                   relative_bound(dim) * root + std::sqrt(underflow_bound(dim))));
                }
            }
        }
    }
    // A bound that nothing comes near would say little.
    EXPECT_GT(worst, 0.1);
}

TEST(CanonicalDistance, GoesBlockByBlock) {
    // 1 + 512 · 2^-26: one after the other, each term is lost; as a block of their own they add up
    // to 2^-17.
    std::vector<float> x(kBlock * 2, 0x1p-13F);
    std::fill_n(x.begin(), kBlock, 0.0F);
    x[0] = 1;
    const std::vector<float> zero(x.size(), 0.0F);
    EXPECT_EQ(canonical_sum(x.data(), zero.data(), x.size()), 1.0F + 0x1p-17F);
}

class EverySimd : public testing::TestWithParam<std::string> {};

TEST_P(EverySimd, GivesTheBytesOfThePlainLoop) {
    DistanceOptions options;
    options.simd = GetParam();
    options.threads = 3;
    for (const std::size_t dim : dims()) {
        const std::size_t rows = 97 + dim % 8;
        const auto values = points(rows, dim);
        const PointsView view{values.data(), rows, dim};
        for (const Metric metric : kMetrics) {
            const auto expected = plain_loop(view, metric);
            const auto found = all_distances(*engine("cpu", view, metric, options), rows);
            ASSERT_EQ(difference(expected, found, rows), "") << "dim " << dim;
        }
    }
}

TEST_P(EverySimd, TakesAnyNumberOfRowsAndThreads) {
    constexpr std::size_t kDim = 19;
    const auto values = points(701, kDim);
    for (const std::size_t rows :
         {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 23U, 24U, 25U, 47U, 48U, 49U, 191U, 193U, 389U, 701U}) {
        const PointsView view{values.data(), rows, kDim};
        const auto expected = plain_loop(view, Metric::euclidean);
        for (const unsigned threads : {1U, 2U, 5U}) {
            DistanceOptions options;
            options.simd = GetParam();
            options.threads = threads;
            const auto found =
                all_distances(*engine("cpu", view, Metric::euclidean, options), rows);
            ASSERT_EQ(difference(expected, found, rows), "")
                << rows << " rows, " << threads << " threads";
        }
    }
}

TEST_P(EverySimd, WritesARectangleAndItsMirrorAndNothingElse) {
    constexpr std::size_t kRows = 431;
    constexpr std::size_t kDim = 37;
    constexpr std::size_t kRoom = 3;
    const auto values = points(kRows, kDim);
    const PointsView view{values.data(), kRows, kDim};
    const auto whole = plain_loop(view, Metric::sqeuclidean);
    DistanceOptions options;
    options.simd = GetParam();
    options.threads = 2;
    const auto cpu = engine("cpu", view, Metric::sqeuclidean, options);
    for (const Rectangle& rectangle :
         {Rectangle{0, kRows, 0, kRows}, Rectangle{5, 200, 5, 200}, Rectangle{5, 200, 6, 200},
          Rectangle{430, 1, 0, kRows}, Rectangle{0, kRows, 17, 1}, Rectangle{100, 250, 3, 97},
          Rectangle{48, 192, 240, 191}, Rectangle{9, 9, 11, 31}}) {
        for (const bool mirrored : {false, true}) {
            const std::size_t stride = rectangle.columns + kRoom;
            const std::size_t mirror_stride = rectangle.rows + kRoom;
            std::vector<float> out(rectangle.rows * stride, kNotWritten);
            std::vector<float> mirror(rectangle.columns * mirror_stride, kNotWritten);
            std::vector<float> expected_out = out;
            std::vector<float> expected_mirror = mirror;
            for (std::size_t i = 0; i < rectangle.rows; ++i) {
                for (std::size_t j = 0; j < rectangle.columns; ++j) {
                    const float value =
                        whole[(rectangle.first_row + i) * kRows + rectangle.first_column + j];
                    expected_out[i * stride + j] = value;
                    if (mirrored) expected_mirror[j * mirror_stride + i] = value;
                }
            }
            ASSERT_TRUE(cpu->run(rectangle, out.data(), stride, mirrored ? mirror.data() : nullptr,
                                 mirrored ? mirror_stride : 0));
            ASSERT_EQ(difference(expected_out, out, stride), "");
            ASSERT_EQ(difference(expected_mirror, mirror, mirror_stride), "");
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Distance, EverySimd, testing::ValuesIn(simd_names()),
                         [](const auto& instance) { return instance.param; });

TEST(DistanceEngine, GivesAZeroDiagonalAndASymmetricMatrix) {
    constexpr std::size_t kRows = 211;
    constexpr std::size_t kDim = 530;
    const auto values = points(kRows, kDim);
    for (const Metric metric : kMetrics) {
        const auto found =
            all_distances(*engine("cpu", {values.data(), kRows, kDim}, metric), kRows);
        for (std::size_t i = 0; i < kRows; ++i) {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i * kRows + i]), 0U);
            for (std::size_t j = 0; j < i; ++j) {
                ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i * kRows + j]),
                          std::bit_cast<std::uint32_t>(found[j * kRows + i]));
            }
        }
    }
}

TEST(DistanceEngine, IsTimedOnTheHost) {
    const auto values = points(50, 3);
    const auto cpu = engine("cpu", {values.data(), 50, 3}, Metric::sqeuclidean);
    const auto ms = cpu->time_resident();
    ASSERT_TRUE(ms) << ms.error().message;
    EXPECT_GT(*ms, 0.0);
    EXPECT_FALSE(cpu->description().empty());
}

TEST(DistanceRegistry, NamesEveryEngineAndRefusesOthers) {
    const auto entries = list_distance_engines();
    std::vector<std::string> names;
    for (const auto& entry : entries) names.push_back(entry.name);
    EXPECT_EQ(names, (std::vector<std::string>{"cuda", "cpu"}));
    const float value = 1;
    const PointsView view{&value, 1, 1};
    for (const auto& entry : entries) {
        const auto made = make_distance_engine(entry.name, view, Metric::sqeuclidean, {});
        if (entry.unavailable.empty()) {
            EXPECT_TRUE(made) << entry.name;
        } else {
            ASSERT_FALSE(made) << entry.name;
            EXPECT_EQ(made.error().code, ErrorCode::unavailable);
        }
    }
    EXPECT_TRUE(make_distance_engine("auto", view, Metric::sqeuclidean, {}));
    const auto made = make_distance_engine("abacus", view, Metric::sqeuclidean, {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message, "no engine 'abacus': there are auto, cuda, cpu");
    DistanceOptions options;
    options.simd = "mmx";
    const auto odd = make_distance_engine("cpu", view, Metric::sqeuclidean, options);
    ASSERT_FALSE(odd);
    EXPECT_NE(odd.error().message.find("no instruction set 'mmx'"), std::string::npos)
        << odd.error().message;
}

}  // namespace
}  // namespace gloved::kernels::distance
