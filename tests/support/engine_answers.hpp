// Engines, queries and answers of tests, and the oracle's answer to the same query.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
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

/// A query in the words of a test's message.
inline std::string describe(const Query& query) {
    constexpr const char* kKinds[] = {"cosine", "cosmul", "count"};
    const kernels::Filter& filter = query.filter;
    std::string words = kKinds[query.kind.index()];
    words += fmt::format(", k={}, {} excluded, rank < {}, score >= {}, lists {:x} without {:x}",
                         query.k, query.excluded.size(), filter.rank_below, filter.min_score,
                         filter.within, filter.without);
    if (filter.rows) words += fmt::format(", rows {}..{}", filter.rows->first, filter.rows->last);
    return words;
}

/// Asks the engine these queries at once, and expects the oracle's answers. Returns the engine's.
inline std::vector<Answer> expect_oracle(Engine& engine, Oracle& oracle,
                                         std::span<const Query> queries) {
    auto answers = run_all(engine, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const Answer wanted = oracle.answer(queries[i]);
        const auto what =
            fmt::format("query {} of {}: {}", i, queries.size(), describe(queries[i]));
        expect_identical(answers[i].hits, wanted.hits, what);
        EXPECT_EQ(answers[i].count, wanted.count) << what;
    }
    return answers;
}

inline Answer expect_oracle(Engine& engine, Oracle& oracle, const Query& query) {
    return expect_oracle(engine, oracle, std::span(&query, 1))[0];
}

}  // namespace gloved::tests
