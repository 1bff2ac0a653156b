// Every engine path against the float64 oracle: words, order and the bits of every score.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Answer;
using kernels::Engine;
using kernels::Hit;
using kernels::Query;
using kernels::Row;

std::unique_ptr<Engine> engine_of(const format::Model& model, const std::string& simd, unsigned threads) {
    auto engine = kernels::make_engine("cpu", model, {threads, simd});
    if (!engine) throw std::runtime_error(engine.error().message);
    return *std::move(engine);
}

kernels::QueryVector vector_of(std::vector<float> values) {
    auto vector = kernels::make_query_vector(std::move(values));
    if (!vector) throw std::runtime_error(vector.error().message);
    return *std::move(vector);
}

void expect_identical(const std::vector<Hit>& got, const std::vector<Hit>& wanted, const std::string& what) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].row, wanted[i].row) << what << ", place " << i;
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i].score), std::bit_cast<std::uint64_t>(wanted[i].score))
            << what << ", place " << i << ": " << got[i].score << " for " << wanted[i].score;
    }
}

bool everyone(std::uint32_t, double) { return true; }

/// Rows that are hard to rank: duplicates, near-duplicates, opposites, zeros, tiny and huge norms, one-hot, constant.
std::vector<Entry> awkward_entries(std::size_t rows, std::size_t dim, std::uint64_t seed) {
    auto entries = random_entries(rows, dim, seed);
    for (std::size_t i = 0; i + 16 <= rows; i += 16) {
        auto& base = entries[i].second;
        entries[i + 1].second = base;
        entries[i + 2].second = base;
        for (float& value : entries[i + 2].second) value *= 4.0F;
        entries[i + 3].second = base;
        entries[i + 3].second[i % dim] = std::nextafter(base[i % dim], 9.0F);
        entries[i + 4].second = base;
        for (float& value : entries[i + 4].second) value = -value;
        entries[i + 5].second.assign(dim, 0.0F);
        entries[i + 6].second.assign(dim, 1e-42F);
        entries[i + 7].second.assign(dim, 3e38F);
        entries[i + 8].second.assign(dim, 0.0F);
        entries[i + 8].second[i % dim] = 1.0F;
        entries[i + 9].second.assign(dim, 0.25F);
        entries[i + 10].second = base;
        for (float& value : entries[i + 10].second) value *= 1e-20F;
    }
    return entries;
}

struct Shape {
    std::size_t rows;
    std::size_t dim;
};

class EveryPath : public testing::TestWithParam<std::tuple<std::string, unsigned, Shape>> {
  protected:
    void SetUp() override {
        const auto& [simd, threads, shape] = GetParam();
        model_ = std::make_unique<format::Model>(
            make_model(dir_ / "model", awkward_entries(shape.rows, shape.dim, shape.rows * 31 + shape.dim)));
        engine_ = engine_of(*model_, simd, threads);
    }

    /// Query vectors of many kinds: rows themselves, random ones, near-zero and huge ones.
    std::vector<std::vector<float>> vectors() const {
        std::mt19937_64 random(7);
        std::normal_distribution<float> component;
        std::vector<std::vector<float>> list;
        for (std::size_t row = 0; row < model_->rows() && list.size() < 40; row += 1 + model_->rows() / 40) {
            if (model_->norms()[row] != 0) list.emplace_back(model_->vector(row).begin(), model_->vector(row).end());
        }
        for (const float scale : {1.0F, 1e-38F, 1e37F}) {
            std::vector<float> vector(model_->dim());
            for (float& value : vector) value = component(random) * scale;
            list.push_back(vector);
        }
        return list;
    }

    TempDir dir_;
    std::unique_ptr<format::Model> model_;
    std::unique_ptr<Engine> engine_;
};

TEST_P(EveryPath, CosineEqualsTheOracleForEveryK) {
    for (const auto& vector : vectors()) {
        const auto scores = oracle_scores(*model_, vector);
        for (const std::size_t k :
             {std::size_t{1}, std::size_t{10}, model_->rows() / 2 + 1, model_->rows(), model_->rows() + 5}) {
            const Query query{kernels::Cosine{vector_of(vector)}, k, {}, {}};
            const auto answers = engine_->run(std::span(&query, 1));
            ASSERT_EQ(answers.size(), 1U);
            expect_identical(answers[0].hits, oracle_top(scores, k, everyone), "k=" + std::to_string(k));
        }
    }
}

TEST_P(EveryPath, BatchesEqualSingleQueries) {
    std::vector<Query> queries;
    const auto list = vectors();
    for (std::size_t i = 0; i < 300; ++i) {
        const auto& vector = list[i % list.size()];
        queries.push_back({kernels::Cosine{vector_of(vector)}, 1 + i % 23, {static_cast<Row>(i % model_->rows())}, {}});
    }
    for (const std::size_t size :
         {std::size_t{2}, std::size_t{5}, std::size_t{17}, std::size_t{33}, std::size_t{64}, std::size_t{300}}) {
        const auto answers = engine_->run(std::span(queries).first(size));
        ASSERT_EQ(answers.size(), size);
        for (std::size_t i = 0; i < size; ++i) {
            const auto& vector = list[i % list.size()];
            const auto wanted = oracle_top(oracle_scores(*model_, vector), queries[i].k,
                                           [&](std::uint32_t row, double) { return row != queries[i].excluded[0]; });
            expect_identical(answers[i].hits, wanted, "query " + std::to_string(i) + " of " + std::to_string(size));
        }
    }
}

TEST_P(EveryPath, FiltersAndExclusionsEqualTheOracle) {
    const auto rows = static_cast<Row>(model_->rows());
    std::vector<std::pair<std::string, kernels::Filter>> filters(6);
    filters[0].first = "rank";
    filters[0].second.rank_below = rows / 3 + 1;
    filters[1].first = "row range";
    filters[1].second.rows = kernels::RowRange{rows / 4, rows / 2};
    filters[2].first = "empty row range";
    filters[2].second.rows = kernels::RowRange{rows / 4, rows / 4};
    filters[3].first = "minimum score";
    filters[3].second.min_score = 0.1;
    filters[4].first = "minimum score of exactly 1";
    filters[4].second.min_score = 1.0;
    filters[5].first = "all at once";
    filters[5].second = {rows - rows / 5, kernels::RowRange{1, rows}, -0.05};
    for (const auto& vector : vectors()) {
        const auto scores = oracle_scores(*model_, vector);
        for (const auto& [name, filter] : filters) {
            const std::vector<Row> excluded = {rows / 2, 0, rows - 1, rows / 3};
            const Query query{kernels::Cosine{vector_of(vector)}, 25, excluded, filter};
            const auto wanted = oracle_top(scores, 25, [&](std::uint32_t row, double score) {
                const bool in_range = !filter.rows || (row >= filter.rows->first && row < filter.rows->last);
                return in_range && model_->ranks()[row] < filter.rank_below && score >= filter.min_score &&
                       std::count(excluded.begin(), excluded.end(), row) == 0;
            });
            expect_identical(engine_->run(std::span(&query, 1))[0].hits, wanted, name);
        }
    }
}

TEST_P(EveryPath, CosMulEqualsTheOracle) {
    const auto list = vectors();
    for (std::size_t i = 0; i + 4 < list.size(); ++i) {
        const kernels::CosMul kind{{vector_of(list[i]), vector_of(list[i + 1])}, {vector_of(list[i + 2])}};
        const auto scores = oracle_cosmul(*model_, {list[i], list[i + 1]}, {list[i + 2]});
        // Beside a cosine query, so that lanes of different kinds share a pass.
        const std::vector<Query> queries = {
            {kind, 10, {}, {}}, {kernels::Cosine{vector_of(list[i])}, 3, {}, {}}, {kind, model_->rows(), {}, {}}};
        const auto answers = engine_->run(queries);
        expect_identical(answers[0].hits, oracle_top(scores, 10, everyone), "cosmul");
        expect_identical(answers[1].hits, oracle_top(oracle_scores(*model_, list[i]), 3, everyone), "cosine beside it");
        expect_identical(answers[2].hits, oracle_top(scores, model_->rows(), everyone), "cosmul, all rows");
    }
}

TEST_P(EveryPath, CountBeforeEqualsTheOracle) {
    const auto list = vectors();
    std::vector<Query> queries;
    std::vector<std::uint64_t> wanted;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto row = static_cast<Row>(i * 7 % model_->rows());
        const Row excluded = static_cast<Row>(i % model_->rows());
        const auto order = oracle_top(oracle_scores(*model_, list[i]), model_->rows(),
                                      [&](std::uint32_t other, double) { return other != excluded || other == row; });
        const auto place = std::find_if(order.begin(), order.end(), [&](const Hit& hit) { return hit.row == row; });
        wanted.push_back(static_cast<std::uint64_t>(place - order.begin()));
        queries.push_back({kernels::CountBefore{vector_of(list[i]), row}, 1, {excluded}, {}});
    }
    const auto answers = engine_->run(queries);
    for (std::size_t i = 0; i < queries.size(); ++i) EXPECT_EQ(answers[i].count, wanted[i]) << "query " << i;
}

TEST_P(EveryPath, CertificateHolds) {
    for (const auto& vector : vectors()) {
        const auto scores = oracle_scores(*model_, vector);
        const Query query{kernels::Cosine{vector_of(vector)}, 5, {}, {}};
        const Answer answer = engine_->run(std::span(&query, 1))[0];
        EXPECT_EQ(answer.certificate.scanned, model_->rows());
        const auto above = static_cast<std::uint64_t>(std::count_if(
            scores.begin(), scores.end(), [&](double score) { return score >= answer.certificate.rejected_below; }));
        EXPECT_GE(answer.certificate.rescored, std::max<std::uint64_t>(above, 5));
        EXPECT_LE(answer.certificate.rejected_below, answer.hits.back().score);
    }
}

std::string path_name(const testing::TestParamInfo<EveryPath::ParamType>& info) {
    const auto& [simd, threads, shape] = info.param;
    return simd + "_" + std::to_string(threads) + "threads_" + std::to_string(shape.rows) + "x" +
           std::to_string(shape.dim);
}

INSTANTIATE_TEST_SUITE_P(Cpu, EveryPath,
                         testing::Combine(testing::ValuesIn(kernels::simd_names()), testing::Values(1U, 3U),
                                          testing::Values(Shape{16, 1}, Shape{97, 7}, Shape{1003, 50}, Shape{700, 100},
                                                          Shape{333, 300}, Shape{64, 1025})),
                         path_name);

TEST(Engines, RefuseWhatIsNotThere) {
    const TempDir dir;
    const auto model = make_model(dir / "model", random_entries(3, 2, 1));
    EXPECT_EQ(kernels::make_engine("cuda", model, {}).error().code, ErrorCode::unavailable);
    EXPECT_EQ(kernels::make_engine("gpu", model, {}).error().code, ErrorCode::unavailable);
    EXPECT_EQ(kernels::make_engine("cpu", model, {1, "avx1024"}).error().code, ErrorCode::unavailable);
    auto chosen = kernels::make_engine("auto", model, {1, ""});
    ASSERT_TRUE(chosen);
    EXPECT_EQ((*chosen)->name(), "cpu");
}

TEST(QueryVectors, RefuseZeroAndInfinity) {
    EXPECT_EQ(kernels::make_query_vector({0.0F, -0.0F}).error().code, ErrorCode::zero_vector);
    EXPECT_EQ(kernels::make_query_vector({1.0F, std::numeric_limits<float>::infinity()}).error().code,
              ErrorCode::bad_request);
    EXPECT_EQ(kernels::make_query_vector({std::numeric_limits<float>::quiet_NaN()}).error().code,
              ErrorCode::bad_request);
}

TEST(QueryVectors, EqualTheOracleRawAndUnit) {
    const TempDir dir;
    const auto model = make_model(dir / "model", awkward_entries(32, 50, 5));
    const std::vector<kernels::WeightedRow> terms = {{1.0, 3}, {-2.5, 8}, {1e-3, 21}, {0.1, 5}};
    const Weights weights = {{1.0, 3}, {-2.5, 8}, {1e-3, 21}, {0.1, 5}};
    for (const bool unit : {false, true}) {
        const auto vector = kernels::make_query_vector(model, terms, unit);
        ASSERT_TRUE(vector);
        EXPECT_EQ(vector->values, oracle_query(model, weights, unit));
    }
}

}  // namespace
}  // namespace gloved::tests
