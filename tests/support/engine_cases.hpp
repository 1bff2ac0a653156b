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
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>
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

/// Shapes that lead an engine the same way.
using ShapeKind = std::vector<Shape>;

/// Paths on shapes, as two parts of the product. In `chosen` each path has one shape of every kind,
/// in turn, so that each shape has a path if there are as many.
struct PathsOnKinds {
    std::vector<EnginePath> chosen;
    std::vector<EnginePath> rest;
};

inline PathsOnKinds on_kinds(const std::vector<EnginePath>& paths,
                             const std::vector<ShapeKind>& kinds) {
    PathsOnKinds pairs;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        for (const ShapeKind& kind : kinds) {
            auto all = on_shapes({paths[i]}, kind);
            for (std::size_t j = 0; j < all.size(); ++j)
                (j == i % all.size() ? pairs.chosen : pairs.rest).push_back(all[j]);
        }
    }
    return pairs;
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

/// Filters of every kind.
inline std::vector<kernels::Filter> filters_for(Row rows) {
    std::vector<kernels::Filter> filters(10);
    filters[0].rank_below = rows / 3 + 1;
    filters[1].rows = kernels::RowRange{rows / 4, rows / 2};
    filters[2].rows = kernels::RowRange{rows / 4, rows / 4};
    filters[3].min_score = 0.1;
    filters[4].min_score = 1.0;
    filters[5] = {rows - rows / 5, kernels::RowRange{rows > 1, rows}, -0.05};
    filters[6].rank_below = 0;
    filters[7].rank_below = 1;
    filters[8].rows = kernels::RowRange{rows / 2, rows / 2 + 1};
    filters[9].min_score = 1.5;  // a score that no row has
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

/// Filters that name these lists, alone and with all others.
inline std::vector<kernels::Filter> list_filters(Row rows, const kernels::RowLists& lists) {
    struct Masks {
        kernels::ListMask within;
        kernels::ListMask without;
    };
    std::vector<kernels::Filter> filters;
    for (const auto& [within, without] : {Masks{1, 0},
                                          {2, 0},
                                          {4, 0},
                                          {8, 0},
                                          {16, 0},
                                          {8 | 32, 0},
                                          {4 | 32, 0},
                                          {0, 4},
                                          {0, 8 | 32},
                                          {0, 16},
                                          {32, 8},
                                          {8, 8},
                                          {4, 2},
                                          {32, 4}}) {
        filters.emplace_back();
        filters.back().within = within;
        filters.back().without = without;
        filters.back().lists = &lists;
    }
    for (kernels::Filter& filter : std::span(filters).last(2)) {
        filter.rank_below = rows - rows / 5;
        filter.rows = kernels::RowRange{rows > 1, rows};
        filter.min_score = -0.05;
    }
    return filters;
}

/// A model that engines are asked about, with lists and the oracle.
struct AskedModel {
    explicit AskedModel(const std::vector<Entry>& entries,
                        std::span<const std::uint32_t> damaged = {})
        : model(made(dir / "model", entries, damaged)) {}

    const TempDir dir;
    const format::Model model;
    const Lists lists = lists_for(static_cast<Row>(model.rows()));
    const kernels::RowLists row_lists{model.rows(), lists};
    Oracle oracle{model, lists};

  private:
    static format::Model made(const std::string& directory, const std::vector<Entry>& entries,
                              std::span<const std::uint32_t> damaged) {
        format::Model model = make_model(directory, entries);
        return damaged.empty() ? std::move(model) : damage_rows(directory, damaged);
    }
};

/// The model of this name, which `make` makes when it is asked for first. It is there for the rest
/// of the process, since many paths are compared with the same answers.
inline AskedModel& asked_model(const std::string& name,
                               const std::function<std::unique_ptr<AskedModel>()>& make) {
    static std::map<std::string, std::unique_ptr<AskedModel>> models;
    std::unique_ptr<AskedModel>& model = models[name];
    if (!model) model = make();
    return *model;
}

/// A test with an engine, whose path may be one that this machine does not have.
class PathTest : public testing::TestWithParam<EnginePath> {
  protected:
    void SetUp() override {
        if (const std::string reason = why_skip(GetParam()); !reason.empty())
            GTEST_SKIP() << reason;
    }

    void TearDown() override {
        engine_.reset();
        if (GetParam().after) GetParam().after();
    }

    /// Makes the engine of this path on a model.
    void start(AskedModel& asked, const kernels::EngineOptions& options = {}) {
        asked_ = &asked;
        engine_.reset();
        engine_ = GetParam().make(asked.model, options);
    }

    const format::Model& model() const { return asked_->model; }
    Row rows() const { return static_cast<Row>(model().rows()); }
    Oracle& oracle() const { return asked_->oracle; }

    /// Asks these queries at once; the answers must be the oracle's.
    std::vector<Answer> ask(std::span<const Query> queries) {
        return expect_oracle(*engine_, oracle(), queries);
    }
    Answer ask(const Query& query) { return expect_oracle(*engine_, oracle(), query); }

    AskedModel* asked_ = nullptr;
    std::unique_ptr<Engine> engine_;
};

class EveryPath : public PathTest {
  protected:
    void SetUp() override {
        PathTest::SetUp();
        if (IsSkipped()) return;
        const auto [rows, dim] = GetParam().shape;
        AskedModel& asked =
            asked_model(std::to_string(rows) + "x" + std::to_string(dim), [rows = rows, dim = dim] {
                return std::make_unique<AskedModel>(awkward_entries(rows, dim, rows * 31 + dim));
            });
        kernels::EngineOptions options;
        options.lists = true;
        start(asked, options);
    }

    /// Query vectors of many kinds: rows themselves, random ones, near-zero and huge ones.
    std::vector<std::vector<float>> vectors() const {
        std::mt19937_64 random(7);
        std::normal_distribution<float> component;
        std::vector<std::vector<float>> list;
        for (Row row = 0; row < rows() && list.size() < 40; row += 1 + rows() / 40) {
            if (model().norms()[row] != 0)
                list.emplace_back(model().vector(row).begin(), model().vector(row).end());
        }
        for (const float scale : {1.0F, 1e-38F, 1e37F}) {
            std::vector<float> vector(model().dim());
            for (float& value : vector) value = component(random) * scale;
            list.push_back(vector);
        }
        return list;
    }

    /// Filters of every kind, those of lists too.
    std::vector<kernels::Filter> filters() const {
        auto filters = filters_for(rows());
        std::ranges::copy(list_filters(rows(), asked_->row_lists), std::back_inserter(filters));
        return filters;
    }
};

TEST_P(EveryPath, CosineEqualsTheOracleForEveryK) {
    for (const auto& vector : vectors()) {
        for (const std::size_t k :
             {std::size_t{1}, std::size_t{10}, model().rows() / 2 + 1, model().rows(),
              model().rows() + 5, std::size_t{1023}, std::size_t{1024}, std::size_t{1025}}) {
            ask({kernels::Cosine{vector_of(vector)}, k, {}, {}});
        }
    }
}

TEST_P(EveryPath, BatchesEqualSingleQueries) {
    const auto list = vectors();
    std::vector<Query> queries;
    for (Row i = 0; i < 300; ++i) {
        queries.push_back(
            {kernels::Cosine{vector_of(list[i % list.size()])}, 1 + i % 23, {i % rows()}, {}});
    }
    for (const std::size_t size : {1U, 2U, 5U, 17U, 33U, 64U, 129U, 300U})
        ask(std::span(queries).first(size));
}

/// Queries of which an engine knows that they are rows of its own, alone and beside others.
TEST_P(EveryPath, RowsAskedByThemselvesEqualTheOracle) {
    const auto list = vectors();
    std::vector<Query> queries;
    for (Row i = 0; i < 300; ++i) {
        const kernels::WeightedRow term{1, i * 7 % rows()};
        Query query{kernels::Cosine{vector_of(list[i % list.size()])}, 1 + i % 23, {}, {}};
        if (i % 3 != 2 && model().norms()[term.row] != 0) {
            query.kind = kernels::Cosine{*kernels::make_query_vector(model(), {&term, 1}, false)};
            query.excluded = {term.row};
        }
        queries.push_back(std::move(query));
    }
    for (const std::size_t size : {1U, 2U, 20U, 300U}) ask(std::span(queries).first(size));
}

TEST_P(EveryPath, FiltersAndExclusionsEqualTheOracle) {
    for (const auto& vector : vectors()) {
        std::vector<Query> queries;
        for (const kernels::Filter& filter : filters()) {
            const std::vector<Row> excluded = {rows() / 2, 0, rows() - 1, rows() / 3};
            queries.push_back({kernels::Cosine{vector_of(vector)}, 25, excluded, filter});
            ask(queries.back());
        }
        ask(queries);
    }
}

/// Batches in which many queries share a filter. What an engine does for the first of the filters
/// alone, it does for all in one of the two orders.
TEST_P(EveryPath, BatchesThatShareFiltersEqualTheOracle) {
    const auto list = vectors();
    auto filtered = filters();
    // Few that share a filter, and so many that an engine may prepare each filter.
    for (const std::size_t sharing : {std::size_t{5}, std::size_t{40}}) {
        std::vector<Query> queries;
        for (std::size_t i = 0; i < sharing * filtered.size(); ++i) {
            queries.push_back({kernels::Cosine{vector_of(list[i % list.size()])},
                               1 + i % 11,
                               {static_cast<Row>(i % rows())},
                               filtered[i / sharing]});
        }
        ask(queries);
        std::ranges::reverse(filtered);
    }
}

/// Filters that leave so few rows that an engine may score all of them.
TEST_P(EveryPath, FewRowsEqualTheOracle) {
    const auto vector = vectors().back();
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
        for (const kernels::Filter& filter : list_filters(rows(), asked_->row_lists)) {
            query.filter = filter;
            queries.push_back(query);
        }
        query.filter = {};
        query.filter.rows = kernels::RowRange{few, few + few};
        queries.push_back(query);
        query.filter.rank_below = rows() / 2;
        queries.push_back(query);
    }
    ask(queries);
    for (const Query& query : queries) ask(query);
}

/// Lists that were replaced a moment ago: queries of one batch name the old ones and the new ones.
TEST_P(EveryPath, QueriesFindTheListsThatTheyName) {
    Lists others = asked_->lists;
    std::ranges::rotate(others, others.begin() + 2);
    const kernels::RowLists replaced(model().rows(), others);
    Oracle after(model(), others);
    const auto vector = vectors().back();
    std::vector<Query> queries;
    for (const kernels::RowLists* lists : {&asked_->row_lists, &replaced}) {
        for (const kernels::Filter& filter : list_filters(rows(), *lists)) {
            queries.push_back({kernels::Cosine{vector_of(vector)}, 10, {3}, filter});
            queries.push_back(
                {kernels::CountBefore{vector_of(vector), rows() / 3}, 10, {}, filter});
        }
    }
    queries.push_back({kernels::Cosine{vector_of(vector)}, 10, {}, {}});
    std::ranges::shuffle(queries, std::mt19937(5));
    const auto expect = [&](std::span<const Query> asked) {
        const auto answers = run_all(*engine_, asked);
        for (std::size_t i = 0; i < asked.size(); ++i) {
            Oracle& right = asked[i].filter.lists == &replaced ? after : oracle();
            const Answer wanted = right.answer(asked[i]);
            expect_identical(answers[i].hits, wanted.hits, describe(asked[i]));
            EXPECT_EQ(answers[i].count, wanted.count) << describe(asked[i]);
        }
    };
    expect(queries);
    for (const Query& query : std::span(queries).first(12)) expect({&query, 1});
}

TEST_P(EveryPath, ManyExclusionsEqualTheOracle) {
    Query query{kernels::Cosine{vector_of(vectors().back())}, 10, {}, {}};
    const std::vector<Hit>& order = oracle().order(query);
    // The best rows are those that are left out, so that nothing but the list can keep them out.
    for (const std::size_t count :
         {std::size_t{900}, std::size_t{1014}, std::size_t{1015}, std::size_t{2038},
          std::size_t{2039}, order.size() - 1, order.size()}) {
        query.excluded.clear();
        for (const Hit& hit : std::span(order).first(std::min(count, order.size())))
            query.excluded.push_back(hit.row);
        ask(query);
        // Naming a row twice says nothing more.
        const auto copy = query.excluded;
        query.excluded.insert(query.excluded.end(), copy.rbegin(), copy.rend());
        ask(query);
    }
}

TEST_P(EveryPath, CosMulEqualsTheOracle) {
    const auto list = vectors();
    const auto at = [&](std::size_t i) { return vector_of(list[i % list.size()]); };
    for (std::size_t i = 0; i < list.size(); i += 3) {
        for (const auto& [above, below] :
             {std::pair{1U, 1U}, {2U, 1U}, {1U, 2U}, {3U, 4U}, {1U, 0U}, {0U, 1U}}) {
            kernels::CosMul kind;
            for (std::size_t j = 0; j < above; ++j) kind.positives.push_back(at(i + j));
            for (std::size_t j = 0; j < below; ++j) kind.negatives.push_back(at(i + above + j));
            // Beside a cosine query, so that lanes of different kinds share a pass.
            const std::vector<Query> queries = {
                {kind, 10, {}, {}},
                {kernels::Cosine{at(i)}, 3, {}, {}},
                {kind, model().rows(), {}, {}},
                {kind, 7, {rows() / 2, 0}, {rows() / 2 + 1, std::nullopt, 0.2}},
                {kind, 7, {rows() / 2}, {rows(), kernels::RowRange{rows() / 3, rows()}, 0.2}}};
            ask(queries);
        }
    }
}

TEST_P(EveryPath, CosMulOfManyVectorsEqualsTheOracle) {
    const auto list = vectors();
    kernels::CosMul kind;
    for (std::size_t i = 0; i < 150; ++i) {
        kind.positives.push_back(vector_of(list[i % list.size()]));
        kind.negatives.push_back(vector_of(list[i * 7 % list.size()]));
    }
    ask({kind, 20, {}, {}});
}

TEST_P(EveryPath, CountBeforeEqualsTheOracle) {
    const auto list = vectors();
    const auto filtered = filters();
    std::vector<Query> queries;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto row = static_cast<Row>(i * 7 % rows());
        const auto excluded = static_cast<Row>(i % rows());
        const kernels::CountBefore before{vector_of(list[i]), row};
        const kernels::Filter& filter = filtered[i % filtered.size()];
        queries.push_back({before, 1, {excluded}, {}});
        queries.push_back({before, 1, {}, filter});
        // A row's own score counts that row too, row 0 not less than others.
        const double own = oracle().score(queries.back(), i % 3 == 0 ? 0 : row);
        for (const double score : {own, 1.5, -1.5}) {
            queries.push_back(
                {kernels::CountBefore{before.vector, 0, score}, 1, {excluded}, filter});
        }
    }
    // Rows that lists hold.
    for (const kernels::Filter& filter : filtered) {
        for (const Row row : {Row{0}, rows() / 2})
            queries.push_back({kernels::CountBefore{vector_of(list[0]), row}, 1, {}, filter});
    }
    // More excluded rows than a device's list holds, and a k that would be too large for one if it
    // meant anything.
    const Row middle = rows() / 2;
    for (const std::size_t k : {std::size_t{1}, std::size_t{5000}}) {
        for (const auto& vector : {list[0], list.back()}) {
            Query query{kernels::CountBefore{vector_of(vector), middle}, k, {}, {}};
            queries.push_back(query);
            for (Row row = 0; row < rows(); ++row) {
                if (row % 10 != 1 && row != middle) query.excluded.push_back(row);
            }
            queries.push_back(query);
        }
    }
    ask(queries);
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
        if (i % 3 == 0) query.filter = filtered[random() % filtered.size()];
        queries.push_back(query);
    }
    ask(queries);
    for (const Query& query : queries) ask(query);
    EXPECT_TRUE(run_all(*engine_, {}).empty());
}

TEST_P(EveryPath, CertificateHolds) {
    const auto check = [&](const Query& query, const Answer& answer) {
        const kernels::Certificate& certificate = answer.certificate;
        EXPECT_EQ(certificate.scanned, model().rows());
        const auto above = static_cast<std::uint64_t>(std::ranges::count_if(
            oracle().order(query),
            [&](const Hit& hit) { return hit.score >= certificate.rejected_below; }));
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
    for (const auto& vector : vectors()) {
        queries.push_back({kernels::Cosine{vector_of(vector)}, 5, {}, {}});
        check(queries.back(), ask(queries.back()));
    }
    const auto answers = ask(queries);
    for (std::size_t i = 0; i < queries.size(); ++i) check(queries[i], answers[i]);
}

/// Models where a great many rows tie: more than an engine's lists of candidates may hold.
class ManyTies : public PathTest {
  protected:
    static constexpr std::size_t kRows = 20000;
    static constexpr std::size_t kDim = 6;

    /// Every kind of query on a model of `vector_of_row`, against the oracle.
    void expect_answers(const std::string& name,
                        const std::function<std::vector<float>(std::size_t)>& vector_of_row) {
        start(asked_model(name, [&] {
            std::vector<Entry> entries;
            for (std::size_t i = 0; i < kRows; ++i)
                entries.emplace_back("w" + std::to_string(i), vector_of_row(i));
            return std::make_unique<AskedModel>(entries);
        }));
        const kernels::QueryVector asked = vector_of({1, -2, 0.5F, 3, 0.25F, -0.125F});
        const kernels::QueryVector other = vector_of({-1, 1, 2, 0.5F, -3, 1});
        const kernels::Cosine cosine{asked};
        const kernels::CosMul product{{asked}, {other}};
        std::vector<Row> even;
        for (Row row = 0; row < 3000; row += 2) even.push_back(row);
        const kernels::Filter some{kRows / 2, kernels::RowRange{5, kRows - 100}, -1};
        std::vector<Query> queries;
        for (const std::size_t k :
             {std::size_t{1}, std::size_t{10}, std::size_t{1024}, std::size_t{1025}, kRows}) {
            queries.push_back({cosine, k, {}, {}});
        }
        const double score = oracle().score(queries[0], 0);
        queries.push_back({cosine, 10, {0, 3, 7}, {}});
        queries.push_back({cosine, 10, even, {}});
        queries.push_back({cosine, 10, {0, 9}, some});
        queries.push_back({cosine, 10, {}, {kRows, std::nullopt, score}});
        queries.push_back({product, 10, {}, {}});
        queries.push_back({product, 10, even, some});
        const Row target = 12345;
        queries.push_back({kernels::CountBefore{asked, target}, 1, {}, {}});
        queries.push_back({kernels::CountBefore{asked, target}, 1, {1, 2}, some});
        ask(queries);
        for (const Query& query : queries) ask(query);
    }
};

TEST_P(ManyTies, AllRowsIdentical) {
    expect_answers("identical rows",
                   [](std::size_t) { return std::vector<float>{0.5F, 1, -1, 2, 0.25F, 3}; });
}

TEST_P(ManyTies, AllRowsZero) {
    expect_answers("zero rows", [](std::size_t) { return std::vector<float>(kDim, 0.0F); });
}

TEST_P(ManyTies, NoNormCovered) {
    expect_answers("no norm covered", [](std::size_t i) {
        return std::vector<float>(kDim, i % 2 == 0 ? 1e-40F : 3e38F);
    });
}

TEST_P(ManyTies, ZerosAmongOpposites) {
    expect_answers("zeros among opposites", [](std::size_t i) {
        const float sign = static_cast<float>(i % 3) - 1;
        return std::vector<float>{sign, 2 * sign, 0, sign, -sign, 0};
    });
}

/// 8192 rows tie for the first place: as many as the cuda engine's lists hold; and one more.
TEST_P(ManyTies, AroundTheCapacityOfLists) {
    for (const std::size_t ties : {std::size_t{8192}, std::size_t{8193}}) {
        std::mt19937_64 random(5);
        std::normal_distribution<float> component;
        expect_answers(std::to_string(ties) + " ties", [&](std::size_t i) {
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
class DamagedRows : public PathTest {};

TEST_P(DamagedRows, LeaveNothingBehindForTheNextQuery) {
    constexpr Row kRows = 6000;
    constexpr Row kSound = 2000;  // rows below it are
    start(asked_model("damaged rows", [] {
        auto entries = random_entries(kRows, 8, 21);
        std::vector<std::uint32_t> damaged;
        for (Row row = 0; row < kRows; ++row) {
            entries[row].first = std::to_string(100'000 + row);  // so that the row is the place
            if (row >= kSound && row % 1000 != 0) damaged.push_back(row);
        }
        return std::make_unique<AskedModel>(entries, damaged);
    }));
    const auto cosine_of = [&](Row row) {
        return kernels::Cosine{vector_of({model().vector(row).begin(), model().vector(row).end()})};
    };

    const kernels::RowRange sound{0, kSound};
    const kernels::RowRange mostly_damaged{kSound, kRows};
    for (Row row = 1; row < 20; ++row) {
        // A threshold of 1, and then a query for which few rows have a score at all.
        for (const auto& [rows, k] : {std::pair{sound, std::size_t{1}},
                                      {mostly_damaged, std::size_t{3}},
                                      {sound, std::size_t{1}},
                                      {mostly_damaged, std::size_t{5}},
                                      {mostly_damaged, std::size_t{1}},
                                      {{0, kRows}, std::size_t{3}}}) {
            Query query{cosine_of(row), k, {}, {}};
            query.filter.rows = rows;
            ask(query);
        }
    }
    std::vector<Query> queries;
    for (Row row = 0; row < 40; ++row) {
        queries.push_back({cosine_of(row), 1 + row % 3, {}, {}});
        // The sound rows that come first, left out: what is left are damaged ones, and few others.
        for (Row other = 0; row % 2 == 1 && other < 100; ++other)
            queries.back().excluded.push_back(other);
    }
    ask(queries);
}

/// What a damaged row was: codes of its other components are as near as can be, and must not count
/// for a threshold.
TEST_P(DamagedRows, MakeNoThresholdForWhatTheyWere) {
    constexpr Row kRows = 3000;
    auto entries = random_entries(kRows, 20, 22);
    for (Row row = 0; row < kRows; ++row) entries[row].first = std::to_string(100'000 + row);
    const std::vector<std::uint32_t> damaged = {500, 1717};
    // A row whose code is longer than all others.
    for (float& value : entries[damaged[1]].second) value = value < 0 ? -0.4F : 0.4F;
    start(asked_model("a damaged row of the longest code",
                      [&] { return std::make_unique<AskedModel>(entries, damaged); }));
    const std::vector<Query> queries(
        20, Query{kernels::Cosine{vector_of(entries[damaged[1]].second)}, 1, {}, {}});
    for (const std::size_t count : {std::size_t{1}, queries.size()})
        ask(std::span(queries).first(count));
}

}  // namespace gloved::tests
