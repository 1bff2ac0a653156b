// The cuda engine's host code, on a fake runtime and fake kernels, against the float64 oracle: how
// it splits, sends, merges and falls back. What the kernels compute is tested in tests/gpu.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/planes.hpp"
#include "common/result.hpp"
#include "kernels/bounds.hpp"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/engine_plan.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/shard_memory.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/registry.hpp"
#include "tests/support/engine_answers.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using fake_cuda::Settings;
using kernels::EngineOptions;
using kernels::Spread;

void expect_no_leaks() {
    EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{}) << fake_cuda::describe(fake_cuda::live());
}

EnginePath path_of(const std::string& name, std::vector<int> devices, const Settings& settings,
                   Spread spread = Spread::queries) {
    const auto make = [=](const format::Model& model, EngineOptions options) {
        fake_cuda::reset(settings);
        options.devices.numbers = devices;
        options.spread = spread;
        return require_engine("cuda", model, options);
    };
    return {name, make, expect_no_leaks, {}};
}

kernels::GpuFacts facts_of(const kernels::Engine& engine) { return engine.gpu_facts().value(); }

/// What a device needs for `shards` shards of a model that hold no vectors.
std::size_t bytes_without_vectors(const format::Model& model, std::size_t shards,
                                  kernels::cuda::Residency residency) {
    using namespace kernels::cuda;
    const auto device = read_device(0);
    if (!device) throw std::runtime_error(device.error().message);
    residency.vectors = false;
    std::size_t bytes = 0;
    std::size_t first = 0;
    for (std::size_t shard = 1; shard <= shards; ++shard) {
        // As the plan of an engine splits rows: shards begin with whole groups.
        const std::size_t last =
            shard == shards ? model.rows() : model.rows() * shard / shards / kUnitRows * kUnitRows;
        if (last > first) {
            bytes += Shard::bytes_needed(last - first, model.dim(), device->shape, residency);
            std::size_t scratch = 0;
            (void)code_tiles_scratch_bytes(static_cast<std::uint32_t>(last - first), scratch);
            if (residency.code_tiles) bytes += scratch;
        }
        first = last;
    }
    return bytes;
}

/// What is there beside no vectors: the plane, code tiles beside it, or these alone.
constexpr kernels::cuda::Residency kPlaneAlone{.plane = true, .int8_codes = true};
constexpr kernels::cuda::Residency kPlaneAndTiles{
    .plane = true, .int8_codes = true, .code_tiles = true};
constexpr kernels::cuda::Residency kTilesAlone{.code_tiles = true};

/// By codes, however small the model: batches by the plane, or by code tiles where `int8_pass` is
/// set. Shards have vectors, unless `without` says what they have then.
EnginePath plane_path(const std::string& name, std::vector<int> devices, const Settings& settings,
                      std::optional<kernels::cuda::Residency> without = {}, bool int8_pass = false,
                      Spread spread = Spread::rows) {
    const auto make = [=](const format::Model& model, EngineOptions options) {
        fake_cuda::reset(settings);
        options.devices.numbers = devices;
        options.spread = spread;
        options.int8_pass = int8_pass;
        if (without) {
            auto residency = *without;
            residency.lists = options.lists;
            options.gpu_memory_bytes = bytes_without_vectors(model, devices.size(), residency);
            options.host_vectors = true;
        }
        auto engine = require_engine("cuda", model, options);
        const kernels::GpuFacts facts = facts_of(*engine);
        const bool plane = !without || without->plane;
        if (facts.holds_plane != plane || facts.holds_vectors == without.has_value() ||
            (int8_pass && facts.int8_pass_queries == 0)) {
            throw std::runtime_error("the engine does not hold what it should");
        }
        return engine;
    };
    return {name, make, expect_no_leaks, {}};
}

/// A plane on one shard and several, wide passes and narrow ones, one query at a time, and beside
/// no vectors.
std::vector<EnginePath> plane_paths() {
    const Settings eager;
    Settings lazy;
    lazy.lazy = true;
    Settings narrow = lazy;
    narrow.plane_pass_capacity = 5;
    narrow.capability = 80;
    Settings no_integers = lazy;
    no_integers.capability = 75;
    Settings wide;  // for passes in which several filters are marked
    wide.plane_pass_capacity = 200;
    return {plane_path("plane_one", {0}, eager),
            plane_path("plane_two_lazy", {0, 0}, lazy),
            plane_path("plane_two_replicas_lazy", {0, 0}, lazy, {}, false, Spread::queries),
            plane_path("plane_narrow_lazy", {0, 0, 0}, narrow),
            plane_path("plane_without_integer_products_lazy", {0}, no_integers),
            plane_path("plane_alone", {0}, eager, kPlaneAlone),
            plane_path("plane_alone_three_lazy", {0, 0, 0}, lazy, kPlaneAlone),
            plane_path("int8_one", {0}, eager, {}, true),
            plane_path("int8_wide", {0}, wide, {}, true),
            plane_path("int8_without_integer_products_lazy", {0}, no_integers, {}, true),
            plane_path("int8_two_replicas_lazy", {0, 0}, lazy, {}, true, Spread::queries),
            plane_path("int8_seven_lazy", {0, 0, 0, 0, 0, 0, 0}, lazy, {}, true)};
}

/// Code tiles on devices that have no room for vectors.
std::vector<EnginePath> tiles_alone_paths() {
    Settings lazy;
    lazy.lazy = true;
    return {plane_path("int8_and_plane_alone_lazy", {0}, lazy, kPlaneAndTiles, true),
            plane_path("int8_alone_lazy", {0}, lazy, kTilesAlone, true),
            plane_path("int8_alone_three_lazy", {0, 0, 0}, lazy, kTilesAlone, true)};
}

/// Replicas and parts of the rows, on one device and several, work done at once and at the last
/// moment, wide passes and narrow ones.
std::vector<EnginePath> cuda_paths() {
    const Settings eager;
    Settings lazy;
    lazy.lazy = true;
    Settings three = lazy;
    three.devices = 3;
    Settings narrow = lazy;
    narrow.plane_pass_capacity = 5;
    narrow.capability = 80;
    return {path_of("one", {0}, eager),
            path_of("two_replicas_lazy", {0, 0}, lazy),
            path_of("seven", {0, 0, 0, 0, 0, 0, 0}, eager, Spread::rows),
            path_of("three_devices_lazy", {2, 0, 1, 0, 2}, three, Spread::rows),
            path_of("three_replicas_lazy", {2, 0, 1}, three),
            path_of("narrow_lazy", {0, 0}, narrow, Spread::rows)};
}

// Of every product of paths and shapes, a part with each path on each kind of shape is quick. The
// rest, whose names tell, is slow.
const PathsOnKinds kPaths = on_kinds(cuda_paths(), {{{1, 1}, {1, 25}, {16, 1}},
                                                    {{97, 7}},
                                                    {{2500, 25}, {1003, 50}, {700, 100}},
                                                    {{33, 301}, {333, 300}, {64, 1025}}});

INSTANTIATE_TEST_SUITE_P(CudaHost, EveryPath, testing::ValuesIn(kPaths.chosen), path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostRest, EveryPath, testing::ValuesIn(kPaths.rest), path_name);
INSTANTIATE_TEST_SUITE_P(CudaHost, ManyTies, testing::ValuesIn(cuda_paths()), path_name);

/// Whole and half groups of the plane and steps of it, and both sides of the largest dim that has
/// passes of many queries.
const PathsOnKinds kPlanePaths = on_kinds(plane_paths(), {{{1, 1}, {16, 1}},
                                                          {{97, 7}, {33, 3}, {257, 8}},
                                                          {{1000, 25}, {777, 100}},
                                                          {{33, 301}, {333, 320}},
                                                          {{200, 321}, {64, 1025}}});

INSTANTIATE_TEST_SUITE_P(CudaHostPlane, EveryPath, testing::ValuesIn(kPlanePaths.chosen),
                         path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostPlaneRest, EveryPath, testing::ValuesIn(kPlanePaths.rest),
                         path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostPlane, ManyTies, testing::ValuesIn(plane_paths()), path_name);
/// Where vectors and what passes over the plane need take more than tiles do.
const PathsOnKinds kTilePaths =
    on_kinds(tiles_alone_paths(), {{{1, 1}, {33, 3}}, {{1000, 25}, {777, 100}}, {{333, 320}}});
INSTANTIATE_TEST_SUITE_P(CudaHostTiles, EveryPath, testing::ValuesIn(kTilePaths.chosen), path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostTilesRest, EveryPath, testing::ValuesIn(kTilePaths.rest),
                         path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostTiles, ManyTies, testing::ValuesIn(tiles_alone_paths()),
                         path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostTiles, DamagedRows, testing::ValuesIn(tiles_alone_paths()),
                         path_name);
INSTANTIATE_TEST_SUITE_P(CudaHost, DamagedRows, testing::ValuesIn(cuda_paths()), path_name);
INSTANTIATE_TEST_SUITE_P(CudaHostPlane, DamagedRows, testing::ValuesIn(plane_paths()), path_name);

class CudaHost : public testing::Test {
  protected:
    void SetUp() override { fake_cuda::reset({}); }
    void TearDown() override { expect_no_leaks(); }

    static Query nearest(const format::Model& model, Row row, std::size_t k = 10) {
        const auto vector = model.vector(row);
        return {kernels::Cosine{vector_of({vector.begin(), vector.end()})}, k, {}, {}};
    }

    TempDir dir_;
};

// A block's loop over rows ends when its next row lies behind the last. That number has 32 bits
// too.
TEST_F(CudaHost, NoLoopOverTheRowsOfAShardWraps) {
    using namespace kernels::cuda;
    const auto last_row = static_cast<std::uint32_t>(kMaxShardRows - 1);
    for (const std::uint32_t block_rows : {8U, 32U, 64U, 256U, 4096U, 8192U}) {
        for (std::uint32_t processors = 1; processors <= 4096;
             processors += processors < 300 ? 1 : 379) {
            const std::uint32_t round = blocks_of_rounds(processors * 8, block_rows) * block_rows;
            ASSERT_GT(round, 0U);
            // In 32 bits, as the kernels add.
            ASSERT_GT(last_row + round, last_row)
                << processors << " processors, " << block_rows << " rows a block";
        }
    }
    // Few enough for no device at hand to lose blocks by it.
    EXPECT_EQ(blocks_of_rounds(4 * 264, 8192), 4U * 264);
}

TEST_F(CudaHost, MoreRowsThanADeviceTakesAreRefused) {
    using namespace kernels::cuda;
    EXPECT_TRUE(check_shard_rows(kMaxShardRows));
    const Status refused = check_shard_rows(format::kMaxRows);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_EQ(refused.error().message,
              "4294967294 rows are too many for one device, which takes 4278190080: spread them "
              "over several with "
              "--device, or use --engine cpu");
}

/// On every kind of device, with every residency: only the list of uncovered rows may be shorter
/// than what is needed says, and code tiles have room for these.
TEST_F(CudaHost, AShardUsesNoMoreMemoryThanItNeeds) {
    using namespace kernels::cuda;
    for (const Shape& shape : {Shape{3000, 30}, {100, kMaxInt8Dim + 1}}) {
        const auto model =
            make_model(dir_ / std::to_string(shape.dim), awkward_entries(shape.rows, shape.dim, 3));
        const std::size_t covered =
            model.rows() - kernels::planes::uncovered_rows(model.norms()).size();
        ASSERT_LT(covered, model.rows());
        for (unsigned bits = 0; bits < 32; ++bits) {
            const Residency residency{.vectors = (bits & 1) != 0,
                                      .plane = (bits & 2) != 0,
                                      .int8_codes = (bits & 4) != 0,
                                      .code_tiles = (bits & 8) != 0};
            if (!residency.vectors && !residency.plane) continue;
            Settings settings;
            settings.capability = (bits & 16) != 0 ? 75 : 90;
            fake_cuda::reset(settings);
            const auto device = read_device(0);
            ASSERT_TRUE(device);
            const auto shard = Shard::create(model, {0, model.rows()}, *device, residency, false);
            ASSERT_TRUE(shard) << bits;
            EXPECT_EQ((*shard)->device_bytes(), fake_cuda::live().device_bytes) << bits;
            const std::size_t needed =
                Shard::bytes_needed(model.rows(), model.dim(), device->shape, residency);
            const std::size_t used = (*shard)->device_bytes() + covered * sizeof(std::uint32_t);
            // Uncovered rows have no place in code tiles.
            if ((*shard)->code_capacity() == 0) {
                EXPECT_EQ(needed, used) << bits;
            } else {
                EXPECT_GE(needed, used) << bits;
                EXPECT_LT(needed, used + (used >> 3)) << bits;
            }
        }
    }
}

/// Fewer places than planned may mean a larger sample: one tile less, and its step halves.
TEST_F(CudaHost, CodeTilesOfFewerPlacesNeedNoMoreMemory) {
    using namespace kernels::cuda;
    const auto device = read_device(0);
    ASSERT_TRUE(device);
    const Residency residency{.vectors = true, .plane = true, .code_tiles = true};
    for (const std::size_t tiles : {std::size_t{2}, std::size_t{512}, std::size_t{1024}}) {
        const std::size_t rows = (tiles - 1) * kCodeTileRows + 1;
        const std::size_t needed = Shard::bytes_needed(rows, 8, device->shape, residency);
        for (const std::size_t uncovered : {std::size_t{0}, std::size_t{1}, rows}) {
            EXPECT_LE(device_bytes(ShardSizes(rows, 8, uncovered, device->shape, residency)),
                      needed)
                << tiles << " " << uncovered;
        }
    }
}

TEST_F(CudaHost, TheWaysToAnAnswerAreTheOnesMeant) {
    const auto model = make_model(dir_ / "model", random_entries(20000, 20, 3));
    const auto engine = require_engine("cuda", model, {});
    const auto pass_of = [&](const Query& query) {
        return to_string(run_one(*engine, query).certificate.pass);
    };
    EXPECT_EQ(pass_of(nearest(model, 5)), "plane");
    EXPECT_EQ(pass_of(nearest(model, 5, 1025)), "float64");
    // No more copies and waits than a pass needs; a single query is passed as a parameter.
    fake_cuda::arm({});
    EXPECT_EQ(pass_of(nearest(model, 5)), "plane");
    EXPECT_EQ(fake_cuda::count_of("cudaMemcpyAsync"), 0U);
    EXPECT_EQ(fake_cuda::count_of("cudaStreamSynchronize"), 1U);
    // A pass worth having looks at few rows again.
    EXPECT_LT(run_one(*engine, nearest(model, 5)).certificate.rescored, model.rows() / 10);
    // A row range is a pass of its own, but for a run of many queries. Of few rows all are scored.
    std::vector<Query> queries(20, nearest(model, 5));
    queries[7].filter.rows = kernels::RowRange{3, 4003};
    queries[8].filter.rows = kernels::RowRange{3, 2503};  // an eighth of the model
    queries[9].filter.rank_below = 2501;
    const auto many = run_all(*engine, queries);
    EXPECT_EQ(many[7].certificate.pass, Pass::int8);
    EXPECT_EQ(many[7].certificate.scanned, 4000U);
    EXPECT_EQ(many[8].certificate.pass, Pass::float64);
    EXPECT_EQ(many[8].certificate.scanned, 2500U);
    EXPECT_EQ(many[8].certificate.rescored, 2500U);
    EXPECT_EQ(many[9].certificate.pass, Pass::int8);
    EXPECT_EQ(many[10].certificate.pass, Pass::int8);
    const auto fewer = run_all(*engine, std::span(queries).first(10));
    EXPECT_EQ(fewer[7].certificate.pass, Pass::plane);
    EXPECT_EQ(fewer[7].certificate.scanned, 4000U);
    EXPECT_EQ(fewer[8].certificate.pass, Pass::float64);
    EXPECT_EQ(fewer[9].certificate.pass, Pass::plane);
    EXPECT_EQ(fake_cuda::count_of("launch_code_pass"), 1U);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 1U);
    EXPECT_EQ(fake_cuda::count_of("launch_few_rows"), 2U);
    // 20,000 ties overflow the lists of candidates.
    Query everything = nearest(model, 5);
    everything.k = 1024;
    EXPECT_EQ(pass_of(everything), "float64");
}

TEST_F(CudaHost, TheWaysThroughAPlaneAreTheOnesMeant) {
    const auto model = make_model(dir_ / "model", random_entries(20000, 20, 3));
    EngineOptions options;
    options.int8_pass = false;
    const auto engine = require_engine("cuda", model, options);
    EXPECT_EQ(facts_of(*engine).plane_pass_queries, kernels::cuda::kMaxPlanePass);
    EXPECT_EQ(facts_of(*engine).int8_pass_queries, 0U);
    const auto pass_of = [&](const Query& query) {
        return to_string(run_one(*engine, query).certificate.pass);
    };
    // A single query is passed as a parameter.
    fake_cuda::arm({});
    EXPECT_EQ(pass_of(nearest(model, 5)), "plane");
    EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 1U);
    EXPECT_EQ(fake_cuda::launches(), 1U);
    EXPECT_EQ(fake_cuda::count_of("cudaMemcpyAsync"), 0U);
    EXPECT_EQ(fake_cuda::count_of("cudaStreamSynchronize"), 1U);
    EXPECT_LT(run_one(*engine, nearest(model, 5)).certificate.rescored, model.rows() / 10);
    // More than the warps of a pass can vouch for.
    fake_cuda::arm({});
    EXPECT_EQ(pass_of(nearest(model, 5, 1024)), "float64");
    EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 0U);
    EXPECT_EQ(fake_cuda::count_of("launch_score"), 1U);
    EXPECT_EQ(pass_of(nearest(model, 5, 1025)), "float64");
    Query in_range = nearest(model, 5);
    in_range.filter.rows = kernels::RowRange{3, 17};
    EXPECT_EQ(pass_of(in_range), "plane");
    // Two whole passes, and one of what is left. The first two are under way together.
    std::vector<Query> queries(82, nearest(model, 5));
    fake_cuda::arm({});
    for (const Answer& answer : run_all(*engine, queries)) {
        EXPECT_EQ(answer.certificate.pass, Pass::plane);
        EXPECT_LT(answer.certificate.rescored, model.rows() / 10);
    }
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 3U);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 0U);
    EXPECT_EQ(fake_cuda::count_of("cudaEventSynchronize"), 3U);
    // A few are passed as a parameter.
    queries.resize(2);
    fake_cuda::arm({});
    (void)run_all(*engine, queries);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 1U);
    EXPECT_EQ(fake_cuda::count_of("cudaMemcpyAsync"), 0U);
    // One beside a query of another way is alone.
    queries[1].k = 1025;
    fake_cuda::arm({});
    (void)run_all(*engine, queries);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 0U);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 1U);
    // What wants more than such a pass gives is answered without it.
    queries.assign(10, nearest(model, 5, kernels::cuda::kMaxBatchHits));
    queries[3].k += 1;
    queries[5].excluded.resize(kernels::cuda::kMaxBatchKPlusExcluded - queries[5].k);
    std::iota(queries[5].excluded.begin(), queries[5].excluded.end(), 100);
    queries[6].excluded = queries[5].excluded;
    queries[6].excluded.push_back(7);
    queries[7].filter.rows = kernels::RowRange{3, 9000};
    fake_cuda::arm({});
    (void)run_all(*engine, queries);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 1U);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 3U);
}

TEST_F(CudaHost, TheWaysThroughCodeTilesAreTheOnesMeant) {
    const auto model = make_model(dir_ / "model", random_entries(20000, 20, 3));
    EngineOptions options;
    const auto engine = require_engine("cuda", model, options);
    EXPECT_EQ(facts_of(*engine).int8_pass_queries, 40U);
    EXPECT_EQ(facts_of(*engine).plane_pass_queries, kernels::cuda::kMaxPlanePass);
    // Many by the tiles, two whole passes, and what is too little for one alone by the plane.
    const std::vector<Query> queries(82, nearest(model, 5));
    Oracle oracle(model);
    fake_cuda::arm({});
    const auto answers = expect_oracle(*engine, oracle, queries);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const kernels::Certificate& certificate = answers[i].certificate;
        EXPECT_EQ(certificate.pass, i < 80 ? Pass::int8 : Pass::plane);
        EXPECT_LT(certificate.rescored, model.rows() / 100);
        if (i >= 80) continue;
        EXPECT_EQ(certificate.read_bytes,
                  model.rows() * model.dim() + certificate.rescored * model.dim() * sizeof(float));
    }
    EXPECT_EQ(fake_cuda::count_of("launch_code_pass"), 2U);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 2U);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 0U);
    // No more copies and waits than the passes need.
    EXPECT_EQ(fake_cuda::count_of("cudaMemcpyAsync"), 2U);
    EXPECT_EQ(fake_cuda::count_of("cudaEventSynchronize"), 2U);
    EXPECT_EQ(fake_cuda::count_of("cudaStreamSynchronize"), 2U);
}

/// Buffers have room for a query of all rows. A query of fewer rows has its own grid.
TEST(PlaneGrid, FewerUnitsNeedNoMoreRoom) {
    using kernels::cuda::kPlaneWarps;
    using kernels::cuda::PlaneGrid;
    constexpr std::size_t kSteps = 38;
    kernels::cuda::DeviceShape shape;
    shape.processors = 3;
    shape.shared_bytes = kernels::cuda::kPlaneStaticShared;  // none for bounds
    std::size_t room = 0;
    for (std::size_t units = 1; units < 3000; ++units) {
        const PlaneGrid grid(units, kSteps, shape);
        ASSERT_GE(grid.uppers(), room) << units;
        room = grid.uppers();
        const std::size_t warps = std::size_t{grid.blocks} * kPlaneWarps;
        ASSERT_LE(grid.fixed_rounds * warps, units);
        // Warps that are done early find room for what others leave, and all together for all.
        ASSERT_GE((grid.max_rounds - grid.fixed_rounds) * warps,
                  2 * (units - grid.fixed_rounds * warps));
    }
}

/// A few queries share the reads of the plane, unless they ask for many hits. More of them, and
/// those that do, share code tiles. A query of a range reads its rows alone.
TEST_F(CudaHost, AFewQueriesShareAPassOverThePlane) {
    const auto model = make_model(dir_ / "model", random_entries(20000, 20, 3));
    const auto engine = require_engine("cuda", model, {});
    Oracle oracle(model);
    struct Case {
        std::size_t queries;
        std::size_t k;
        std::uint64_t plane;
        std::uint64_t tiles;
    };
    for (const auto& [count, k, plane, tiles] : {Case{2, 10, 1, 0},
                                                 {16, 10, 1, 0},
                                                 {17, 10, 0, 1},
                                                 {5, 32, 1, 0},
                                                 {5, 33, 0, 1},
                                                 {2, 33, 1, 0}}) {
        std::vector<Query> queries;
        for (std::size_t i = 0; i < count; ++i) {
            queries.push_back(nearest(model, static_cast<Row>(5 + i), k));
            queries.back().excluded = {static_cast<Row>(17 * i), static_cast<Row>(5 + i)};
        }
        queries.back().filter.rank_below = 9000;
        fake_cuda::arm({});
        for (const Answer& answer : expect_oracle(*engine, oracle, queries)) {
            EXPECT_EQ(answer.certificate.pass, plane > 0 ? Pass::plane : Pass::int8);
            EXPECT_LT(answer.certificate.rescored, model.rows() / 10);
        }
        EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), plane) << count << " " << k;
        EXPECT_EQ(fake_cuda::count_of("launch_code_pass"), tiles) << count << " " << k;
        EXPECT_EQ(fake_cuda::launches(), 1U);
    }
    std::vector<Query> queries(3, nearest(model, 5));
    queries[1].filter.rows = kernels::RowRange{3, 9000};
    fake_cuda::arm({});
    (void)run_all(*engine, queries);
    EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), 1U);
    EXPECT_EQ(fake_cuda::launches(), 1U + fake_cuda::count_of("launch_plane_query"));
}

/// What more rows tie for than the pass over the plane lists takes the next way.
TEST_F(CudaHost, WhatOverflowsAPlanePassIsAnsweredByTheTilesOrAlone) {
    auto entries = random_entries(8000, 20, 3);
    const std::vector<float> same = entries[0].second;
    for (std::size_t i = 0; i < 4000; ++i) entries[i].second = same;
    const auto model = make_model(dir_ / "model", entries);
    Oracle oracle(model);
    for (const bool tiles : {true, false}) {
        EngineOptions options;
        options.int8_pass = tiles;
        const auto engine = require_engine("cuda", model, options);
        std::vector<Query> queries;
        for (Row row = 0; row < 10; ++row) queries.push_back(nearest(model, row * 790));
        std::size_t overflowed = 0;
        for (const Answer& answer : expect_oracle(*engine, oracle, queries))
            overflowed += answer.certificate.plane_overflowed ? 1U : 0U;
        EXPECT_GT(overflowed, 0U) << tiles;
        EXPECT_LT(overflowed, queries.size()) << tiles;
    }
}

/// A device that holds codes of one byte alone answers every query by them.
TEST_F(CudaHost, TilesAloneAnswerSingleQueriesToo) {
    const auto model = make_model(dir_ / "model", random_entries(20000, 20, 3));
    EngineOptions options;
    options.gpu_memory_bytes = bytes_without_vectors(model, 1, kTilesAlone);
    options.host_vectors = true;
    std::string said;
    options.log = [&](const std::string& line) { said += line; };
    const auto engine = require_engine("cuda", model, options);
    EXPECT_NE(said.find("the device holds codes of one byte and reads"), std::string::npos) << said;
    EXPECT_FALSE(facts_of(*engine).holds_vectors || facts_of(*engine).holds_plane);
    EXPECT_LE(facts_of(*engine).memory_bytes, options.gpu_memory_bytes);
    Oracle oracle(model);
    const Answer answer = expect_oracle(*engine, oracle, nearest(model, 5));
    EXPECT_EQ(answer.certificate.pass, Pass::int8);
    EXPECT_EQ(run_one(*engine, nearest(model, 5, 129)).certificate.pass, Pass::float64);
}

/// Long vectors are written by several threads and copied in pieces, and while a pass runs, on a
/// stream of their own.
TEST_F(CudaHost, LongQueriesAreCopiedBesideThePassBefore) {
    const auto model = make_model(dir_ / "model", random_entries(300, 4096, 3));
    std::vector<Query> queries;
    for (Row row = 0; row < 250; ++row) queries.push_back(nearest(model, row, 3));
    Oracle oracle(model);
    for (const bool lazy : {false, true}) {
        Settings settings;
        settings.lazy = lazy;
        settings.plane_pass_capacity = 100;
        fake_cuda::reset(settings);
        EngineOptions options;
        const auto engine = require_engine("cuda", model, options);
        fake_cuda::arm({});
        (void)expect_oracle(*engine, oracle, queries);
        EXPECT_EQ(fake_cuda::count_of("launch_code_pass"), 3U);
        EXPECT_EQ(fake_cuda::count_of("cudaStreamWaitEvent"), 2U);
    }
}

/// So that half of the vectors are written while a pass runs.
TEST_F(CudaHost, ABatchOfLongQueriesIsTwoPasses) {
    Settings settings;
    settings.plane_pass_capacity = 1024;
    fake_cuda::reset(settings);
    const auto model = make_model(dir_ / "model", random_entries(60, 1024, 3));
    EngineOptions options;
    const auto engine = require_engine("cuda", model, options);
    Oracle oracle(model);
    struct Case {
        std::size_t queries;
        std::uint64_t passes;
    };
    for (const auto& [count, passes] : {Case{768, 1}, {769, 2}, {1024, 2}, {1027, 2}}) {
        std::vector<Query> queries;
        for (std::size_t i = 0; i < count; ++i)
            queries.push_back(nearest(model, static_cast<Row>(i % 60)));
        fake_cuda::arm({});
        (void)expect_oracle(*engine, oracle, queries);
        EXPECT_EQ(fake_cuda::count_of("launch_code_pass"), passes) << count;
    }
}

/// Where a query's lists overflow, it is answered alone.
TEST_F(CudaHost, WhatOverflowsACodePassIsAnsweredAlone) {
    auto entries = random_entries(8000, 20, 3);
    const std::vector<float> same = entries[0].second;
    for (std::size_t i = 0; i < 4000; ++i) entries[i].second = same;
    const auto model = make_model(dir_ / "model", entries);
    EngineOptions options;
    const auto engine = require_engine("cuda", model, options);
    std::vector<Query> queries;
    for (Row row = 0; row < 20; ++row) queries.push_back(nearest(model, row * 397));
    Oracle oracle(model);
    std::size_t overflowed = 0;
    for (const Answer& answer : expect_oracle(*engine, oracle, queries)) {
        EXPECT_EQ(answer.certificate.plane_overflowed, answer.certificate.pass != Pass::int8);
        overflowed += answer.certificate.plane_overflowed ? 1U : 0U;
    }
    EXPECT_GT(overflowed, 0U);
    EXPECT_LT(overflowed, queries.size());
}

/// Tiles take room that a device may not have: the engine does without them then.
TEST_F(CudaHost, WithoutRoomForCodeTilesThePlaneAnswersBatches) {
    Settings settings;
    settings.plane_pass_capacity = 5;  // so that what takes the tiles' place is smaller
    fake_cuda::reset(settings);
    const auto model = make_model(dir_ / "model", random_entries(100000, 20, 3));
    EngineOptions options;
    const std::size_t whole = facts_of(*require_engine("cuda", model, options)).memory_bytes;
    options.gpu_memory_bytes = whole - 100000;
    const auto engine = require_engine("cuda", model, options);
    EXPECT_TRUE(facts_of(*engine).holds_vectors);
    EXPECT_EQ(facts_of(*engine).int8_pass_queries, 0U);
    EXPECT_EQ(facts_of(*engine).plane_pass_queries, 5U);
    EXPECT_LE(facts_of(*engine).memory_bytes, options.gpu_memory_bytes);
    Oracle oracle(model);
    (void)expect_oracle(*engine, oracle, nearest(model, 5));
}

/// Without planes queries are scored, up to eight at a time.
TEST_F(CudaHost, ASmallModelIsAnsweredAsALargeOne) {
    const auto model = make_model(dir_ / "model", random_entries(1000, 20, 3));
    const auto engine = require_engine("cuda", model, {});
    EXPECT_TRUE(facts_of(*engine).holds_vectors && facts_of(*engine).holds_plane);
    EngineOptions without;
    without.planes = false;
    const auto other = require_engine("cuda", model, without);
    EXPECT_FALSE(facts_of(*other).holds_plane);
    const std::vector<Query> queries(40, nearest(model, 5));
    Oracle oracle(model);
    for (const auto& [count, pass] : {std::pair{1, "plane"}, {2, "plane"}, {40, "int8"}}) {
        const auto some = std::span(queries).first(static_cast<std::size_t>(count));
        for (const Answer& answer : expect_oracle(*engine, oracle, some))
            EXPECT_EQ(to_string(answer.certificate.pass), pass) << count;
        fake_cuda::arm({});
        for (const Answer& answer : expect_oracle(*other, oracle, some))
            EXPECT_EQ(answer.certificate.pass, Pass::float64) << count;
        EXPECT_EQ(fake_cuda::launches(), (static_cast<std::uint64_t>(count) + 7) / 8);
    }
}

TEST_F(CudaHost, WithoutRoomForVectorsThePlaneIsThereAlone) {
    const auto model = make_model(dir_ / "model", awkward_entries(3000, 30, 3));
    Oracle oracle(model);
    for (const std::vector<int>& devices : {std::vector{0}, {0, 1, 0}}) {
        Settings settings;
        settings.lazy = true;
        settings.devices = 2;
        fake_cuda::reset(settings);
        std::vector<std::string> lines;
        EngineOptions options;
        options.devices.numbers = devices;
        options.spread = Spread::rows;
        options.int8_pass = false;
        options.gpu_memory_bytes = bytes_without_vectors(model, devices.size(), kPlaneAlone);
        options.host_vectors = true;
        options.log = [&](const std::string& line) { lines.push_back(line); };
        {
            const auto engine = require_engine("cuda", model, options);
            EXPECT_FALSE(facts_of(*engine).holds_vectors);
            // Once for all devices, and for as long as they may read.
            EXPECT_EQ(fake_cuda::count_of("cudaHostRegister"), 1U);
            EXPECT_EQ(fake_cuda::live().registrations, 1U);
            EXPECT_LE(fake_cuda::live().device_bytes, 2 * options.gpu_memory_bytes);
            EXPECT_EQ(facts_of(*engine).memory_bytes, fake_cuda::live().device_bytes);
            // 30 codes, 8 bytes of bounds, rounded up.
            const std::size_t int8_bytes = model.rows() * 48;
            EXPECT_EQ(facts_of(*engine).host_bytes, model.vectors().size_bytes() + int8_bytes);
            const auto said = [&](const char* words) {
                return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
                    return line.find(words) != std::string::npos;
                });
            };
            EXPECT_TRUE(said("the device holds the plane alone"));
            const std::vector<Query> queries(7, nearest(model, 5, 3));
            fake_cuda::arm({});
            for (const Answer& answer : expect_oracle(*engine, oracle, queries))
                EXPECT_EQ(answer.certificate.pass, Pass::plane);
            // In one pass, since int8 codes rule most survivors out.
            EXPECT_EQ(fake_cuda::count_of("launch_plane_pass"), devices.size());
            EXPECT_EQ(fake_cuda::count_of("launch_plane_query"), 0U);
            const format::PlaneShape plane{model.rows(), model.dim()};
            bool ruled_out = false;
            for (Row row = 0; row < model.rows(); row += 49) {
                if (!kernels::bound_covers(model.norms()[row])) continue;
                const kernels::Certificate certificate =
                    expect_oracle(*engine, oracle, nearest(model, row, 3)).certificate;
                ruled_out = ruled_out || certificate.rescored < certificate.survivors;
                EXPECT_EQ(certificate.read_bytes,
                          plane.bytes() + certificate.survivors * model.dim() +
                              certificate.rescored * model.dim() * sizeof(float));
            }
            EXPECT_TRUE(ruled_out);
            EXPECT_EQ(fake_cuda::live().registrations, 1U);
        }
        expect_no_leaks();
    }
}

/// Whichever allocation of the start fails: the engine is not made, or serves without int8 codes.
TEST_F(CudaHost, ThePlaneAloneDoesWithoutInt8Rows) {
    const auto model = make_model(dir_ / "model", awkward_entries(3000, 30, 3));
    EngineOptions options;
    options.int8_pass = false;
    options.host_vectors = true;
    options.gpu_memory_bytes = bytes_without_vectors(model, 1, kPlaneAlone);
    Oracle oracle(model);
    std::size_t without = 0;
    for (std::uint64_t at = 1;; ++at) {
        Settings settings;
        settings.call = {at, 2};  // cudaErrorMemoryAllocation
        fake_cuda::reset(settings);
        std::string lines;
        options.log = [&](const std::string& line) { lines += line + "\n"; };
        {
            const auto engine = kernels::make_engine(EngineKind::cuda, model, options);
            const std::string failed = fake_cuda::injected();
            if (engine && lines.find("no page-locked memory for int8 codes") != std::string::npos) {
                ++without;
                EXPECT_EQ(facts_of(**engine).plane_pass_queries, 0U) << at;
                (void)expect_oracle(**engine, oracle, nearest(model, 5, 3));
            }
            if (failed.empty()) {
                ASSERT_TRUE(engine) << engine.error().message;
                break;
            }
        }
        expect_no_leaks();
    }
    EXPECT_GT(without, 0U);
    expect_no_leaks();
}

TEST_F(CudaHost, ThePlaneAloneNeedsPageLockedVectors) {
    const auto model = make_model(dir_ / "model", awkward_entries(3000, 30, 3));
    Settings settings;
    settings.refuse_pin = true;
    fake_cuda::reset(settings);
    EngineOptions options;
    options.int8_pass = false;
    options.host_vectors = true;
    options.gpu_memory_bytes = bytes_without_vectors(model, 1, kPlaneAlone);
    const auto engine = kernels::make_engine(EngineKind::cuda, model, options);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, ErrorCode::unavailable);
    for (const char* words :
         {"cudaHostRegister", "raise the limit on locked memory", "--device", "--engine cpu"}) {
        EXPECT_NE(engine.error().message.find(words), std::string::npos) << engine.error().message;
    }
    EXPECT_EQ(fake_cuda::last_error(), 0);
    expect_no_leaks();
}

TEST_F(CudaHost, SaysWhenMemoryIsShortForThePlaneAlone) {
    const auto model = make_model(dir_ / "model", awkward_entries(3000, 30, 3));
    for (const bool planes : {true, false}) {
        fake_cuda::reset({});
        EngineOptions options;
        options.planes = planes;
        options.gpu_memory_bytes = 100000;
        const auto engine = kernels::make_engine(EngineKind::cuda, model, options);
        ASSERT_FALSE(engine);
        EXPECT_EQ(engine.error().code, ErrorCode::unavailable);
        EXPECT_EQ(engine.error().message.find("without its vectors") != std::string::npos, planes)
            << engine.error().message;
        EXPECT_NE(engine.error().message.find("has 0 MB by --gpu-memory"), std::string::npos)
            << engine.error().message;
        EXPECT_EQ(fake_cuda::count_of("cudaMalloc"), 0U);
        expect_no_leaks();
    }
}

/// Every shard has a floor of its own; what holds for all of them is the highest.
TEST_F(CudaHost, CertificateHoldsForShardsThatDiffer) {
    constexpr std::size_t kRows = 12000;
    const std::vector<float> asked(20, 1.0F);
    // The nearer half first, then the other way round; keys keep the order.
    for (const bool nearer_first : {true, false}) {
        const TempDir dir;
        auto entries = random_entries(kRows, 20, 9);
        for (std::size_t i = 0; i < kRows; ++i) {
            entries[i].first = std::to_string(100000 + i);
            if ((i < kRows / 2) != nearer_first) continue;
            for (float& value : entries[i].second) value += 1.0F;
        }
        const auto model = make_model(dir / "model", entries);
        Oracle oracle(model);
        EngineOptions options;
        options.devices.numbers = {0, 0, 0, 0};
        options.spread = Spread::rows;
        const auto engine = require_engine("cuda", model, options);
        const std::vector<Query> queries(4, Query{kernels::Cosine{vector_of(asked)}, 5, {}, {}});
        for (const std::size_t size : {std::size_t{1}, queries.size()}) {
            const auto some = std::span(queries).first(size);
            for (const Answer& answer : expect_oracle(*engine, oracle, some)) {
                const auto above = static_cast<std::uint64_t>(
                    std::ranges::count_if(oracle.order(queries[0]), [&](const Hit& hit) {
                        return hit.score >= answer.certificate.rejected_below;
                    }));
                EXPECT_GE(answer.certificate.rescored, above);
                EXPECT_LE(answer.certificate.rejected_below, answer.hits.back().score);
                EXPECT_LT(answer.certificate.rescored, kRows / 2);
            }
        }
    }
}

TEST_F(CudaHost, RowsAreSplitAtWholeGroups) {
    using kernels::RowRange;
    using kernels::cuda::split_rows;
    EXPECT_EQ(split_rows({0, 100}, 1), (std::vector<RowRange>{{0, 100}}));
    EXPECT_EQ(split_rows({0, 100}, 2), (std::vector<RowRange>{{0, 32}, {32, 100}}));
    EXPECT_EQ(split_rows({5, 40}, 2), (std::vector<RowRange>{{5, 40}}));
    EXPECT_EQ(split_rows({5, 70}, 3), (std::vector<RowRange>{{5, 32}, {32, 70}}));
    EXPECT_EQ(split_rows({64, 65}, 4), (std::vector<RowRange>{{64, 65}}));
    EXPECT_TRUE(split_rows({7, 7}, 3).empty());
}

TEST_F(CudaHost, AllocatesNothingForAQuery) {
    const auto model = make_model(dir_ / "model", awkward_entries(3000, 30, 3));
    for (const bool planes : {false, true}) {
        EngineOptions options;
        options.devices.numbers = {0, 0};
        options.time_device = true;
        options.planes = planes;
        const auto engine = require_engine("cuda", model, options);
        const fake_cuda::Live before = fake_cuda::live();
        EXPECT_EQ(before.registrations, 0U)
            << "what was pinned for the upload is released after it";
        EXPECT_EQ(facts_of(*engine).memory_bytes, before.device_bytes);
        fake_cuda::arm({});
        std::vector<Query> queries(300, nearest(model, 0));
        queries[1].k = 2000;
        queries[2].kind = kernels::CosMul{{vector_of(std::vector<float>(30, 1.0F))},
                                          {vector_of(std::vector<float>(30, 2.0F))}};
        queries[3].kind = kernels::CountBefore{vector_of(std::vector<float>(30, 1.0F)), 7};
        for (Row row = 0; row < 1500; ++row) queries[4].excluded.push_back(row);
        queries[5].filter.rows = kernels::RowRange{1, 100};
        for (int i = 0; i < 3; ++i) (void)run_all(*engine, queries);
        for (const char* name : {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost",
                                 "cudaHostRegister", "cudaEventCreate", "cudaEventCreateWithFlags",
                                 "cudaStreamCreateWithFlags", "cudaMemGetInfo"}) {
            EXPECT_EQ(fake_cuda::count_of(name), 0U) << name;
        }
        EXPECT_EQ(fake_cuda::live(), before);
    }
}

TEST_F(CudaHost, TimesTheDeviceWhereThatIsAskedFor) {
    const auto model = make_model(dir_ / "model", awkward_entries(300, 30, 3));
    for (const bool lazy : {false, true}) {
        Settings settings;
        settings.lazy = lazy;
        settings.devices = 2;
        fake_cuda::reset(settings);
        for (const bool timed : {false, true}) {
            EngineOptions options;
            options.devices.numbers = {0, 1};
            options.time_device = timed;
            const auto engine = require_engine("cuda", model, options);
            std::vector<Query> queries(5, nearest(model, 0));
            queries[1].k = 2000;
            queries[2].kind = kernels::CosMul{{vector_of(std::vector<float>(30, 1.0F))}, {}};
            for (const Answer& answer : run_all(*engine, queries)) {
                if (timed) {
                    EXPECT_GT(answer.certificate.device_ms, 0);
                } else {
                    EXPECT_EQ(answer.certificate.device_ms, 0);
                }
            }
        }
    }
}

/// Larger than a piece of the upload, so that pieces and shards do not end together. dim 4096 needs
/// no padding, 4095 does.
TEST_F(CudaHost, UploadsModelsOfSeveralPieces) {
    for (const std::size_t dim : {std::size_t{4096}, std::size_t{4095}}) {
        std::vector<Entry> entries;
        for (std::size_t i = 0; i < 9000; ++i) {
            // Cheap to make, and different for every row.
            std::vector<float> vector(dim, 1.0F);
            for (std::size_t j = 0; j < 14; ++j)
                vector[j * 150] = (i >> j & 1) != 0 ? 40.0F : -40.0F;
            entries.emplace_back("w" + std::to_string(i), std::move(vector));
        }
        const TempDir dir;
        const auto model = make_model(dir / "model", entries);
        entries.clear();
        Oracle oracle(model);
        for (const auto& [pin, spread] :
             {std::pair{true, Spread::rows}, {true, Spread::queries}, {false, Spread::rows}}) {
            Settings settings;
            settings.lazy = true;
            settings.devices = 2;
            fake_cuda::reset(settings);
            EngineOptions options;
            options.devices.numbers = {0, 1, 0};
            options.spread = spread;
            options.pin = pin;
            const auto engine = require_engine("cuda", model, options);
            // Three pieces of the vectors, and the plane.
            EXPECT_EQ(fake_cuda::count_of("cudaHostRegister"), pin ? 4U : 0U);
            EXPECT_EQ(fake_cuda::live().registrations, 0U);
            for (const Row row : {0U, 2999U, 3000U, 4096U, 6000U, 8191U, 8999U})
                (void)expect_oracle(*engine, oracle, nearest(model, row, 3));
        }
    }
}

TEST_F(CudaHost, ARefusedPinIsNoFault) {
    const auto model = make_model(dir_ / "model", awkward_entries(300, 30, 3));
    Oracle oracle(model);
    for (const int refusal : {0, 1, 2, 304, 801}) {
        Settings settings;
        settings.lazy = true;
        settings.refuse_pin = refusal == 0;
        fake_cuda::reset(settings);
        std::uint64_t call = 0;
        if (refusal != 0) {
            // Which call pins, a run without a fault tells.
            for (call = 1; fake_cuda::injected() != "cudaHostRegister"; ++call) {
                fake_cuda::arm({call, refusal});
                (void)kernels::make_engine(EngineKind::cuda, model, {});
                ASSERT_LT(call, 1000U);
            }
            fake_cuda::arm({call - 1, refusal});
        }
        std::vector<std::string> lines;
        EngineOptions options;
        options.log = [&](const std::string& line) { lines.push_back(line); };
        const auto engine = require_engine("cuda", model, options);
        EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("pinning is refused") != std::string::npos &&
                   line.find("cudaHostRegister") != std::string::npos;
        }));
        (void)expect_oracle(*engine, oracle, nearest(model, 0));
    }
}

TEST_F(CudaHost, ReadsEveryDeviceItIsGiven) {
    const auto model = make_model(dir_ / "model", awkward_entries(300, 30, 3));
    Settings settings;
    settings.devices = 4;
    fake_cuda::reset(settings);
    EngineOptions options;
    options.devices.all = true;
    {
        const auto engine = require_engine("cuda", model, options);
        // Each has one for passes and one for copies beside them.
        EXPECT_EQ(fake_cuda::live().streams, 8U);
        Oracle oracle(model);
        (void)expect_oracle(*engine, oracle, nearest(model, 0));
        EXPECT_EQ(engine->kind(), EngineKind::cuda);
        for (const char* device : {"device 0", "device 1", "device 2", "device 3", "Fake GPU"}) {
            EXPECT_NE(engine->description().find(device), std::string::npos)
                << engine->description();
        }
    }
    options.devices.all = false;
    for (const std::vector<int>& devices : {std::vector<int>{4}, {-1}, {0, 1, 7}, {}}) {
        options.devices.numbers = devices;
        const auto engine = kernels::make_engine(EngineKind::cuda, model, options);
        ASSERT_FALSE(engine);
        EXPECT_EQ(engine.error().code, ErrorCode::unavailable);
        expect_no_leaks();
    }
}

TEST_F(CudaHost, SaysWhenMemoryIsShort) {
    const auto model = make_model(dir_ / "model", awkward_entries(3000, 301, 3));
    // From nothing to enough: every size that is too small is refused with advice, and never by a
    // call that fails.
    fake_cuda::reset({});
    std::optional<std::size_t> enough;
    for (std::size_t bytes = 1 << 20; !enough && bytes < std::size_t{1} << 30;
         bytes += bytes / 16) {
        Settings settings;
        settings.memory_bytes = bytes;
        fake_cuda::reset(settings);
        const auto engine = kernels::make_engine(EngineKind::cuda, model, {});
        if (engine) {
            enough = bytes;
            Oracle oracle(model);
            (void)expect_oracle(**engine, oracle, nearest(model, 0));
        } else {
            EXPECT_EQ(engine.error().code, ErrorCode::unavailable)
                << bytes << ": " << engine.error().message;
            EXPECT_NE(engine.error().message.find("--engine cpu"), std::string::npos)
                << engine.error().message;
            expect_no_leaks();
        }
    }
    EXPECT_TRUE(enough);
}

TEST_F(CudaHost, SaysWhenTheDeviceIsTooOldOrTheBuildHasNoCodeForIt) {
    const auto model = make_model(dir_ / "model", random_entries(30, 4, 3));
    Settings old;
    old.capability = 70;
    Settings unknown;
    unknown.capability = 123;
    unknown.has_code = false;
    for (const auto& [settings, words] : {std::pair{old, "7.0"}, {unknown, "12.3"}}) {
        for (const auto kind : {std::optional(EngineKind::cuda), std::optional<EngineKind>()}) {
            fake_cuda::reset(settings);
            const auto engine = kernels::make_engine(kind, model, {});
            ASSERT_FALSE(engine);
            EXPECT_EQ(engine.error().code, ErrorCode::unavailable);
            EXPECT_NE(engine.error().message.find(words), std::string::npos)
                << engine.error().message;
            EXPECT_EQ(fake_cuda::last_error(), 0);
            expect_no_leaks();
        }
    }
}

TEST_F(CudaHost, AutoTakesTheCpuOnlyWhereThereIsNoDevice) {
    const auto model = make_model(dir_ / "model", random_entries(30, 4, 3));
    for (const int devices : {0, -1}) {
        Settings settings;
        settings.devices = devices;
        fake_cuda::reset(settings);
        const auto chosen = kernels::make_engine(std::nullopt, model, {});
        ASSERT_TRUE(chosen);
        EXPECT_EQ((*chosen)->kind(), EngineKind::cpu);
        EXPECT_EQ(kernels::make_engine(EngineKind::cuda, model, {}).error().code,
                  ErrorCode::unavailable);
        EXPECT_FALSE(kernels::list_engines().front().unavailable.empty());
        EXPECT_EQ(kernels::count_devices(), 0U);
    }
    fake_cuda::reset({});
    EXPECT_EQ(kernels::count_devices(), 1U);
    EXPECT_EQ(require_engine("auto", model, {})->kind(), EngineKind::cuda);
    EXPECT_EQ(require_engine("cpu", model, {})->kind(), EngineKind::cpu);
    EXPECT_EQ(kernels::list_engines().front().kind, EngineKind::cuda);
    EXPECT_EQ(kernels::list_engines().front().unavailable, "");
}

}  // namespace
}  // namespace gloved::tests
