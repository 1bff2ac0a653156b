// The cuda engine over several devices, on a fake runtime and fake kernels: who answers what, and
// that nobody writes where another does.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/engine_answers.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using fake_cuda::Settings;
using kernels::EngineOptions;
using kernels::Spread;

constexpr std::size_t kRows = 20000;
constexpr std::size_t kDim = 20;

class CudaSpread : public testing::Test {
  protected:
    void TearDown() override {
        EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{}) << fake_cuda::describe(fake_cuda::live());
    }

    Query nearest(Row row) const {
        const kernels::WeightedRow term{1, row};
        return {
            kernels::Cosine{*kernels::make_query_vector(model_, {&term, 1}, false)}, 10, {}, {}};
    }
    static kernels::GpuFacts facts_of(const kernels::Engine& engine) {
        return engine.gpu_facts().value();
    }

    TempDir dir_;
    const format::Model model_ = make_model(dir_ / "model", random_entries(kRows, kDim, 3));
    Oracle oracle_{model_};
};

/// Three devices that each hold the model.
class CudaReplicas : public CudaSpread {
  protected:
    void SetUp() override {
        Settings settings;
        settings.devices = 3;
        settings.lazy = true;
        fake_cuda::reset(settings);
        EngineOptions options;
        options.devices.all = true;
        engine_ = require_engine("cuda", model_, options);
    }
    void TearDown() override {
        engine_.reset();
        CudaSpread::TearDown();
    }

    /// The answers, which are the oracle's. Counts calls from here on.
    std::vector<Answer> run(std::span<const Query> queries) {
        fake_cuda::arm({});
        auto answers = expect_oracle(*engine_, oracle_, queries);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            EXPECT_EQ(answers[i].certificate.scanned,
                      queries[i].filter.rows.value_or(kernels::RowRange{0, kRows}).size());
        }
        return answers;
    }
    static std::uint64_t scans() { return fake_cuda::count_of("launch_plane_query"); }
    static std::uint64_t code_passes() { return fake_cuda::count_of("launch_code_pass"); }

    std::unique_ptr<kernels::Engine> engine_;
};

TEST_F(CudaReplicas, EachHoldsTheModel) {
    const kernels::GpuFacts facts = facts_of(*engine_);
    ASSERT_EQ(facts.shards.size(), 3U);
    EXPECT_TRUE(facts.replicas);
    std::size_t bytes = 0;
    for (int device = 0; device < 3; ++device) {
        const auto& shard = facts.shards[static_cast<std::size_t>(device)];
        EXPECT_EQ(shard.device, device);
        EXPECT_EQ(shard.rows, kRows);
        bytes += shard.memory_bytes;
    }
    EXPECT_EQ(facts.memory_bytes, bytes);
    EXPECT_NE(engine_->description().find("each with all words"), std::string::npos);
}

TEST_F(CudaReplicas, DivideTheRowsOfAQueryThatIsAlone) {
    std::vector<Query> queries = {nearest(5)};
    EXPECT_EQ(run(queries)[0].certificate.pass, Pass::plane);
    EXPECT_EQ(scans(), 3U);
    queries[0].filter.rows = kernels::RowRange{777, 17777};
    (void)run(queries);
    EXPECT_EQ(scans(), 3U);
    queries[0].k = 5000;
    (void)run(queries);
    EXPECT_EQ(fake_cuda::count_of("launch_score"), 3U);
    // Not of few rows, which one device scores sooner than three are asked.
    queries[0] = nearest(5);
    queries[0].filter.rows = kernels::RowRange{777, 1777};
    EXPECT_EQ(run(queries)[0].certificate.pass, Pass::float64);
    EXPECT_EQ(fake_cuda::count_of("launch_few_rows"), 1U);
}

TEST_F(CudaReplicas, DivideTheQueriesOfABatch) {
    std::vector<Query> queries(2, nearest(5));
    (void)run(queries);
    EXPECT_EQ(scans(), 2U);
    queries.clear();
    for (Row row = 0; row < 240; ++row) queries.push_back(nearest(row * 83));
    for (const Answer& answer : run(queries)) EXPECT_EQ(answer.certificate.pass, Pass::int8);
    EXPECT_EQ(code_passes(), 3 * 2U);
    // What scores every row takes all devices, beside the others.
    const std::vector<float> ones(kDim, 1.0F);
    queries[11].k = 2000;
    queries[12].kind = kernels::CountBefore{vector_of(ones), 7};
    queries[13].filter.rows = kernels::RowRange{5, 5};
    const auto answers = run(queries);
    EXPECT_EQ(fake_cuda::count_of("launch_score"), 6U);
    EXPECT_EQ(code_passes(), 3 * 2U);
    EXPECT_TRUE(answers[13].hits.empty());
    EXPECT_EQ(answers[12].certificate.scanned, kRows);
    // Such a run is of two parts, and both wait.
    int meanwhile = 0;
    EXPECT_TRUE(engine_->run(queries, [&] { ++meanwhile; }));
    EXPECT_EQ(meanwhile, 1);
}

/// By itself the engine gives each device all rows where they fit, and a part where not.
TEST_F(CudaSpread, IsByMemory) {
    Settings settings;
    settings.devices = 2;
    fake_cuda::reset(settings);
    EngineOptions options;
    const std::size_t whole = facts_of(*require_engine("cuda", model_, options)).memory_bytes;
    options.devices.all = true;
    struct Case {
        Spread spread;
        std::size_t limit;
        bool replicas;
        bool holds_vectors;
    };
    for (const auto& [spread, limit, replicas, holds_vectors] :
         {Case{Spread::automatic, 0, true, true},
          {Spread::automatic, whole - 1000000, false, true},
          {Spread::rows, 0, false, true},
          {Spread::queries, 0, true, true},
          {Spread::queries, whole / 2, true, false}}) {
        SCOPED_TRACE(static_cast<int>(spread));
        options.spread = spread;
        options.gpu_memory_bytes = limit;
        const auto engine = require_engine("cuda", model_, options);
        const kernels::GpuFacts facts = facts_of(*engine);
        EXPECT_EQ(facts.replicas, replicas) << limit;
        EXPECT_EQ(facts.holds_vectors, holds_vectors) << limit;
        ASSERT_EQ(facts.shards.size(), 2U);
        EXPECT_EQ(facts.shards[0].rows + facts.shards[1].rows, kRows * (replicas ? 2 : 1));
        (void)expect_oracle(*engine, oracle_, nearest(5));
    }
    options.gpu_memory_bytes = 100000;
    for (const auto& [spread, words] : {std::pair{Spread::queries, "with --spread rows"},
                                        {Spread::rows, "over several devices with --device"}}) {
        options.spread = spread;
        const auto engine = kernels::make_engine(EngineKind::cuda, model_, options);
        ASSERT_FALSE(engine);
        EXPECT_EQ(engine.error().code, ErrorCode::unavailable);
        EXPECT_NE(engine.error().message.find(words), std::string::npos) << engine.error().message;
    }
}

}  // namespace
}  // namespace gloved::tests
