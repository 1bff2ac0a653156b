#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/distance/prepare.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::distance {
namespace {

std::string row_name(std::size_t row) { return "m.txt: row " + std::to_string(row + 1); }

template <class T>
Result<Points> prepared(const std::vector<T>& values, std::size_t dim,
                        Metric metric = Metric::sqeuclidean, unsigned threads = 2) {
    ThreadPool pool(threads);
    return prepare(pool, std::span<const T>(values), values.size() / dim, dim, metric, row_name);
}

template <class T>
void expect_refused(const std::vector<T>& values, std::size_t dim, Metric metric,
                    const std::string& says) {
    const auto points = prepared(values, dim, metric);
    ASSERT_FALSE(points);
    EXPECT_EQ(points.error().code, ErrorCode::bad_source);
    EXPECT_EQ(points.error().message.rfind("m.txt: row ", 0), 0U) << points.error().message;
    EXPECT_NE(points.error().message.find(says), std::string::npos) << points.error().message;
}

long double squared_distance(const std::vector<double>& values, std::size_t dim, std::size_t i,
                             std::size_t j) {
    long double sum = 0;
    for (std::size_t k = 0; k < dim; ++k) {
        const auto d = static_cast<long double>(values[i * dim + k]) -
                       static_cast<long double>(values[j * dim + k]);
        sum += d * d;
    }
    return sum;
}

TEST(DistancePrepare, TakesFloat32AsItIs) {
    const std::vector<float> values = {1, 2, 3, 1e18F, -0.0F, 1e-45F};
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean}) {
        const auto points = prepared(values, 3, metric);
        ASSERT_TRUE(points);
        EXPECT_EQ(points->view.data, values.data());
        EXPECT_EQ(points->view.rows, 2U);
        EXPECT_EQ(points->view.dim, 3U);
    }
}

TEST(DistancePrepare, LeavesFloat64ThatIsFloat32WhereItIs) {
    const std::vector<double> values = {1000001, 0.5, -3, 1000002, 0x1p-140, 7};
    const auto points = prepared(values, 3);
    ASSERT_TRUE(points);
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(static_cast<double>(points->storage[i]), values[i]);
}

TEST(DistancePrepare, TakesACommonOffsetOutOfFloat64) {
    constexpr std::size_t kRows = 2500;  // more than one group of the mean
    constexpr std::size_t kDim = 7;
    constexpr double kFarthest = 7;  // from the mean row: seven normals are longer once in ten
                                     // million
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    std::vector<double> values(kRows * kDim);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 1e6 * static_cast<double>(i % kDim + 1) + normal(random);
    const auto points = prepared(values, kDim);
    ASSERT_TRUE(points);
    for (std::size_t i = 0; i < kRows; i += 50) {
        for (std::size_t j = 0; j < kRows; j += 49) {
            const auto truth = static_cast<double>(squared_distance(values, kDim, i, j));
            const double found =
                static_cast<double>(canonical_sum(points->view.row(i), points->view.row(j), kDim));
            // canonical.hpp: ε = u (|p| + |q|), and what float64 itself loses at 10^6.
            const double moved = 0x1p-24 * 2 * kFarthest * 1.001 + 1e-8;
            const double bound =
                relative_bound(kDim) * truth + 2 * std::sqrt(truth) * moved + moved * moved;
            ASSERT_FALSE(!(std::abs(found - truth) <= bound))
                << i << ", " << j << ": " << found << " for " << truth;
        }
    }
}

TEST(DistancePrepare, GivesTheSamePointsWhateverTheThreads) {
    std::mt19937_64 random(4);
    std::normal_distribution<double> normal;
    std::vector<double> values(5000 * 31);
    for (double& value : values) value = 100 + normal(random);
    const auto one = prepared(values, 31, Metric::sqeuclidean, 1);
    const auto five = prepared(values, 31, Metric::sqeuclidean, 5);
    ASSERT_TRUE(one);
    ASSERT_TRUE(five);
    EXPECT_EQ(one->storage, five->storage);
}

TEST(DistancePrepare, MakesUnitRowsForTheCosine) {
    constexpr std::size_t kDim = 300;
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    std::vector<double> values(20 * kDim);
    for (double& value : values) value = normal(random);
    for (std::size_t k = 0; k < kDim; ++k) {
        values[kDim + k] = values[k] * (1 + 1e-6 * normal(random));  // near the first
        values[2 * kDim + k] = -values[k];                           // opposite
        values[3 * kDim + k] = values[k] * 1e200;                    // beyond what float64 squares
        values[4 * kDim + k] = values[k] * 1e-200;
    }
    const auto points = prepared(values, kDim, Metric::cosine);
    ASSERT_TRUE(points);
    for (std::size_t i = 0; i < 20; ++i) {
        for (std::size_t j = 0; j < 20; ++j) {
            long double unit = 0;
            std::vector<long double> norms;
            for (const std::size_t row : {i, j}) {
                long double squares = 0;
                for (std::size_t k = 0; k < kDim; ++k) {
                    squares += static_cast<long double>(values[row * kDim + k]) *
                               static_cast<long double>(values[row * kDim + k]);
                }
                norms.push_back(std::sqrt(squares));
            }
            for (std::size_t k = 0; k < kDim; ++k) {
                const long double d =
                    values[i * kDim + k] / norms[0] - values[j * kDim + k] / norms[1];
                unit += d * d;
            }
            const auto truth = static_cast<double>(unit / 2);
            const double found = static_cast<double>(distance_from_sum(
                Metric::cosine, canonical_sum(points->view.row(i), points->view.row(j), kDim)));
            // canonical.hpp: 2 u D + 2 u².
            constexpr double u = 0x1p-24;
            const double bound =
                relative_bound(kDim) * truth + 1.01 * (2 * u * std::sqrt(2 * truth) + 2 * u * u);
            ASSERT_FALSE(!(std::abs(found - truth) <= bound))
                << i << ", " << j << ": " << found << " for " << truth;
        }
    }
    const std::vector<float> same = {3, 4, 30, 40};
    const auto from_float = prepared(same, 2, Metric::cosine);
    ASSERT_TRUE(from_float);
    EXPECT_EQ(from_float->storage, (std::vector<float>{0.6F, 0.8F, 0.6F, 0.8F}));
}

TEST(DistancePrepare, RefusesWhatIsNotFiniteByRowAndColumn) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    for (const Metric metric : {Metric::sqeuclidean, Metric::cosine}) {
        expect_refused(std::vector<double>{1, 2, 3, kNan, 5, 6}, 2, metric,
                       "row 2: its number in column 1 (counted from 0) is nan");
        expect_refused(std::vector<float>{1, 2, -kInfinite, 4, kInfinite, 6}, 3, metric,
                       "row 1: its number in column 2 (counted from 0) is infinite, and negative");
    }
    // The first of many, whoever finds it.
    std::vector<double> many(200'000, kNan);
    many[0] = many[1] = many[2] = 0;
    expect_refused(many, 1, Metric::sqeuclidean, "row 4:");
}

TEST(DistancePrepare, RefusesARowOfZerosForTheCosineAlone) {
    const std::vector<float> values = {1, 2, 0, -0.0F, 5, 6};
    expect_refused(values, 2, Metric::cosine, "row 2: all its numbers are 0");
    EXPECT_TRUE(prepared(values, 2, Metric::euclidean));
}

TEST(DistancePrepare, RefusesNumbersWhoseSquaresMayOverflow) {
    expect_refused(std::vector<float>{1, 2, 3e19F, 4}, 2, Metric::sqeuclidean,
                   "row 2: its numbers are so large");
    expect_refused(std::vector<double>{1, 2, 1e300, 4}, 2, Metric::euclidean,
                   "its numbers are so large");
    // Not even the mean is finite.
    expect_refused(std::vector<double>{1.7e308, 1.6e308, 1.7e308}, 1, Metric::euclidean,
                   "its numbers are so large");
    EXPECT_TRUE(prepared(std::vector<double>{1, 2, 1e300, 4}, 2, Metric::cosine));
    // The most that is taken: opposite rows of the largest norm.
    const std::vector<float> largest = {0x1p62F, -0x1p62F};
    const auto points = prepared(largest, 1);
    ASSERT_TRUE(points);
    EXPECT_EQ(canonical_sum(points->view.row(0), points->view.row(1), 1), 0x1p126F);
}

TEST(DistancePrepare, RefusesMoreColumnsThanTheBoundCovers) {
    expect_refused(std::vector<float>(kMaxDim + 1, 1.0F), kMaxDim + 1, Metric::sqeuclidean,
                   "2097152 at most");
    EXPECT_TRUE(prepared(std::vector<float>(kMaxDim, 1.0F), kMaxDim));
}

}  // namespace
}  // namespace gloved::kernels::distance
