// The cuda engine and the cpu engine answer the same questions with the same bits: on real vectors,
// at full size, and on several shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/bench/generate.hpp"

namespace gloved::tests {
namespace {

using kernels::Answer;
using kernels::Engine;
using kernels::Hit;
using kernels::Query;
using kernels::Row;

/// How rows are ruled out.
enum class Passes {
    by_codes,
    by_scores,  ///< not at all: all are scored
};

std::unique_ptr<Engine> make(const std::string& name, const format::Model& model,
                             std::vector<int> devices = {0}, Passes passes = Passes::by_codes,
                             kernels::Spread spread = kernels::Spread::automatic) {
    kernels::EngineOptions options;
    options.devices.numbers = std::move(devices);
    options.spread = spread;
    options.planes = passes == Passes::by_codes;
    auto engine = kernels::make_engine(*kernels::parse_engine(name), model, options);
    if (!engine) throw std::runtime_error(engine.error().message);
    return *std::move(engine);
}

format::Model open(const std::string& path) {
    auto model = format::Model::open(path);
    if (!model) throw std::runtime_error(model.error().message);
    return *std::move(model);
}

std::vector<Answer> run(Engine& engine, std::span<const Query> queries) {
    auto answers = engine.run(queries);
    if (!answers) throw std::runtime_error(answers.error().message);
    return *std::move(answers);
}

bool same_bits(const Hit& a, const Hit& b) {
    return a.row == b.row &&
           std::bit_cast<std::uint64_t>(a.score) == std::bit_cast<std::uint64_t>(b.score);
}

/// Compares both engines on `queries`, `batch` at a time on the GPU.
void expect_identical(Engine& cuda, Engine& cpu, std::span<const Query> queries, std::size_t batch,
                      const std::string& what, std::set<kernels::Pass>* passes = nullptr) {
    constexpr std::size_t kCpuBatch = 64;
    std::vector<Answer> wanted;
    for (std::size_t i = 0; i < queries.size(); i += kCpuBatch) {
        for (Answer& answer :
             run(cpu, queries.subspan(i, std::min(kCpuBatch, queries.size() - i)))) {
            wanted.push_back(std::move(answer));
        }
    }
    for (std::size_t begin = 0; begin < queries.size(); begin += batch) {
        const auto part = queries.subspan(begin, std::min(batch, queries.size() - begin));
        const auto got = run(cuda, part);
        ASSERT_EQ(got.size(), part.size());
        for (std::size_t i = 0; i < part.size(); ++i) {
            const Answer& want = wanted[begin + i];
            if (passes != nullptr) passes->insert(got[i].certificate.pass);
            ASSERT_EQ(got[i].count, want.count) << what << ", query " << begin + i;
            ASSERT_EQ(got[i].hits.size(), want.hits.size())
                << what << ", query " << begin + i << ", " << to_string(got[i].certificate.pass);
            for (std::size_t h = 0; h < want.hits.size(); ++h) {
                ASSERT_TRUE(same_bits(got[i].hits[h], want.hits[h]))
                    << what << ", query " << begin + i << ", place " << h << ", "
                    << to_string(got[i].certificate.pass) << ": row " << got[i].hits[h].row
                    << " score " << got[i].hits[h].score << ", not " << want.hits[h].row << " "
                    << want.hits[h].score;
            }
        }
    }
}

/// Deterministic questions about a model.
class Questions {
  public:
    Questions(const format::Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

    Row row() {
        while (true) {
            const auto row = static_cast<Row>(random_() % model_.rows());
            if (model_.norms()[row] > 0) return row;
        }
    }
    Query word(std::size_t k) {
        const kernels::WeightedRow term{1.0, row()};
        return expression({&term, 1}, k);
    }
    /// Two to four words with weights, as an expression makes them.
    Query mixture(std::size_t k) {
        std::vector<kernels::WeightedRow> terms;
        for (std::size_t i = 0, count = 2 + random_() % 3; i < count; ++i) {
            terms.push_back({std::uniform_real_distribution<double>(-2, 2)(random_), row()});
        }
        return expression(terms, k);
    }
    Query raw(std::size_t k) {
        std::vector<float> values(model_.dim());
        const float scale = std::exp2(std::uniform_real_distribution<float>(-30, 30)(random_));
        for (float& value : values) value = std::normal_distribution<float>()(random_) * scale;
        auto vector = kernels::make_query_vector(std::move(values));
        if (!vector) throw std::runtime_error(vector.error().message);
        return {kernels::Cosine{*std::move(vector)}, k, {}, {}};
    }
    kernels::QueryVector vector() { return std::get<kernels::Cosine>(word(1).kind).vector; }

  private:
    Query expression(std::span<const kernels::WeightedRow> terms, std::size_t k) {
        auto vector = kernels::make_query_vector(model_, terms, random_() % 2 == 0);
        if (!vector) return word(k);
        Query query{kernels::Cosine{*std::move(vector)}, k, {}, {}};
        for (const auto& term : terms) query.excluded.push_back(term.row);
        return query;
    }

    const format::Model& model_;
    std::mt19937_64 random_;
};

class RealSample : public testing::TestWithParam<Passes> {
  protected:
    void SetUp() override {
        if (no_device()) GTEST_SKIP() << kNoDevice;
        const auto done =
            tests::run({program("gloved-convert"), source_path("data/glove.6B.100d.sample.txt.gz"),
                        dir_ / "model"});
        ASSERT_EQ(done.exit_code, 0) << done.err;
        model_ = std::make_unique<format::Model>(open(dir_ / "model"));
        cuda_ = make("cuda", *model_, {0}, GetParam());
        cpu_ = make("cpu", *model_);
    }

    TempDir dir_;
    std::unique_ptr<format::Model> model_;
    std::unique_ptr<Engine> cuda_;
    std::unique_ptr<Engine> cpu_;
};

TEST_P(RealSample, WordsExpressionsAndRawVectors) {
    Questions ask(*model_, 1);
    for (const std::size_t k : {1U, 10U, 100U, 1024U}) {
        std::vector<Query> queries;
        for (int i = 0; i < 10000; ++i) queries.push_back(ask.word(k));
        for (int i = 0; i < 1000; ++i) queries.push_back(ask.mixture(k));
        for (int i = 0; i < 200; ++i) queries.push_back(ask.raw(k));
        expect_identical(*cuda_, *cpu_, queries, 200, "k=" + std::to_string(k) + ", batches");
        // One at a time goes another way through the device.
        const auto some = std::span(queries).last(1600);
        expect_identical(*cuda_, *cpu_, some, 1, "k=" + std::to_string(k) + ", single");
    }
}

TEST_P(RealSample, EveryFilter) {
    Questions ask(*model_, 2);
    const auto rows = static_cast<Row>(model_->rows());
    std::mt19937_64 random(3);
    std::vector<Query> queries;
    for (const std::size_t k : {1U, 10U, 100U, 1024U}) {
        for (int i = 0; i < 400; ++i) {
            Query query = i % 2 == 0 ? ask.word(k) : ask.mixture(k);
            const int which = i / 2 % 8;
            if (which % 2 == 1)
                query.filter.rank_below = static_cast<std::uint32_t>(random() % rows + 1);
            if (which / 2 % 2 == 1) {
                const Row first = static_cast<Row>(random() % rows);
                query.filter.rows = kernels::RowRange{first, first + random() % (rows - first + 1)};
            }
            if (which / 4 % 2 == 1)
                query.filter.min_score = std::uniform_real_distribution<double>(-0.2, 0.6)(random);
            for (std::size_t e = random() % 40; e > 0; --e)
                query.excluded.push_back(static_cast<Row>(random() % rows));
            if (i % 50 == 0) {
                for (Row row = 0; row < 3000; ++row) query.excluded.push_back(row);
            }
            queries.push_back(std::move(query));
        }
    }
    expect_identical(*cuda_, *cpu_, queries, 64, "batches");
    expect_identical(*cuda_, *cpu_, queries, 1, "single");
}

TEST_P(RealSample, CosMulAndCountBefore) {
    Questions ask(*model_, 4);
    std::vector<Query> queries;
    for (const std::size_t k : {1U, 10U, 1024U, 5000U}) {
        for (int i = 0; i < 50; ++i) {
            const Row excluded = ask.row();
            queries.push_back(
                {kernels::CosMul{{ask.vector(), ask.vector()}, {ask.vector()}}, k, {excluded}, {}});
            queries.push_back({kernels::CountBefore{ask.vector(), ask.row()}, 1, {excluded}, {}});
        }
    }
    queries.back().filter.rank_below = 2000;
    expect_identical(*cuda_, *cpu_, queries, 32, "both kinds");
}

TEST_P(RealSample, SeveralShardsOnOneDevice) {
    using kernels::Spread;
    Questions ask(*model_, 5);
    for (const auto& [spread, devices] : {std::pair{Spread::rows, std::vector<int>{0, 0}},
                                          {Spread::rows, {0, 0, 0}},
                                          {Spread::rows, {0, 0, 0, 0, 0, 0, 0}},
                                          {Spread::queries, {0, 0}}}) {
        const auto shards = make("cuda", *model_, devices, GetParam(), spread);
        for (const std::size_t k : {1U, 10U, 1024U}) {
            std::vector<Query> queries;
            for (int i = 0; i < 300; ++i)
                queries.push_back(i % 3 == 0 ? ask.mixture(k) : ask.word(k));
            queries.push_back({kernels::CosMul{{ask.vector()}, {ask.vector()}}, k, {}, {}});
            queries.push_back({kernels::CountBefore{ask.vector(), ask.row()}, 1, {}, {}});
            queries.push_back(ask.word(k));
            queries.back().filter.rows = kernels::RowRange{1000, 7000};
            expect_identical(*shards, *cpu_, queries, 100,
                             std::to_string(devices.size()) + " shards, batches");
            expect_identical(*shards, *cpu_, std::span(queries).last(50), 1,
                             std::to_string(devices.size()) + " shards, single");
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Gpu, RealSample, testing::Values(Passes::by_codes, Passes::by_scores),
                         [](const auto& test) {
                             return std::string(test.param == Passes::by_codes ? "by_codes"
                                                                               : "by_scores");
                         });

/// 2,196,016 × 300, as glove.840B: 2.6 GB on disk and on the device.
TEST(FullSize, ThousandQueriesAreIdentical) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    const auto made = bench::generate_model(dir / "model", {2196016, 300, 1, 0});
    ASSERT_TRUE(made) << made.error().message;
    const format::Model model = open(dir / "model");
    const auto cuda = make("cuda", model);
    const auto cpu = make("cpu", model);
    Questions ask(model, 6);
    std::set<kernels::Pass> passes;
    std::vector<Query> queries;
    for (int i = 0; i < 1000; ++i) {
        constexpr std::size_t kSizes[] = {1, 10, 100, 1024};
        const std::size_t k = kSizes[i % 4];
        queries.push_back(i % 5 == 4 ? ask.mixture(k) : ask.word(k));
        if (i % 7 == 3) queries.back().filter.rank_below = 400000;
    }
    expect_identical(*cuda, *cpu, queries, 250, "batches", &passes);
    expect_identical(*cuda, *cpu, std::span(queries).first(200), 1, "single", &passes);
    // Nothing overflowed: every answer came from a bounded pass.
    EXPECT_EQ(passes.count(kernels::Pass::plane), 1U);
    EXPECT_EQ(passes.count(kernels::Pass::int8), 1U);
    EXPECT_EQ(passes.count(kernels::Pass::float64), 0U);
    passes.clear();
    const auto vectors = make("cuda", model, {0}, Passes::by_scores);
    expect_identical(*vectors, *cpu, std::span(queries).first(300), 100, "batches without planes",
                     &passes);
    expect_identical(*vectors, *cpu, std::span(queries).first(50), 1, "single without planes",
                     &passes);
    EXPECT_EQ(passes, (std::set<kernels::Pass>{kernels::Pass::float64}));
    std::vector<Query> others = {
        {kernels::CosMul{{ask.vector(), ask.vector()}, {ask.vector()}}, 10, {}, {}},
        {kernels::CountBefore{ask.vector(), ask.row()}, 1, {}, {}},
        ask.word(20000)};
    expect_identical(*cuda, *cpu, others, 1, "canonical passes");
}

}  // namespace
}  // namespace gloved::tests
