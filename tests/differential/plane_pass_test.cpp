// What the plane is for: answers are those of a scan of every row, and of vectors few are read. On
// a model that is large enough for rows to wait, to be settled in the middle and to be left over at
// the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Answer;
using kernels::Query;

constexpr std::size_t kRows = 20'011;  // the last group is not full
constexpr std::size_t kDim = 48;
constexpr std::size_t kTopics = 40;
constexpr std::size_t kFirstTopic = 800;

std::vector<Answer> run_all(kernels::Engine& engine, std::span<const Query> queries) {
    auto answers = engine.run(queries);
    if (!answers) throw std::runtime_error(answers.error().message);
    return *std::move(answers);
}

Answer run_one(kernels::Engine& engine, const Query& query) {
    return run_all(engine, std::span(&query, 1))[0];
}

/// Words about topics: near rows are nearer than four bits can tell apart. The first topic's words
/// are the first rows, so that an answer may be among those that are settled first; those of others
/// stand anywhere. A few rows are 0.
std::vector<Entry> entries_of_topics() {
    auto entries = random_entries(kRows, kDim, 1);
    const auto topics = random_entries(kTopics, kDim, 2);
    for (std::size_t row = 0; row < kRows; ++row) {
        entries[row].first = std::to_string(100'000 + row);  // keys in order: the model's rows are
                                                             // these
        auto& values = entries[row].second;
        const auto& of_topic = topics[row < kFirstTopic ? 0 : 1 + row * 7 % (kTopics - 1)].second;
        for (std::size_t i = 0; i < kDim; ++i) {
            values[i] = row % 1999 == 0 ? 0.0F : values[i] * 0.7F + of_topic[i];
        }
    }
    return entries;
}

class PlanePass : public testing::TestWithParam<std::string> {
  protected:
    static void SetUpTestSuite() {
        dir_ = std::make_unique<TempDir>();
        model_ = std::make_unique<format::Model>(make_model(*dir_ / "model", entries_of_topics()));
    }
    static void TearDownTestSuite() {
        model_.reset();
        dir_.reset();
    }

    static std::unique_ptr<kernels::Engine> engine(bool planes, unsigned threads,
                                                   bool fine_plane = false) {
        kernels::EngineOptions options;
        options.planes = planes;
        if (fine_plane) options.fine_plane = kernels::FinePlane::at_start;
        return engine(options, threads);
    }
    static std::unique_ptr<kernels::Engine> engine(kernels::EngineOptions options,
                                                   unsigned threads) {
        options.threads = threads;
        options.simd = GetParam();
        auto made = kernels::make_engine(kernels::EngineKind::cpu, *model_, options);
        if (!made) throw std::runtime_error(made.error().message);
        return *std::move(made);
    }

    static bool has_fine_loop() {
        return kernels::cpu::plane_kernel_for(GetParam())->fine_loop.width != 0;
    }

    /// Words, some of the first topic, and what lies between words.
    static Query query_of(std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::vector<float> values(kDim);
        for (const float weight : {1.0F, -1.0F, 1.0F}) {
            const auto row = model_->vector(random() % (seed % 4 == 0 ? kFirstTopic : kRows));
            for (std::size_t i = 0; i < kDim; ++i) values[i] += weight * row[i];
            if (seed % 2 == 0 && values[0] != 0) break;
        }
        Query query;
        query.kind = kernels::Cosine{*kernels::make_query_vector(values)};
        return query;
    }

    static std::unique_ptr<TempDir> dir_;
    static std::unique_ptr<format::Model> model_;
};

std::unique_ptr<TempDir> PlanePass::dir_;
std::unique_ptr<format::Model> PlanePass::model_;

std::vector<Query> filtered(const Query& query, std::uint64_t seed) {
    std::vector<Query> queries;
    for (const std::size_t k : {1U, 10U, 600U, 1024U, 2048U}) {
        for (const auto& rows :
             {format::RowRange{0, kRows}, {7, 16'390}, {19'999, kRows}, {33, 34}, {500, 500}}) {
            queries.push_back(query);
            queries.back().k = k;
            queries.back().filter.rows = rows;
        }
        for (const std::uint32_t top : {1U, 30U, 5000U}) {
            queries.push_back(query);
            queries.back().k = k;
            queries.back().filter.rank_below = top;
        }
        for (const double least : {-0.5, 0.0, 0.4, 0.999}) {
            queries.push_back(query);
            queries.back().k = k;
            queries.back().filter.min_score = least;
        }
        queries.push_back(query);
        queries.back().k = k;
        for (kernels::Row row = 0; row < kRows; row += 3) queries.back().excluded.push_back(row);
    }
    // Ones that share a pass should not be alike. Indices are shuffled: g++ 13 warns of moved
    // queries.
    std::vector<std::size_t> order(queries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    std::vector<Query> shuffled;
    for (const std::size_t index : order) shuffled.push_back(queries[index]);
    return shuffled;
}

TEST_P(PlanePass, AnswersAreThoseOfTheScan) {
    const auto vectors = engine(false, 1);
    const auto one = engine(true, 1);
    const auto three = engine(true, 3);
    const auto fine = engine(true, 2, true);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const auto queries = filtered(query_of(seed), seed);
        const auto wanted = run_all(*vectors, queries);
        for (const auto& by_plane : {one.get(), three.get(), fine.get()}) {
            const auto together = run_all(*by_plane, queries);
            // Threads that have few queries each divide the rows instead.
            std::vector<Answer> by_twelves;
            for (std::size_t first = 0; first < queries.size(); first += 12) {
                for (Answer& answer :
                     run_all(*by_plane,
                             std::span(queries).subspan(
                                 first, std::min<std::size_t>(12, queries.size() - first)))) {
                    by_twelves.push_back(std::move(answer));
                }
            }
            for (std::size_t i = 0; i < queries.size(); ++i) {
                const std::string what =
                    "seed " + std::to_string(seed) + ", query " + std::to_string(i);
                ASSERT_EQ(together[i].hits, wanted[i].hits) << what;
                ASSERT_EQ(by_twelves[i].hits, wanted[i].hits) << what << " by twelves";
                const Answer alone = run_one(*by_plane, queries[i]);
                ASSERT_EQ(alone.hits, wanted[i].hits) << what << " alone";
                EXPECT_EQ(alone.certificate.pass, kernels::Pass::plane);
                EXPECT_EQ(alone.certificate.survivors, alone.certificate.rescored);
                EXPECT_GE(alone.certificate.read_bytes,
                          alone.certificate.survivors * kDim * sizeof(float));
                EXPECT_LE(alone.certificate.rescored, alone.certificate.scanned);
            }
        }
    }
}

// Rows that had to wait for a threshold meet the final one, so that most are never read.
TEST_P(PlanePass, FewVectorsAreRead) {
    const auto by_plane = engine(true, 1);
    std::uint64_t read = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto answer = run_one(*by_plane, query_of(seed));
        EXPECT_LT(answer.certificate.survivors, kRows / 10) << seed;
        read += answer.certificate.survivors;
    }
    EXPECT_LT(read / 20, kRows / 100);
}

// A fine plane leaves little to read but the answer and what raised the threshold. Where there is
// no loop over 7-bit codes, the 4-bit plane answers.
TEST_P(PlanePass, AFinePlaneLeavesFewer) {
    std::vector<Query> queries;
    for (std::uint64_t seed = 0; seed < 40; ++seed) queries.push_back(query_of(seed));
    const auto answers = run_all(*engine(true, 1, true), queries);
    const auto coarse_answers = run_all(*engine(true, 1), queries);
    std::uint64_t read = 0;
    std::uint64_t coarse_read = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        ASSERT_EQ(answers[i].hits, coarse_answers[i].hits) << i;
        read += answers[i].certificate.survivors;
        coarse_read += coarse_answers[i].certificate.survivors;
    }
    if (has_fine_loop()) {
        EXPECT_LT(read, coarse_read);
        EXPECT_LT(read / queries.size(), 100U);
    } else {
        EXPECT_EQ(read, coarse_read);
    }
}

// Batches are answered while it is made, and afterwards.
TEST_P(PlanePass, AFinePlaneIsMadeWhenABatchNeedsIt) {
    kernels::EngineOptions options;
    options.fine_plane = kernels::FinePlane::when_needed;
    std::atomic<std::size_t> asked_for = 0;
    options.has_room = [&](std::size_t bytes) {
        asked_for += bytes;
        return true;
    };
    const auto later = engine(options, 2);
    std::vector<Query> queries;
    for (std::uint64_t seed = 0; seed < 8; ++seed) queries.push_back(query_of(seed));
    const auto wanted = run_all(*engine(true, 2), queries);
    for (const Query& query : queries) run_one(*later, query);
    EXPECT_EQ(asked_for, 0U);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    do {
        const auto answers = run_all(*later, queries);
        for (std::size_t i = 0; i < queries.size(); ++i) ASSERT_EQ(answers[i].hits, wanted[i].hits);
    } while (has_fine_loop() && later->fine_plane_bytes() == 0 &&
             std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(later->fine_plane_bytes() != 0, has_fine_loop());
    EXPECT_EQ(later->fine_plane_bytes(), asked_for);
    const auto answers = run_all(*later, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) ASSERT_EQ(answers[i].hits, wanted[i].hits);
    EXPECT_EQ(later->fine_plane_bytes(), engine(true, 1, true)->fine_plane_bytes());
}

// More hits than the 4-bit plane serves, of a model that is large enough for so many.
TEST_P(PlanePass, AnswersOfManyWordsComeFromAFinePlane) {
    const TempDir dir;
    const format::Model large = make_model(dir / "model", random_entries(420'000, 3, 7));
    kernels::EngineOptions options;
    options.threads = 2;
    options.simd = GetParam();
    options.planes = false;
    const auto scan = *kernels::make_engine(kernels::EngineKind::cpu, large, options);
    options.planes = true;
    options.fine_plane = kernels::FinePlane::at_start;
    const auto fine = *kernels::make_engine(kernels::EngineKind::cpu, large, options);
    Query query;
    const auto word = large.vector(11);
    query.kind = kernels::Cosine{*kernels::make_query_vector({word.begin(), word.end()})};
    query.k = 2100;
    const Answer answer = run_one(*fine, query);
    EXPECT_EQ(answer.hits, run_one(*scan, query).hits);
    EXPECT_EQ(answer.certificate.pass,
              fine->fine_plane_bytes() != 0 ? kernels::Pass::plane : kernels::Pass::float64);
}

TEST_P(PlanePass, NoFinePlaneIsMadeWithoutRoomOrOnceTheEngineEnds) {
    kernels::EngineOptions options;
    options.fine_plane = kernels::FinePlane::when_needed;
    std::atomic<int> asked = 0;
    options.has_room = [&](std::size_t) { return ++asked == 0; };
    std::vector<Query> queries;
    for (std::uint64_t seed = 0; seed < 8; ++seed) queries.push_back(query_of(seed));
    for (int i = 0; i < 3; ++i) {
        const auto without = engine(options, 1);
        for (int j = 0; j < 3; ++j) run_all(*without, queries);
        EXPECT_EQ(without->fine_plane_bytes(), 0U);
    }
    EXPECT_EQ(asked, has_fine_loop() ? 3 : 0);
    options.has_room = {};
    for (int i = 0; i < 5; ++i) run_all(*engine(options, 1), queries);
}

// A row that a filter leaves out does not raise the threshold, so the plane lets many such pass;
// none of their vectors is read.
TEST_P(PlanePass, VectorsOfRowsThatAreNotEligibleAreNotRead) {
    for (const unsigned threads : {1U, 3U}) {
        const auto by_plane = engine(true, threads);
        Query query = query_of(1);
        query.filter.rank_below = 30;
        EXPECT_LE(run_one(*by_plane, query).certificate.survivors, 30U);
        query.filter.rank_below = std::numeric_limits<std::uint32_t>::max();
        for (kernels::Row row = 0; row < kRows; ++row) {
            if (row % 1000 != 0) query.excluded.push_back(row);
        }
        EXPECT_LE(run_one(*by_plane, query).certificate.survivors, kRows / 1000 + 1);
        query.excluded.clear();
        query.filter.rows = format::RowRange{1'005, 1'030};
        EXPECT_LE(run_one(*by_plane, query).certificate.survivors, 25U);
    }
}

/// The instruction sets that have a loop over planes.
std::vector<std::string> names_with_planes() {
    std::vector<std::string> names = kernels::simd_names();
    std::erase_if(names, [](const std::string& simd) {
        return kernels::cpu::plane_kernel_for(simd) == nullptr;
    });
    return names;
}

INSTANTIATE_TEST_SUITE_P(Cpu, PlanePass, testing::ValuesIn(names_with_planes()),
                         [](const auto& simd) { return simd.param; });

}  // namespace
}  // namespace gloved::tests
