// What every engine must answer: typed cases against the float64 oracle, to be instantiated for
// each way to run one.
//
//     INSTANTIATE_TEST_SUITE_P(Cpu, EveryPath, testing::ValuesIn(paths_and_shapes), path_name);
//     INSTANTIATE_TEST_SUITE_P(Cpu, ManyTies, testing::ValuesIn(paths), path_name);
//
// Words, order and the bits of every score are compared. To be included by one file of a test
// program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "kernels/query_vector.hpp"
#include "tests/support/engine_answers.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {

struct Shape {
    std::size_t rows = 0;
    std::size_t dim = 0;
};

/// One way to run an engine, on a model of one shape.
struct EnginePath {
    std::string name;  ///< part of the test's name: letters, digits, '_'
    /// Makes the engine: sets those of the options that choose this way.
    std::function<std::unique_ptr<Engine>(const format::Model& model, kernels::EngineOptions)> make;
    std::function<void()> after;                 ///< called when the engine is gone; may be empty
    Shape shape = {};                            ///< ManyTies has shapes of its own
    std::function<std::string()> why_skip = {};  ///< asked before each test: a reason to leave it
                                                 ///< out, or nothing
};

inline void PrintTo(const EnginePath& path, std::ostream* out) {
    *out << path.name;
    if (path.shape.rows != 0) *out << " on " << path.shape.rows << " x " << path.shape.dim;
}

inline std::string path_name(const testing::TestParamInfo<EnginePath>& info) {
    const std::string& name = info.param.name;
    const Shape& shape = info.param.shape;
    return shape.rows == 0
               ? name
               : name + "_" + std::to_string(shape.rows) + "x" + std::to_string(shape.dim);
}

inline std::string why_skip(const EnginePath& path) {
    return path.why_skip ? path.why_skip() : std::string();
}

/// Every path on every shape.
inline std::vector<EnginePath> on_shapes(const std::vector<EnginePath>& paths,
                                         const std::vector<Shape>& shapes) {
    std::vector<EnginePath> all;
    for (EnginePath path : paths) {
        for (const Shape& shape : shapes) {
            path.shape = shape;
            all.push_back(path);
        }
    }
    return all;
}

/// Rows that are hard to rank: duplicates, near-duplicates, opposites, zeros, tiny and huge norms,
/// one-hot, constant.
inline std::vector<Entry> awkward_entries(std::size_t rows, std::size_t dim, std::uint64_t seed) {
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
        entries[i + 8].second.assign(dim, -0.0F);
        entries[i + 8].second[i % dim] = 1.0F;
        entries[i + 9].second.assign(dim, 0.25F);
        entries[i + 10].second = base;
        for (float& value : entries[i + 10].second) value *= 1e-20F;
    }
    return entries;
}

/// Filters of every kind, with their names.
inline std::vector<std::pair<std::string, kernels::Filter>> filters_for(Row rows) {
    std::vector<std::pair<std::string, kernels::Filter>> filters(10);
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
    filters[5].second = {rows - rows / 5, kernels::RowRange{rows > 1, rows}, -0.05};
    filters[6].first = "no rank at all";
    filters[6].second.rank_below = 0;
    filters[7].first = "the first rank alone";
    filters[7].second.rank_below = 1;
    filters[8].first = "one row";
    filters[8].second.rows = kernels::RowRange{rows / 2, rows / 2 + 1};
    filters[9].first = "a score that no row has";
    filters[9].second.min_score = 1.5;
    return filters;
}

/// Lists of a model: of no row, of one, of few, of a third, of all, and of about half at random.
inline Lists lists_for(Row rows) {
    std::mt19937_64 random(rows);
    Lists lists(6);
    for (Row row = 0; row < rows; ++row) {
        if (row == rows / 2) lists[1].push_back(row);
        if (row % 97 == 0) lists[2].push_back(row);
        if (row % 3 == 1) lists[3].push_back(row);
        lists[4].push_back(row);
        if (random() % 2 == 0) lists[5].push_back(row);
    }
    return lists;
}

/// Filters that name these lists, alone and with all others, with their names.
inline std::vector<std::pair<std::string, kernels::Filter>> list_filters(Row rows) {
    const auto named = [](kernels::ListMask within, kernels::ListMask without) {
        kernels::Filter filter;
        filter.within = within;
        filter.without = without;
        return filter;
    };
    std::vector<std::pair<std::string, kernels::Filter>> filters = {
        {"within no row", named(1, 0)},
        {"within one row", named(2, 0)},
        {"within few rows", named(4, 0)},
        {"within a third", named(8, 0)},
        {"within all rows", named(16, 0)},
        {"within two", named(8 | 32, 0)},
        {"within few and half", named(4 | 32, 0)},
        {"without few", named(0, 4)},
        {"without a third and half", named(0, 8 | 32)},
        {"without all rows", named(0, 16)},
        {"within half, without a third", named(32, 8)},
        {"within and without a third", named(8, 8)},
        {"within few, and more", named(4, 2)},
        {"within half, and more", named(32, 4)},
    };
    for (std::size_t i = filters.size() - 2; i < filters.size(); ++i) {
        filters[i].second.rank_below = rows - rows / 5;
        filters[i].second.rows = kernels::RowRange{rows > 1, rows};
        filters[i].second.min_score = -0.05;
    }
    return filters;
}

class EveryPath : public testing::TestWithParam<EnginePath> {
  protected:
    void SetUp() override {
        if (const std::string reason = why_skip(GetParam()); !reason.empty())
            GTEST_SKIP() << reason;
        const Shape& shape = GetParam().shape;
        model_ = std::make_unique<format::Model>(make_model(
            dir_ / "model", awkward_entries(shape.rows, shape.dim, shape.rows * 31 + shape.dim)));
        lists_ = lists_for(rows());
        kernels::EngineOptions options;
        options.lists = std::make_shared<const kernels::RowLists>(model_->rows(), lists_);
        engine_ = GetParam().make(*model_, options);
    }

    void TearDown() override {
        engine_.reset();
        if (GetParam().after) GetParam().after();
    }

    Row rows() const { return static_cast<Row>(model_->rows()); }

    /// Query vectors of many kinds: rows themselves, random ones, near-zero and huge ones.
    std::vector<std::vector<float>> vectors() const {
        std::mt19937_64 random(7);
        std::normal_distribution<float> component;
        std::vector<std::vector<float>> list;
        for (std::size_t row = 0; row < model_->rows() && list.size() < 40;
             row += 1 + model_->rows() / 40) {
            if (model_->norms()[row] != 0)
                list.emplace_back(model_->vector(row).begin(), model_->vector(row).end());
        }
        for (const float scale : {1.0F, 1e-38F, 1e37F}) {
            std::vector<float> vector(model_->dim());
            for (float& value : vector) value = component(random) * scale;
            list.push_back(vector);
        }
        return list;
    }

    TempDir dir_;
    /// Filters of every kind, those of lists too.
    std::vector<std::pair<std::string, kernels::Filter>> filters() const {
        auto filters = filters_for(rows());
        for (auto& filter : list_filters(rows())) filters.push_back(std::move(filter));
        return filters;
    }

    /// What the oracle answers.
    std::vector<Hit> wanted_hits(const Query& query, std::span<const double> scores) const {
        return oracle_answer(*model_, query, scores, lists_);
    }
    std::uint64_t wanted_count(const Query& query, Row row, std::span<const double> scores) const {
        return oracle_count(*model_, query, row, scores, lists_);
    }
    std::uint64_t wanted_count_from(const Query& query, double score,
                                    std::span<const double> scores) const {
        return oracle_count_from(*model_, query, score, scores, lists_);
    }

    std::unique_ptr<format::Model> model_;
    Lists lists_;
    std::unique_ptr<Engine> engine_;
};

TEST_P(EveryPath, CosineEqualsTheOracleForEveryK) {
    for (const auto& vector : vectors()) {
        const auto order = oracle_top(oracle_scores(*model_, vector), model_->rows(), everyone);
        for (const std::size_t k :
             {std::size_t{1}, std::size_t{10}, model_->rows() / 2 + 1, model_->rows(),
              model_->rows() + 5, std::size_t{1023}, std::size_t{1024}, std::size_t{1025}}) {
            const Query query{kernels::Cosine{vector_of(vector)}, k, {}, {}};
            expect_identical(run_one(*engine_, query).hits, first_of(order, k),
                             "k=" + std::to_string(k));
        }
    }
}

TEST_P(EveryPath, BatchesEqualSingleQueries) {
    const auto list = vectors();
    std::vector<std::vector<double>> scores;
    for (const auto& vector : list) scores.push_back(oracle_scores(*model_, vector));
    std::vector<Query> queries;
    for (std::size_t i = 0; i < 300; ++i) {
        const auto& vector = list[i % list.size()];
        queries.push_back({kernels::Cosine{vector_of(vector)},
                           1 + i % 23,
                           {static_cast<Row>(i % model_->rows())},
                           {}});
    }
    for (const std::size_t size : {1U, 2U, 5U, 17U, 33U, 64U, 129U, 300U}) {
        const auto answers = run_all(*engine_, std::span(queries).first(size));
        for (std::size_t i = 0; i < size; ++i) {
            expect_identical(answers[i].hits, wanted_hits(queries[i], scores[i % list.size()]),
                             "query " + std::to_string(i) + " of " + std::to_string(size));
        }
    }
}

/// Queries of which an engine knows that they are rows of its own, alone and beside others.
TEST_P(EveryPath, RowsAskedByThemselvesEqualTheOracle) {
    const auto list = vectors();
    std::vector<Query> queries;
    for (Row i = 0; i < 300; ++i) {
        const kernels::WeightedRow term{1, i * 7 % rows()};
        Query query{kernels::Cosine{vector_of(list[i % list.size()])}, 1 + i % 23, {}, {}};
        if (i % 3 != 2 && model_->norms()[term.row] != 0) {
            query.kind = kernels::Cosine{*kernels::make_query_vector(*model_, {&term, 1}, false)};
            query.excluded = {term.row};
        }
        queries.push_back(std::move(query));
    }
    for (const std::size_t size : {1U, 2U, 20U, 300U}) {
        const auto answers = run_all(*engine_, std::span(queries).first(size));
        for (std::size_t i = 0; i < size; ++i) {
            const auto& values = std::get<kernels::Cosine>(queries[i].kind).vector.values;
            expect_identical(answers[i].hits,
                             wanted_hits(queries[i], oracle_scores(*model_, values)),
                             "query " + std::to_string(i) + " of " + std::to_string(size));
        }
    }
}

TEST_P(EveryPath, FiltersAndExclusionsEqualTheOracle) {
    for (const auto& vector : vectors()) {
        const auto scores = oracle_scores(*model_, vector);
        std::vector<Query> queries;
        const auto filtered = filters();
        for (const auto& [name, filter] : filtered) {
            const std::vector<Row> excluded = {rows() / 2, 0, rows() - 1, rows() / 3};
            queries.push_back({kernels::Cosine{vector_of(vector)}, 25, excluded, filter});
            expect_identical(run_one(*engine_, queries.back()).hits,
                             wanted_hits(queries.back(), scores), name);
        }
        const auto answers = run_all(*engine_, queries);
        for (std::size_t i = 0; i < queries.size(); ++i) {
            expect_identical(answers[i].hits, wanted_hits(queries[i], scores),
                             filtered[i].first + ", with others");
        }
    }
}

/// Batches in which many queries share a filter. What an engine does for the first of the filters
/// alone, it does for all in one of the two orders.
TEST_P(EveryPath, BatchesThatShareFiltersEqualTheOracle) {
    const auto list = vectors();
    std::vector<std::vector<double>> scores;
    for (const auto& vector : list) scores.push_back(oracle_scores(*model_, vector));
    auto filtered = filters();
    // Few that share a filter, and so many that an engine may prepare each filter.
    for (const std::size_t sharing : {std::size_t{5}, std::size_t{40}}) {
        std::vector<Query> queries;
        for (std::size_t i = 0; i < sharing * filtered.size(); ++i) {
            queries.push_back({kernels::Cosine{vector_of(list[i % list.size()])},
                               1 + i % 11,
                               {static_cast<Row>(i % model_->rows())},
                               filtered[i / sharing].second});
        }
        const auto answers = run_all(*engine_, queries);
        for (std::size_t i = 0; i < queries.size(); ++i) {
            expect_identical(answers[i].hits, wanted_hits(queries[i], scores[i % list.size()]),
                             "query " + std::to_string(i) + ", " + filtered[i / sharing].first);
        }
        std::ranges::reverse(filtered);
    }
}

/// Filters that leave so few rows that an engine may score all of them.
TEST_P(EveryPath, FewRowsEqualTheOracle) {
    const auto vector = vectors().back();
    const auto scores = oracle_scores(*model_, vector);
    const auto few = static_cast<Row>(rows() / 8);
    std::vector<Query> queries;
    for (const std::size_t k : {std::size_t{1}, std::size_t{10}, std::size_t{128}}) {
        Query query{kernels::Cosine{vector_of(vector)}, k, {few, 3, few / 2, 3}, {}};
        for (const std::uint32_t below : {1U, few / 3, few}) {
            query.filter.rank_below = below;
            queries.push_back(query);
            query.filter.rows = kernels::RowRange{few / 2, rows()};
            queries.push_back(query);
            query.filter.min_score = 0.1;
            queries.push_back(query);
            query.filter = {};
        }
        for (const auto& [name, filter] : list_filters(rows())) {
            query.filter = filter;
            queries.push_back(query);
        }
        query.filter = {};
        query.filter.rows = kernels::RowRange{few, few + few};
        queries.push_back(query);
        query.filter.rank_below = rows() / 2;
        queries.push_back(query);
    }
    const auto answers = run_all(*engine_, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto wanted = wanted_hits(queries[i], scores);
        expect_identical(answers[i].hits, wanted, std::to_string(i) + ", with others");
        expect_identical(run_one(*engine_, queries[i]).hits, wanted, std::to_string(i));
    }
}

TEST_P(EveryPath, ManyExclusionsEqualTheOracle) {
    const auto vector = vectors().back();
    const auto scores = oracle_scores(*model_, vector);
    const auto order = oracle_top(scores, model_->rows(), everyone);
    // The best rows are those that are left out, so that nothing but the list can keep them out.
    for (const std::size_t count :
         {std::size_t{900}, std::size_t{1014}, std::size_t{1015}, std::size_t{2038},
          std::size_t{2039}, model_->rows() - 1, model_->rows()}) {
        Query query{kernels::Cosine{vector_of(vector)}, 10, {}, {}};
        for (const Hit& hit : first_of(order, count)) query.excluded.push_back(hit.row);
        expect_identical(run_one(*engine_, query).hits, wanted_hits(query, scores),
                         std::to_string(count) + " excluded");
        // Naming a row twice says nothing more.
        const auto copy = query.excluded;
        query.excluded.insert(query.excluded.end(), copy.rbegin(), copy.rend());
        expect_identical(run_one(*engine_, query).hits, wanted_hits(query, scores),
                         std::to_string(count) + " excluded twice");
    }
}

TEST_P(EveryPath, CosMulEqualsTheOracle) {
    const auto list = vectors();
    const auto at = [&](std::size_t i) { return list[i % list.size()]; };
    for (std::size_t i = 0; i < list.size(); i += 3) {
        for (const auto& [above, below] :
             {std::pair{1U, 1U}, {2U, 1U}, {1U, 2U}, {3U, 4U}, {1U, 0U}, {0U, 1U}}) {
            kernels::CosMul kind;
            std::vector<std::vector<float>> positives;
            std::vector<std::vector<float>> negatives;
            for (std::size_t j = 0; j < above; ++j) positives.push_back(at(i + j));
            for (std::size_t j = 0; j < below; ++j) negatives.push_back(at(i + above + j));
            for (const auto& vector : positives) kind.positives.push_back(vector_of(vector));
            for (const auto& vector : negatives) kind.negatives.push_back(vector_of(vector));
            const auto scores = oracle_cosmul(*model_, positives, negatives);
            const auto what = std::to_string(above) + "+" + std::to_string(below);
            // Beside a cosine query, so that lanes of different kinds share a pass.
            const std::vector<Query> queries = {
                {kind, 10, {}, {}},
                {kernels::Cosine{vector_of(list[i])}, 3, {}, {}},
                {kind, model_->rows(), {}, {}},
                {kind, 7, {rows() / 2, 0}, {rows() / 2 + 1, std::nullopt, 0.2}},
                {kind, 7, {rows() / 2}, {rows(), kernels::RowRange{rows() / 3, rows()}, 0.2}}};
            const auto answers = run_all(*engine_, queries);
            for (const std::size_t q : {0U, 2U, 3U, 4U}) {
                expect_identical(answers[q].hits, wanted_hits(queries[q], scores),
                                 "cosmul " + what + ", query " + std::to_string(q));
            }
            expect_identical(answers[1].hits,
                             wanted_hits(queries[1], oracle_scores(*model_, list[i])),
                             "cosine beside " + what);
        }
    }
}

TEST_P(EveryPath, CosMulOfManyVectorsEqualsTheOracle) {
    const auto list = vectors();
    kernels::CosMul kind;
    std::vector<std::vector<float>> positives;
    std::vector<std::vector<float>> negatives;
    for (std::size_t i = 0; i < 150; ++i) {
        positives.push_back(list[i % list.size()]);
        kind.positives.push_back(vector_of(positives.back()));
        negatives.push_back(list[i * 7 % list.size()]);
        kind.negatives.push_back(vector_of(negatives.back()));
    }
    const Query query{kind, 20, {}, {}};
    expect_identical(run_one(*engine_, query).hits,
                     wanted_hits(query, oracle_cosmul(*model_, positives, negatives)),
                     "150 vectors a side");
}

TEST_P(EveryPath, CountBeforeEqualsTheOracle) {
    const auto list = vectors();
    const auto filtered = filters();
    std::vector<Query> queries;
    std::vector<std::uint64_t> wanted;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto row = static_cast<Row>(i * 7 % model_->rows());
        const Row excluded = static_cast<Row>(i % model_->rows());
        const auto scores = oracle_scores(*model_, list[i]);
        queries.push_back({kernels::CountBefore{vector_of(list[i]), row}, 1, {excluded}, {}});
        wanted.push_back(wanted_count(queries.back(), row, scores));
        queries.push_back({kernels::CountBefore{vector_of(list[i]), row},
                           1,
                           {},
                           filtered[i % filtered.size()].second});
        wanted.push_back(wanted_count(queries.back(), row, scores));
        // A row's own score counts that row too, row 0 not less than others.
        const auto at = i % 3 == 0 ? Row{0} : row;
        for (const double score : {scores[at], 1.5, -1.5}) {
            queries.push_back({kernels::CountBefore{vector_of(list[i]), 0, score},
                               1,
                               {excluded},
                               filtered[i % filtered.size()].second});
            wanted.push_back(wanted_count_from(queries.back(), score, scores));
        }
    }
    // More excluded rows than a device's list holds, and a k that would be too large for one if it
    // meant anything.
    const Row middle = rows() / 2;
    for (const std::size_t k : {std::size_t{1}, std::size_t{5000}}) {
        for (const auto& vector : {list[0], list.back()}) {
            Query query{kernels::CountBefore{vector_of(vector), middle}, k, {}, {}};
            queries.push_back(query);
            wanted.push_back(wanted_count(query, middle, oracle_scores(*model_, vector)));
            for (Row row = 0; row < rows(); ++row) {
                if (row % 10 != 1 && row != middle) query.excluded.push_back(row);
            }
            queries.push_back(query);
            wanted.push_back(wanted_count(query, middle, oracle_scores(*model_, vector)));
        }
    }
    const auto answers = run_all(*engine_, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) {
        EXPECT_EQ(answers[i].count, wanted[i]) << "query " << i;
        EXPECT_TRUE(answers[i].hits.empty());
    }
}

/// Every kind, filter and size in one batch: nothing of one query may reach another's answer.
TEST_P(EveryPath, MixedBatchesEqualSingleQueries) {
    const auto list = vectors();
    const auto filtered = filters();
    std::mt19937_64 random(11);
    std::vector<Query> queries;
    for (std::size_t i = 0; i < 150; ++i) {
        const auto pick = [&] { return vector_of(list[random() % list.size()]); };
        Query query;
        if (i % 11 == 3) {
            query.kind = kernels::CosMul{{pick(), pick()}, {pick()}};
        } else if (i % 11 == 7) {
            query.kind = kernels::CountBefore{pick(), static_cast<Row>(random() % rows())};
        } else {
            query.kind = kernels::Cosine{pick()};
        }
        query.k = i % 29 == 5 ? 1100 : 1 + random() % 40;
        for (std::size_t j = random() % 4; j > 0; --j)
            query.excluded.push_back(static_cast<Row>(random() % rows()));
        if (i % 3 == 0) query.filter = filtered[random() % filtered.size()].second;
        queries.push_back(query);
    }
    const auto together = run_all(*engine_, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const Answer alone = run_one(*engine_, queries[i]);
        expect_identical(together[i].hits, alone.hits, "query " + std::to_string(i));
        EXPECT_EQ(together[i].count, alone.count) << "query " << i;
        if (const auto* cosine = std::get_if<kernels::Cosine>(&queries[i].kind)) {
            expect_identical(alone.hits,
                             wanted_hits(queries[i], oracle_scores(*model_, cosine->vector.values)),
                             "query " + std::to_string(i));
        }
    }
    EXPECT_TRUE(run_all(*engine_, {}).empty());
}

TEST_P(EveryPath, CertificateHolds) {
    const auto check = [&](const Query& query, const Answer& answer,
                           const std::vector<double>& scores) {
        const kernels::Certificate& certificate = answer.certificate;
        EXPECT_EQ(certificate.scanned, model_->rows());
        const auto above = static_cast<std::uint64_t>(
            std::count_if(scores.begin(), scores.end(),
                          [&](double score) { return score >= certificate.rejected_below; }));
        EXPECT_GE(certificate.rescored,
                  std::max<std::uint64_t>(above, std::min<std::uint64_t>(query.k, rows())));
        EXPECT_LE(certificate.rescored, rows());
        if (certificate.pass == Pass::plane || certificate.pass == Pass::int8) {
            EXPECT_GE(certificate.survivors, certificate.rescored);
            EXPECT_LE(certificate.survivors, rows());
        }
        EXPECT_LE(certificate.rejected_below, answer.hits.back().score);
    };
    std::vector<Query> queries;
    std::vector<std::vector<double>> scores;
    for (const auto& vector : vectors()) {
        queries.push_back({kernels::Cosine{vector_of(vector)}, 5, {}, {}});
        scores.push_back(oracle_scores(*model_, vector));
        check(queries.back(), run_one(*engine_, queries.back()), scores.back());
    }
    const auto answers = run_all(*engine_, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) check(queries[i], answers[i], scores[i]);
}

/// Models where a great many rows tie: more than an engine's lists of candidates may hold.
class ManyTies : public testing::TestWithParam<EnginePath> {
  protected:
    static constexpr std::size_t kRows = 20000;
    static constexpr std::size_t kDim = 6;

    void SetUp() override {
        if (const std::string reason = why_skip(GetParam()); !reason.empty())
            GTEST_SKIP() << reason;
    }

    /// Every kind of query on a model of `vector_of_row`, against the oracle.
    void expect_answers(const std::function<std::vector<float>(std::size_t)>& vector_of_row) {
        const TempDir dir;
        std::vector<Entry> entries;
        for (std::size_t i = 0; i < kRows; ++i)
            entries.emplace_back("w" + std::to_string(i), vector_of_row(i));
        const format::Model model = make_model(dir / "model", entries);
        auto engine = GetParam().make(model, {});

        const std::vector<float> asked = {1, -2, 0.5F, 3, 0.25F, -0.125F};
        const std::vector<float> other = {-1, 1, 2, 0.5F, -3, 1};
        const auto scores = oracle_scores(model, asked);
        const auto products = oracle_cosmul(model, {asked}, {other});
        const kernels::Cosine cosine{vector_of(asked)};
        const kernels::CosMul product{{vector_of(asked)}, {vector_of(other)}};
        std::vector<Row> even;
        for (Row row = 0; row < 3000; row += 2) even.push_back(row);
        const kernels::Filter some{kRows / 2, kernels::RowRange{5, kRows - 100}, -1};
        std::vector<Query> queries;
        for (const std::size_t k :
             {std::size_t{1}, std::size_t{10}, std::size_t{1024}, std::size_t{1025}, kRows}) {
            queries.push_back({cosine, k, {}, {}});
        }
        queries.push_back({cosine, 10, {0, 3, 7}, {}});
        queries.push_back({cosine, 10, even, {}});
        queries.push_back({cosine, 10, {0, 9}, some});
        queries.push_back({cosine, 10, {}, {kRows, std::nullopt, scores[0]}});
        const std::size_t cosines = queries.size();
        queries.push_back({product, 10, {}, {}});
        queries.push_back({product, 10, even, some});
        const std::size_t products_end = queries.size();
        const Row target = 12345;
        queries.push_back({kernels::CountBefore{vector_of(asked), target}, 1, {}, {}});
        queries.push_back({kernels::CountBefore{vector_of(asked), target}, 1, {1, 2}, some});

        const auto together = run_all(*engine, queries);
        for (std::size_t i = 0; i < queries.size(); ++i) {
            const auto what = "query " + std::to_string(i);
            const Answer alone = run_one(*engine, queries[i]);
            if (i < products_end) {
                const auto wanted =
                    oracle_answer(model, queries[i], i < cosines ? scores : products);
                expect_identical(alone.hits, wanted, what);
                expect_identical(together[i].hits, wanted, what + " with others");
            } else {
                const auto wanted = oracle_count(model, queries[i], target, scores);
                EXPECT_EQ(alone.count, wanted) << what;
                EXPECT_EQ(together[i].count, wanted) << what << " with others";
            }
        }
        engine.reset();
        if (GetParam().after) GetParam().after();
    }
};

TEST_P(ManyTies, AllRowsIdentical) {
    expect_answers([](std::size_t) { return std::vector<float>{0.5F, 1, -1, 2, 0.25F, 3}; });
}

TEST_P(ManyTies, AllRowsZero) {
    expect_answers([](std::size_t) { return std::vector<float>(kDim, 0.0F); });
}

TEST_P(ManyTies, NoNormCovered) {
    expect_answers(
        [](std::size_t i) { return std::vector<float>(kDim, i % 2 == 0 ? 1e-40F : 3e38F); });
}

TEST_P(ManyTies, ZerosAmongOpposites) {
    expect_answers([](std::size_t i) {
        const float sign = static_cast<float>(i % 3) - 1;
        return std::vector<float>{sign, 2 * sign, 0, sign, -sign, 0};
    });
}

/// 8192 rows tie for the first place: as many as the cuda engine's lists hold; and one more.
TEST_P(ManyTies, AroundTheCapacityOfLists) {
    for (const std::size_t ties : {std::size_t{8192}, std::size_t{8193}}) {
        std::mt19937_64 random(5);
        std::normal_distribution<float> component;
        expect_answers([&](std::size_t i) {
            if (i % 2 == 0 && i / 2 < ties)
                return std::vector<float>{1, -2, 0.5F, 3, 0.25F, -0.125F};
            std::vector<float> vector(kDim);
            for (float& value : vector) value = component(random);
            return vector;
        });
    }
}

/// Models with rows that hold NaN, though their norms are numbers: gloved-verify finds them. Such a
/// row is in no answer, and what it does to one query must not reach the next.
class DamagedRows : public testing::TestWithParam<EnginePath> {
  protected:
    void SetUp() override {
        if (const std::string reason = why_skip(GetParam()); !reason.empty())
            GTEST_SKIP() << reason;
    }
};

TEST_P(DamagedRows, LeaveNothingBehindForTheNextQuery) {
    constexpr Row kRows = 6000;
    constexpr Row kSound = 2000;  // rows below it are
    constexpr std::size_t kDim = 8;
    const TempDir dir;
    auto entries = random_entries(kRows, kDim, 21);
    std::vector<std::uint32_t> damaged;
    for (Row row = 0; row < kRows; ++row) {
        entries[row].first = std::to_string(100'000 + row);  // keys in order: the model's rows are
                                                             // these
        if (row >= kSound && row % 1000 != 0) damaged.push_back(row);
    }
    make_model(dir / "model", entries);
    const format::Model model = damage_rows(dir / "model", damaged);
    auto engine = GetParam().make(model, {});

    const kernels::RowRange sound{0, kSound};
    const kernels::RowRange mostly_damaged{kSound, kRows};
    for (Row row = 1; row < 20; ++row) {
        const auto& vector = entries[row].second;
        const auto scores = oracle_scores(model, vector);
        // A threshold of 1, and then a query for which few rows have a score at all.
        for (const auto& [rows, k] : {std::pair{sound, std::size_t{1}},
                                      {mostly_damaged, std::size_t{3}},
                                      {sound, std::size_t{1}},
                                      {mostly_damaged, std::size_t{5}},
                                      {mostly_damaged, std::size_t{1}},
                                      {{0, kRows}, std::size_t{3}}}) {
            Query query{kernels::Cosine{vector_of(vector)}, k, {}, {}};
            query.filter.rows = rows;
            expect_identical(run_one(*engine, query).hits, oracle_answer(model, query, scores),
                             "row " + std::to_string(row) + ", k=" + std::to_string(k));
        }
    }
    std::vector<Query> queries;
    for (Row row = 0; row < 40; ++row) {
        queries.push_back({kernels::Cosine{vector_of(entries[row].second)}, 1 + row % 3, {}, {}});
        // The sound rows that come first, left out: what is left are damaged ones, and few others.
        for (Row other = 0; row % 2 == 1 && other < 100; ++other)
            queries.back().excluded.push_back(other);
    }
    const auto answers = run_all(*engine, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto& values = std::get<kernels::Cosine>(queries[i].kind).vector.values;
        expect_identical(answers[i].hits,
                         oracle_answer(model, queries[i], oracle_scores(model, values)),
                         "query " + std::to_string(i) + " of many");
    }
    engine.reset();
    if (GetParam().after) GetParam().after();
}

/// What a damaged row was: codes of its other components are as near as can be, and must not count
/// for a threshold.
TEST_P(DamagedRows, MakeNoThresholdForWhatTheyWere) {
    constexpr Row kRows = 3000;
    constexpr std::size_t kDim = 20;
    const TempDir dir;
    auto entries = random_entries(kRows, kDim, 22);
    for (Row row = 0; row < kRows; ++row) entries[row].first = std::to_string(100'000 + row);
    const std::vector<std::uint32_t> damaged = {500, 1717};
    // A row whose code is longer than all others.
    for (float& value : entries[damaged[1]].second) value = value < 0 ? -0.4F : 0.4F;
    make_model(dir / "model", entries);
    const format::Model model = damage_rows(dir / "model", damaged);
    auto engine = GetParam().make(model, {});
    const std::vector<Query> queries(
        20, Query{kernels::Cosine{vector_of(entries[damaged[1]].second)}, 1, {}, {}});
    const auto wanted =
        oracle_answer(model, queries[0], oracle_scores(model, entries[damaged[1]].second));
    for (const std::size_t count : {std::size_t{1}, queries.size()}) {
        for (const Answer& answer : run_all(*engine, std::span(queries).first(count)))
            expect_identical(answer.hits, wanted, std::to_string(count) + " queries");
    }
    engine.reset();
    if (GetParam().after) GetParam().after();
}

}  // namespace gloved::tests
