// Engines, queries and answers of tests, and the oracle's answer to the same query.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/oracle.hpp"

namespace gloved::tests {

using kernels::Answer;
using kernels::Engine;
using kernels::EngineKind;
using kernels::Hit;
using kernels::Pass;
using kernels::Query;
using kernels::Row;

/// Makes the engine called `name`. Throws std::runtime_error when it cannot be made.
inline std::unique_ptr<Engine> require_engine(const std::string& name, const format::Model& model,
                                              const kernels::EngineOptions& options) {
    const auto kind = kernels::parse_engine(name);
    if (!kind) throw std::runtime_error(kind.error().message);
    auto engine = kernels::make_engine(*kind, model, options);
    if (!engine) throw std::runtime_error(engine.error().message);
    return *std::move(engine);
}

inline kernels::QueryVector vector_of(std::vector<float> values) {
    auto vector = kernels::make_query_vector(std::move(values));
    if (!vector) throw std::runtime_error(vector.error().message);
    return *std::move(vector);
}

/// The answers, as many as there are queries; throws when there are none.
inline std::vector<Answer> run_all(Engine& engine, std::span<const Query> queries) {
    auto answers = engine.run(queries);
    if (!answers) throw std::runtime_error(answers.error().message);
    if (answers->size() != queries.size())
        throw std::runtime_error("not as many answers as queries");
    return *std::move(answers);
}

inline Answer run_one(Engine& engine, const Query& query) {
    return run_all(engine, std::span(&query, 1))[0];
}

inline void expect_identical(const std::vector<Hit>& got, std::span<const Hit> wanted,
                             const std::string& what) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].row, wanted[i].row) << what << ", place " << i;
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i].score),
                  std::bit_cast<std::uint64_t>(wanted[i].score))
            << what << ", place " << i << ": " << got[i].score << " for " << wanted[i].score;
    }
}

/// The first k of an order of all.
inline std::span<const Hit> first_of(const std::vector<Hit>& order, std::size_t k) {
    return std::span(order).first(std::min(k, order.size()));
}

/// Who takes part in a query, as the oracle asks for it. `lists` are those of the engine.
inline Eligible eligible_for(const format::Model& model, const Query& query,
                             const Lists& lists = {}) {
    return [&model, &query, &lists](std::uint32_t row, double score) {
        const kernels::Filter& filter = query.filter;
        const bool in_range =
            !filter.rows || (row >= filter.rows->first && row < filter.rows->last);
        const bool in_rank = filter.rank_below == std::numeric_limits<std::uint32_t>::max() ||
                             model.ranks()[row] < filter.rank_below;
        return in_range && in_rank && score >= filter.min_score &&
               oracle_takes_lists(filter, lists, row) &&
               std::find(query.excluded.begin(), query.excluded.end(), row) == query.excluded.end();
    };
}

/// The oracle's answer: scores are of the query's kind.
inline std::vector<Hit> oracle_answer(const format::Model& model, const Query& query,
                                      std::span<const double> scores, const Lists& lists = {}) {
    return oracle_top(scores, query.k, eligible_for(model, query, lists));
}

/// How many eligible rows have at least `score`.
inline std::uint64_t oracle_count_from(const format::Model& model, const Query& query, double score,
                                       std::span<const double> scores, const Lists& lists = {}) {
    const Eligible eligible = eligible_for(model, query, lists);
    std::uint64_t count = 0;
    for (std::uint32_t row = 0; row < scores.size(); ++row) {
        if (scores[row] >= score && eligible(row, scores[row])) ++count;
    }
    return count;
}

/// How many eligible rows come before `row`, itself not counted.
inline std::uint64_t oracle_count(const format::Model& model, const Query& query, Row row,
                                  std::span<const double> scores, const Lists& lists = {}) {
    const Eligible eligible = eligible_for(model, query, lists);
    std::uint64_t count = 0;
    for (std::uint32_t other = 0; other < scores.size(); ++other) {
        if (other == row || !eligible(other, scores[other])) continue;
        if (scores[other] > scores[row] || (scores[other] == scores[row] && other < row)) ++count;
    }
    return count;
}

inline bool everyone(std::uint32_t, double) { return true; }

}  // namespace gloved::tests
