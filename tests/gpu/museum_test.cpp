// The museum's kernels: searches against the float64 oracle within their bound, minima and
// distances to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/query_vector.hpp"
#include "museum/distances.hpp"
#include "museum/minimum.hpp"
#include "museum/search.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Hit;
using museum::Search;
using museum::SearchTimes;
using museum::Version;

constexpr int kDevice = 0;

struct Shape {
    std::size_t rows;
    std::size_t dim;
};

/// Rows that are hard to rank: duplicates, a near-duplicate, an opposite, zeros, and both ends of
/// the norms that the bound covers.
std::vector<Entry> awkward_entries(const Shape& shape) {
    auto entries = random_entries(shape.rows, shape.dim, shape.rows * 31 + shape.dim);
    for (std::size_t i = 0; i < shape.rows; ++i) {
        const std::vector<float>& base = entries[i / 8 * 8].second;
        std::vector<float>& row = entries[i].second;
        const auto scaled = [&](float factor) {
            row = base;
            for (float& value : row) value *= factor;
        };
        if (i % 8 == 1) scaled(1);
        if (i % 8 == 2) row.assign(shape.dim, 0.0F);
        if (i % 8 == 3) scaled(-1);
        if (i % 8 == 4) scaled(0x1p-45F);
        if (i % 8 == 5) scaled(0x1p45F);
        if (i % 8 == 6) {
            row = base;
            row[i % shape.dim] = std::nextafter(row[i % shape.dim], 9.0F);
        }
    }
    return entries;
}

std::vector<Hit> search(Search& search, const std::vector<float>& values, std::size_t k,
                        SearchTimes* times) {
    const auto query = kernels::make_query_vector(values);
    if (!query) throw std::runtime_error(query.error().message);
    auto hits = search.run(*query, k, times);
    if (!hits) throw std::runtime_error(hits.error().message);
    return *std::move(hits);
}

std::unique_ptr<Search> make_search(const Version& version, const format::Model& model) {
    auto made = Search::create(version, model, kDevice);
    if (!made) throw std::runtime_error(made.error().message);
    return *std::move(made);
}

void expect_within_bound(const std::vector<Hit>& hits, const format::Model& model,
                         const std::vector<float>& asked, std::size_t k, const std::string& what) {
    const std::vector<double> scores = oracle_scores(model, asked);
    const auto best = oracle_top(scores, k, [](std::uint32_t, double) { return true; });
    const double bound = museum::score_bound(model.dim());
    ASSERT_EQ(hits.size(), best.size()) << what;
    std::set<kernels::Row> rows;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        ASSERT_LT(hits[i].row, model.rows()) << what;
        EXPECT_TRUE(rows.insert(hits[i].row).second) << what << ", place " << i;
        const double score = hits[i].score;
        // NaN is within no bound.
        EXPECT_TRUE(std::abs(score - best[i].score) <= bound) << what << ", place " << i;
        EXPECT_TRUE(std::abs(score - scores[hits[i].row]) <= bound) << what << ", place " << i;
        EXPECT_TRUE(i == 0 || score <= hits[i - 1].score) << what << ", place " << i;
        if (model.norms()[hits[i].row] == 0.0) {
            EXPECT_EQ(score, 0.0) << what;
        }
    }
}

class MuseumSearch : public testing::TestWithParam<Version> {
  protected:
    void SetUp() override {
        if (no_device()) GTEST_SKIP() << kNoDevice;
    }
};

TEST_P(MuseumSearch, FindsTheBestWithinItsBound) {
    for (const Shape& shape : {Shape{1, 1}, Shape{1, 300}, Shape{5, 3}, Shape{33, 25},
                               Shape{4099, 100}, Shape{10007, 300}, Shape{777, 301},
                               Shape{64, 1025}, Shape{47, 4096}, Shape{100000, 25}}) {
        const TempDir dir;
        const auto model = make_model(dir / "model", awkward_entries(shape));
        const auto made = make_search(GetParam(), model);
        for (std::size_t row = 0; row < model.rows(); row += 1 + model.rows() / 3) {
            // An answer that is left over from the last search is a wrong one: each is another's.
            std::vector<float> asked(model.vector(row).begin(), model.vector(row).end());
            if (!(model.norms()[row] > 0)) asked.assign(model.dim(), 1.0F);
            asked[0] += 1.0F;
            for (const std::size_t k : {1U, 10U, 31U, 32U}) {
                SearchTimes times{-1, -1, -1, -1};
                const auto hits = search(*made, asked, k, k == 10 ? nullptr : &times);
                expect_within_bound(hits, model, asked, k,
                                    std::to_string(shape.rows) + "x" + std::to_string(shape.dim) +
                                        ", row " + std::to_string(row) +
                                        ", k=" + std::to_string(k));
                if (k == 10) continue;
                EXPECT_GT(times.total, 0);
                EXPECT_GT(times.dot_product, 0);
                EXPECT_GE(times.first_merge, 0);
                EXPECT_GE(times.botched_merge_sort, 0);
            }
        }
    }
}

TEST_P(MuseumSearch, TwoOfAKindDoNotMixTheirModels) {
    const TempDir dir;
    const auto one = make_model(dir / "one", random_entries(300, 20, 1));
    const auto two = make_model(dir / "two", random_entries(500, 12, 2));
    const auto of_one = make_search(GetParam(), one);
    const auto of_two = make_search(GetParam(), two);
    for (int round = 0; round < 2; ++round) {
        for (const auto& [made, model] : {std::pair(of_one.get(), &one), {of_two.get(), &two}}) {
            const std::vector<float> asked(model->vector(7).begin(), model->vector(7).end());
            expect_within_bound(search(*made, asked, 10, nullptr), *model, asked, 10, "two");
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Museum, MuseumSearch,
                         testing::ValuesIn(museum::versions().begin(), museum::versions().end()),
                         [](const auto& version) { return std::string(version.param.name); });

TEST(MuseumMinimum, IsThatOfAPlainLoop) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> number(-100, 100);
    for (const std::size_t width : {1U, 9U, 33U}) {
        for (const std::size_t count : {1U, 2U, 3U, 2047U, 2048U, 2049U, 6145U, 50001U}) {
            std::vector<double> values(width * count);
            for (double& value : values) value = number(random);
            const auto found = museum::find_minimum(values, width, kDevice, 2);
            ASSERT_TRUE(found) << found.error().message;
            for (std::size_t element = 0; element < width; ++element) {
                double low = std::numeric_limits<double>::infinity();
                double high = -low;
                for (std::size_t i = element; i < values.size(); i += width) {
                    low = std::min(low, values[i]);
                    high = std::max(high, values[i]);
                }
                ASSERT_EQ(found->range.minimum()[element], low) << width << " " << count;
                ASSERT_EQ(found->range.maximum()[element], high) << width << " " << count;
            }
        }
    }
}

TEST(MuseumDistances, AreTheCanonicalBytes) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    std::mt19937_64 random(7);
    std::normal_distribution<float> number;
    for (const Shape& shape : {Shape{1, 1}, Shape{2, 31}, Shape{33, 32}, Shape{65, 33},
                               Shape{130, 512}, Shape{70, 513}, Shape{40, 1025}}) {
        std::vector<float> points(shape.rows * shape.dim);
        for (float& value : points) value = number(random);
        std::vector<float> canonical;
        for (std::size_t i = 0; i < shape.rows; ++i) {
            for (std::size_t j = 0; j < shape.rows; ++j) {
                canonical.push_back(kernels::distance::canonical_sum(
                    points.data() + i * shape.dim, points.data() + j * shape.dim, shape.dim));
            }
        }
        for (const museum::DistanceVersion& version : museum::distance_versions()) {
            const auto found = museum::find_distances(version, points, shape.rows, kDevice, 2);
            ASSERT_TRUE(found) << found.error().message;
            ASSERT_EQ(found->values.size(), canonical.size());
            EXPECT_EQ(std::memcmp(found->values.data(), canonical.data(),
                                  canonical.size() * sizeof(float)),
                      0)
                << version.name << " " << shape.rows << "x" << shape.dim;
            EXPECT_EQ(found->ms.size(), 2U);
        }
    }
}

}  // namespace
}  // namespace gloved::tests
