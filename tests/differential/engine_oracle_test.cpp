// The cpu engine on every instruction set against the float64 oracle, and what comes before an
// engine: query vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/engine_answers.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

enum class Planes { none, coarse, fine };

std::vector<EnginePath> cpu_paths() {
    std::vector<EnginePath> paths;
    const auto add = [&](const std::string& simd, unsigned threads, Planes planes) {
        const auto make = [=](const format::Model& model, kernels::EngineOptions options) {
            options.threads = threads;
            options.simd = simd;
            options.planes = planes != Planes::none;
            if (planes == Planes::fine) options.fine_plane = kernels::FinePlane::at_start;
            return require_engine("cpu", model, options);
        };
        const char* const name = planes == Planes::none   ? "_"
                                 : planes == Planes::fine ? "_fine_plane_"
                                                          : "_plane_";
        paths.push_back({simd + name + std::to_string(threads) + "threads", make, {}, {}});
    };
    for (const std::string& simd : kernels::simd_names()) {
        for (const unsigned threads : {1U, 3U}) {
            add(simd, threads, Planes::none);
            const auto* kernel = kernels::cpu::plane_kernel_for(simd);
            if (kernel == nullptr) continue;
            add(simd, threads, Planes::coarse);
            if (kernel->fine_loop.width != 0) add(simd, threads, Planes::fine);
        }
    }
    return paths;
}

const std::vector<Shape> kShapes = {{1, 1},     {16, 1},    {97, 7},    {33, 301}, {2500, 25},
                                    {1003, 50}, {700, 100}, {333, 300}, {64, 1025}};

INSTANTIATE_TEST_SUITE_P(Cpu, EveryPath, testing::ValuesIn(on_shapes(cpu_paths(), kShapes)),
                         path_name);
INSTANTIATE_TEST_SUITE_P(Cpu, ManyTies, testing::ValuesIn(cpu_paths()), path_name);
INSTANTIATE_TEST_SUITE_P(Cpu, DamagedRows, testing::ValuesIn(cpu_paths()), path_name);

TEST(Engines, RefuseWhatIsNotThere) {
    const TempDir dir;
    const auto model = make_model(dir / "model", random_entries(3, 2, 1));
    kernels::EngineOptions options;
    options.threads = 1;
    EXPECT_EQ(kernels::parse_engine("gpu").error().code, ErrorCode::unavailable);
    // Where there is a GPU, auto takes it.
    const auto entries = kernels::list_engines();
    ASSERT_EQ(entries.front().kind, EngineKind::cuda);
    auto chosen = kernels::make_engine(std::nullopt, model, options);
    ASSERT_TRUE(chosen);
    if (entries.front().unavailable.empty()) {
        EXPECT_EQ((*chosen)->kind(), EngineKind::cuda);
    } else {
        EXPECT_EQ((*chosen)->kind(), EngineKind::cpu);
        EXPECT_EQ(kernels::make_engine(EngineKind::cuda, model, options).error().code,
                  ErrorCode::unavailable);
    }
    options.simd = "avx1024";
    EXPECT_EQ(kernels::make_engine(EngineKind::cpu, model, options).error().code,
              ErrorCode::unavailable);
}

TEST(QueryVectors, RefuseZeroAndInfinity) {
    EXPECT_EQ(kernels::make_query_vector({0.0F, -0.0F}).error().code, ErrorCode::zero_vector);
    EXPECT_EQ(
        kernels::make_query_vector({1.0F, std::numeric_limits<float>::infinity()}).error().code,
        ErrorCode::bad_request);
    EXPECT_EQ(kernels::make_query_vector({std::numeric_limits<float>::quiet_NaN()}).error().code,
              ErrorCode::bad_request);
}

TEST(QueryVectors, NameTheRowThatTheyAre) {
    const TempDir dir;
    const auto model = make_model(dir / "model", {{"a", {-0.0F, 2.0F}}, {"b", {1.0F, 0.0F}}});
    const auto row_of = [&](std::initializer_list<kernels::WeightedRow> terms, bool unit) {
        return kernels::make_query_vector(model, std::vector(terms), unit)->row;
    };
    EXPECT_EQ(row_of({{1.0, 1}}, false), Row{1});
    EXPECT_FALSE(row_of({{1.0, 1}}, true));
    EXPECT_FALSE(row_of({{2.0, 1}}, false));
    EXPECT_FALSE(row_of({{1.0, 0}, {1.0, 1}}, false));
    const kernels::WeightedRow first{1.0, 0};
    const auto vector = kernels::make_query_vector(model, {&first, 1}, false);
    EXPECT_FALSE(std::signbit(vector->values[0]));
    EXPECT_FALSE(kernels::make_query_vector({0.0F, 2.0F})->row);
}

TEST(QueryVectors, EqualTheOracleRawAndUnit) {
    const TempDir dir;
    auto entries = awkward_entries(32, 50, 5);
    entries[8].second.assign(50, 0.0F);  // it adds nothing
    const auto model = make_model(dir / "model", entries);
    const Row zero = *model.find(entries[8].first);
    const std::vector<kernels::WeightedRow> terms = {{1.0, 3}, {-2.5, zero}, {1e-3, 21}, {0.1, 5}};
    const Weights weights = {{1.0, 3}, {-2.5, zero}, {1e-3, 21}, {0.1, 5}};
    for (const bool unit : {false, true}) {
        const auto vector = kernels::make_query_vector(model, terms, unit);
        ASSERT_TRUE(vector);
        EXPECT_EQ(vector->values, oracle_query(model, weights, unit));
    }
}

}  // namespace
}  // namespace gloved::tests
