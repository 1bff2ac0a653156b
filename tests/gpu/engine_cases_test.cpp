// The cases that every engine must answer, on a GPU: whole, and shown as several.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/upload.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/thread_pool.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/engine_answers.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Spread;

enum class By {
    scores,       ///< no codes: the canonical scores of all rows
    int8,         ///< codes, wherever they can serve: code tiles for batches
    int8_mma,     ///< the same without wgmma
    int8_alone,   ///< code tiles on a device that holds nothing else
    plane,        ///< the same without code tiles
    plane_alone,  ///< the same on a device that holds no vectors
    both_alone,   ///< the plane and code tiles, without vectors
};

/// What a device needs for a model's codes of that kind, and no more.
std::size_t codes_alone_bytes(const format::Model& model, By by, bool lists) {
    const auto device = kernels::cuda::read_device(0);
    if (!device) throw std::runtime_error(device.error().message);
    std::size_t scratch = 0;
    (void)kernels::cuda::code_tiles_scratch_bytes(static_cast<std::uint32_t>(model.rows()),
                                                  scratch);
    const bool plane = by != By::int8_alone;
    const bool tiles = by != By::plane_alone;
    return (tiles ? scratch : 0) + kernels::cuda::Shard::bytes_needed(model.rows(), model.dim(),
                                                                      device->shape,
                                                                      {.vectors = false,
                                                                       .plane = plane,
                                                                       .int8_codes = plane,
                                                                       .code_tiles = tiles,
                                                                       .lists = lists});
}

EnginePath path_of(const std::string& name, std::vector<int> devices, By by = By::scores,
                   Spread spread = Spread::rows) {
    EnginePath path;
    path.name = name;
    path.make = [=](const format::Model& model, kernels::EngineOptions options) {
        options.devices.numbers = devices;
        options.spread = spread;
        options.planes = by != By::scores;
        options.int8_pass = by != By::plane && by != By::plane_alone;
        options.wgmma = by != By::int8_mma;
        const bool alone = by == By::plane_alone || by == By::both_alone || by == By::int8_alone;
        options.host_vectors = alone;
        if (alone) options.gpu_memory_bytes = codes_alone_bytes(model, by, options.lists);
        auto engine = require_engine("cuda", model, options);
        const kernels::GpuFacts facts = engine->gpu_facts().value();
        const bool plane = by != By::int8_alone && by != By::scores;
        if (facts.holds_plane != plane || facts.holds_vectors == alone)
            throw std::runtime_error("the engine does not hold what it should");
        return engine;
    };
    path.why_skip = [] { return no_device() ? std::string(kNoDevice) : std::string(); };
    return path;
}

/// The first two GPUs, or the only one twice.
std::vector<int> two_devices() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 1 ? std::vector{0, 1}
                                                                  : std::vector{0, 0};
}

std::vector<EnginePath> gpu_paths() {
    return {path_of("one", {0}), path_of("three_shards", {0, 0, 0}),
            path_of("seven_shards", {0, 0, 0, 0, 0, 0, 0}),
            path_of("two_replicas", two_devices(), By::scores, Spread::queries)};
}

std::vector<EnginePath> plane_paths() {
    return {path_of("int8_one", {0}, By::int8),
            path_of("int8_two_shards", two_devices(), By::int8),
            path_of("int8_seven_shards", {0, 0, 0, 0, 0, 0, 0}, By::int8),
            path_of("int8_two_replicas", two_devices(), By::int8, Spread::queries),
            path_of("int8_mma_one", {0}, By::int8_mma),
            path_of("int8_mma_two_shards", {0, 0}, By::int8_mma),
            path_of("plane_one", {0}, By::plane),
            path_of("plane_two_shards", {0, 0}, By::plane),
            path_of("plane_three_shards", {0, 0, 0}, By::plane),
            path_of("plane_two_replicas", two_devices(), By::plane, Spread::queries),
            path_of("plane_alone", {0}, By::plane_alone),
            path_of("both_alone", {0}, By::both_alone)};
}

std::vector<EnginePath> tiles_alone_paths() { return {path_of("int8_alone", {0}, By::int8_alone)}; }

const std::vector<Shape> kShapes = {{1, 1},     {1, 25},    {16, 1},    {97, 7},
                                    {33, 301},  {2500, 25}, {1003, 50}, {700, 100},
                                    {500, 200}, {333, 300}, {64, 1025}, {40, 4096}};

INSTANTIATE_TEST_SUITE_P(Gpu, EveryPath, testing::ValuesIn(on_shapes(gpu_paths(), kShapes)),
                         path_name);
INSTANTIATE_TEST_SUITE_P(Gpu, ManyTies, testing::ValuesIn(gpu_paths()), path_name);

/// Half a group and steps that are not whole; one, two and more loads a row;
/// dims for which a kernel multiplies more than there is; both sides of the
/// largest dim that passes of many queries take.
const std::vector<Shape> kPlaneShapes = {
    {1, 1},     {16, 1},    {33, 3},     {97, 7},     {777, 301}, {999, 31},
    {5000, 25}, {1003, 50}, {1003, 80},  {700, 100},  {700, 130}, {500, 200},
    {333, 256}, {333, 300}, {5000, 320}, {5000, 321}, {64, 1025}, {40, 4096}};

INSTANTIATE_TEST_SUITE_P(GpuPlane, EveryPath,
                         testing::ValuesIn(on_shapes(plane_paths(), kPlaneShapes)), path_name);
INSTANTIATE_TEST_SUITE_P(GpuPlane, ManyTies, testing::ValuesIn(plane_paths()), path_name);
/// Where vectors and what passes over the plane need take more than tiles do.
const std::vector<Shape> kTileShapes = {{1, 1},     {33, 3},    {5000, 25}, {1003, 80},
                                        {700, 130}, {333, 300}, {5000, 320}};
INSTANTIATE_TEST_SUITE_P(GpuTiles, EveryPath,
                         testing::ValuesIn(on_shapes(tiles_alone_paths(), kTileShapes)), path_name);
INSTANTIATE_TEST_SUITE_P(GpuTiles, ManyTies, testing::ValuesIn(tiles_alone_paths()), path_name);
INSTANTIATE_TEST_SUITE_P(GpuTiles, DamagedRows, testing::ValuesIn(tiles_alone_paths()), path_name);
INSTANTIATE_TEST_SUITE_P(Gpu, DamagedRows, testing::ValuesIn(gpu_paths()), path_name);
INSTANTIATE_TEST_SUITE_P(GpuPlane, DamagedRows, testing::ValuesIn(plane_paths()), path_name);

/// Enough rows for thresholds of every kind: what a pass over codes hands on is
/// told from what it answers itself. Larger batches are answered by `batches`,
/// smaller ones by the plane.
void expect_the_passes_meant(const format::Model& model, Pass batches) {
    kernels::EngineOptions options;
    options.int8_pass = batches == Pass::int8;
    const auto engine = require_engine("cuda", model, options);
    std::vector<Query> queries;
    for (Row row = 0; row < 1100; ++row) {
        const auto vector = model.vector(row * 37);
        queries.push_back(
            {kernels::Cosine{vector_of({vector.begin(), vector.end()})}, 1 + row % 40, {row}, {}});
        if (row % 5 == 3) queries.back().filter.rank_below = 20000;
        if (row % 7 == 3) queries.back().filter.min_score = 0.3;
    }
    Oracle oracle(model);
    const auto check = [&](std::span<const Query> asked) {
        for (const Answer& answer : expect_oracle(*engine, oracle, asked)) {
            const bool hits_of_tiles =
                batches == Pass::int8 && asked.size() > 2 && answer.hits.size() > 32;
            EXPECT_EQ(answer.certificate.pass,
                      asked.size() > 16 || hits_of_tiles ? batches : Pass::plane);
            EXPECT_LE(answer.certificate.rescored, model.rows());
        }
    };
    for (const std::size_t size :
         {std::size_t{3}, std::size_t{31}, std::size_t{65}, std::size_t{128}, queries.size()}) {
        check(std::span(queries).last(size));
    }
    for (std::size_t i = 0; i < 60; i += 2) check(std::span(queries).subspan(i, 2));
    for (std::size_t i = 0; i < 40; ++i) check(std::span(queries).subspan(i, 1));
}

TEST(GpuPlanePasses, AreTheOnesMeant) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    expect_the_passes_meant(make_model(dir / "model", random_entries(50000, 64, 3)), Pass::plane);
}

TEST(GpuTilePasses, AreTheOnesMeant) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    expect_the_passes_meant(make_model(dir / "model", random_entries(50000, 64, 3)), Pass::int8);
}

/// Vectors of which several threads write a batch's, in two passes, each beside
/// the one before.
TEST(GpuTilePasses, LongQueriesAreCopiedBesideThePassBefore) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    const auto model = make_model(dir / "model", random_entries(3000, 1030, 3));
    kernels::EngineOptions options;
    const auto engine = require_engine("cuda", model, options);
    std::vector<Query> queries;
    for (Row row = 0; row < 2500; ++row) {
        const auto vector = model.vector(row);
        queries.push_back(
            {kernels::Cosine{vector_of({vector.begin(), vector.end()})}, 5, {row}, {}});
    }
    Oracle oracle(model);
    for (const std::size_t size : {std::size_t{769}, std::size_t{1024}, queries.size()}) {
        const auto some = std::span(queries).first(size);
        for (const Answer& answer : expect_oracle(*engine, oracle, some))
            EXPECT_EQ(answer.certificate.pass, Pass::int8);
    }
}

/// Throws if a call failed.
template <class Result>
void require(const Result& result) {
    if (!result) throw std::runtime_error(result.error().message);
}

/// A shard of the whole model, with its plane, on the first device as if that
/// were as `facts` say.
std::unique_ptr<kernels::cuda::Shard> shard_on(const kernels::cuda::DeviceFacts& facts,
                                               const format::Model& model,
                                               bool code_tiles = false) {
    auto made = kernels::cuda::Shard::create(
        model, {0, model.rows()}, facts, {.vectors = true, .plane = true, .code_tiles = code_tiles},
        false);
    require(made);
    auto shard = *std::move(made);
    require(kernels::cuda::upload_vectors(model, std::array{shard.get()}, false, {}));
    require(shard->fill(model));
    kernels::ThreadPool pool(1);
    require(shard->fill_plane(kernels::planes::Plane(model, pool)));
    return shard;
}

/// The same on a device as if that had `processors` of them.
std::unique_ptr<kernels::cuda::Shard> shard_on_processors(const format::Model& model,
                                                          int processors, bool code_tiles = false,
                                                          bool wgmma = false) {
    auto device = kernels::cuda::read_device(0);
    require(device);
    device->shape.processors = processors;
    if (!wgmma) device->shape.wgmma = false;
    return shard_on(*device, model, code_tiles);
}

std::vector<kernels::cuda::PassQuery> pass_of(std::span<const Query> queries) {
    constexpr kernels::RowRange kAll{0, std::numeric_limits<std::size_t>::max()};
    std::vector<kernels::cuda::PassQuery> pass;
    for (const Query& query : queries) {
        pass.push_back({&std::get<kernels::Cosine>(query.kind).vector,
                        &query,
                        query.filter.rows.value_or(kAll),
                        {},
                        query.k});
    }
    return pass;
}

std::vector<kernels::Hit> hits_of(const kernels::cuda::ShardAnswer& answer) {
    std::vector<kernels::Hit> hits;
    for (const kernels::cuda::Found& found : answer.hits) hits.push_back({found.row, found.score});
    return hits;
}

/// Few processors, so that warps go through several units. Dims with one step, with
/// steps that fill no instruction, and with several chunks of instructions; queries for each
/// width of the pass, as many as it takes and fewer; shared memory as other devices have it, where
/// not all widths have room.
TEST(GpuPlanePasses, AnswerEveryWidth) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    if (!kernels::cuda::read_device(0)->shape.integer_products)
        GTEST_SKIP() << "skipped: this device has no passes over the plane";
    constexpr std::size_t kSharedOfOthers = std::size_t{99} << 10;
    for (const std::size_t dim :
         {1U, 7U, 8U, 9U, 32U, 33U, 100U, 160U, 161U, 200U, 300U, 320U, 321U, 768U, 1024U, 4096U}) {
        const TempDir dir;
        const std::size_t rows = dim > 1000 ? 500 : 9000;
        const auto model = make_model(dir / "model", random_entries(rows, dim, dim));
        Oracle oracle(model);
        // One multiprocessor raises its floor twice, eight have no time for that.
        for (const auto& [processors, less] :
             {std::pair(1, false), std::pair(8, false), std::pair(8, true)}) {
            auto device = kernels::cuda::read_device(0);
            require(device);
            device->shape.processors = processors;
            if (less) device->shape.shared_bytes = kSharedOfOthers;
            const auto shard = shard_on(*device, model);
            const std::size_t capacity_of_others = dim < 320 ? 32 : dim < 4096 ? 16 : 4;
            EXPECT_EQ(shard->plane_capacity(), less ? capacity_of_others : 32U);
            std::size_t answered = 0;
            std::size_t asked = 0;
            for (const std::size_t count : {2U, 4U, 5U, 8U, 9U, 16U, 27U}) {
                if (count > shard->plane_capacity()) continue;
                std::vector<Query> queries;
                for (Row row = 0; row < count; ++row) {
                    const auto vector = model.vector(row * 17);
                    queries.push_back(
                        {kernels::Cosine{vector_of({vector.begin(), vector.end()})}, 5, {}, {}});
                }
                ASSERT_TRUE(shard->start_plane_pass(pass_of(queries)));
                const auto waited = shard->wait();
                ASSERT_TRUE(waited) << waited.error().message;
                for (std::size_t i = 0; i < queries.size(); ++i) {
                    const auto answer = shard->answer(i);
                    ++asked;
                    if (answer.overflow) continue;
                    ++answered;
                    expect_identical(hits_of(answer), oracle.answer(queries[i]).hits,
                                     fmt::format("dim {}, query {} of {}, {} processors, less {}",
                                                 dim, i, count, processors, less));
                }
            }
            // In few dimensions too many rows have the same score, and one multiprocessor or one
            // with less memory lists fewer rows: there queries overflow.
            if (dim >= 7 && !less) {
                EXPECT_GT(answered, processors > 1 ? asked / 2 : 0) << dim;
            }
        }
    }
}

/// Queries for rows spread over the model, of all kinds that a pass over codes
/// takes.
std::vector<Query> queries_of(const format::Model& model, std::size_t count) {
    std::vector<Query> queries;
    for (std::size_t i = 0; i < count; ++i) {
        const auto row = static_cast<Row>(i * 7919 % model.rows());
        const auto vector = model.vector(row);
        const kernels::QueryVector query = vector_of({vector.begin(), vector.end()});
        if (!(query.norm > 0)) continue;
        queries.push_back({kernels::Cosine{query}, 1 + i % 17, {}, {}});
        if (i % 5 == 3)
            queries.back().filter.rank_below = static_cast<std::uint32_t>(model.rows() / 2);
    }
    return queries;
}

std::vector<std::vector<kernels::Hit>> oracle_answers(const format::Model& model,
                                                      std::span<const Query> queries) {
    Oracle oracle(model);
    std::vector<std::vector<kernels::Hit>> answers;
    for (const Query& query : queries) answers.push_back(oracle.answer(query).hits);
    return answers;
}

/// Answers of a pass over code tiles of a shard, against those wanted. Returns
/// how many overflowed.
std::size_t expect_code_answers(kernels::cuda::Shard& shard, std::span<const Query> queries,
                                std::span<const std::vector<kernels::Hit>> wanted,
                                const std::string& what) {
    const auto started = shard.start_code_pass(pass_of(queries));
    EXPECT_TRUE(started) << started.error().message;
    const auto waited = shard.wait();
    EXPECT_TRUE(waited) << waited.error().message;
    std::size_t overflowed = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const auto answer = shard.answer(i);
        overflowed += answer.overflow ? 1U : 0U;
        if (answer.overflow) continue;
        expect_identical(hits_of(answer), wanted[i], what + ", query " + std::to_string(i));
    }
    return overflowed;
}

/// Passes over code tiles by the instructions that their parameter allows:
/// wgmma, where the device has it, or mma.
struct GpuCodePasses : testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuCodePasses, testing::Bool(), [](const auto& suite) {
    return std::string(suite.param ? "wgmma" : "mma");
});

/// Every number of instructions, with tiles that are full and that are not; few
/// processors, so that blocks go through several tiles; one, two and four
/// warpgroups that take the same queries. Beyond 320, pieces of every size, and
/// of one to many pieces.
TEST_P(GpuCodePasses, AnswerForEveryWidthAndGrid) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    for (const std::size_t dim : {1U,   32U,  33U,  64U,  80U,  96U,  128U, 130U, 160U,  176U, 192U,
                                  224U, 256U, 288U, 320U, 321U, 400U, 480U, 512U, 1025U, 2000U}) {
        const TempDir dir;
        const auto model = make_model(dir / "model", random_entries(3000, dim, dim));
        const auto all = queries_of(model, dim > 400 ? 65 : 300);
        const auto wanted = oracle_answers(model, all);
        for (const int processors : {1, 3, 132}) {
            const auto shard = shard_on_processors(model, processors, true, GetParam());
            ASSERT_GT(shard->code_capacity(), 0U);
            for (const std::size_t count : {1U, 64U, 65U, 200U, 300U}) {
                if (count > all.size()) continue;
                const auto queries = std::span(all).first(count);
                const std::string what = fmt::format("dim {}, {} processors, {} queries", dim,
                                                     processors, queries.size());
                const std::size_t overflowed = expect_code_answers(*shard, queries, wanted, what);
                // With few lists or components, more rows come through than a
                // list takes. Random rows of many components are all nearly
                // orthogonal, so that many come through.
                if (dim <= 32 || processors == 1 || (dim > 512 && processors == 3)) continue;
                EXPECT_EQ(overflowed, 0U) << what;
            }
        }
    }
}

/// The last tile has one place, since a row of zeros has none. The largest pass.
TEST_P(GpuCodePasses, ALastTileOfOneRowAndARowWithoutAPlace) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    auto entries = random_entries(511 * kernels::cuda::kCodeTileRows + 2, 50, 5);
    entries[777].second.assign(50, 0.0F);
    const auto model = make_model(dir / "model", entries);
    const auto shard = shard_on_processors(model, 132, true, GetParam());
    const auto queries = queries_of(model, kernels::cuda::kMaxCodePass);
    const auto wanted = oracle_answers(model, queries);
    EXPECT_LT(expect_code_answers(*shard, queries, wanted, "65,410 rows"), queries.size() / 10);
}

/// Half the rows are one vector: queries near it overflow, and say so; the
/// others do not.
TEST_P(GpuCodePasses, TooManyTiesOverflow) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    auto entries = random_entries(40000, 64, 11);
    const std::vector<float> same = entries[1].second;
    for (std::size_t row = 1; row < entries.size(); row += 2) {
        entries[row].first = fmt::format("w{:06}", row);
        entries[row].second = same;
        entries[row - 1].first = fmt::format("w{:06}", row - 1);
    }
    const auto model = make_model(dir / "model", entries);
    const auto shard = shard_on_processors(model, 132, true, GetParam());
    std::vector<Query> queries;
    for (Row row = 0; row < 400; ++row) {
        const auto vector = model.vector(row % 4 == 1 ? 1 : row * 2);
        queries.push_back({kernels::Cosine{vector_of({vector.begin(), vector.end()})}, 5, {}, {}});
    }
    const auto wanted = oracle_answers(model, queries);
    EXPECT_EQ(expect_code_answers(*shard, queries, wanted, "ties"), queries.size() / 4);
}

/// So many rows that blocks drop some again and again, and so many of one score
/// that they cannot.
TEST(GpuFewRows, AnswerWhateverTheNumberOfRows) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const TempDir dir;
    auto entries = random_entries(90000, 16, 21);
    for (std::size_t row = 0; row < entries.size(); ++row) {
        entries[row].first = fmt::format("w{:06}", row);
        if (row >= 60000) entries[row].second = entries[60000].second;
    }
    const auto model = make_model(dir / "model", entries);
    const auto engine = require_engine("cuda", model, {});
    std::vector<Query> queries;
    for (Row row = 0; row < 200; ++row) {
        const auto vector = model.vector(row * 450);
        queries.push_back(
            {kernels::Cosine{vector_of({vector.begin(), vector.end()})}, 1 + row % 128, {row}, {}});
        if (row % 2 == 0) queries.back().filter.rank_below = 1 + row * 20;
        if (row % 2 == 1) queries.back().filter.rows = kernels::RowRange{row * 400, row * 420};
    }
    Oracle oracle(model);
    std::size_t scored = 0;
    for (const std::size_t count : {queries.size(), std::size_t{3}}) {
        const auto some = std::span(queries).last(count);
        for (const Answer& answer : expect_oracle(*engine, oracle, some))
            scored += answer.certificate.pass == Pass::float64 ? 1U : 0U;
    }
    // Of most, but not where the rows are those of one score.
    EXPECT_GT(scored, queries.size() * 3 / 5);
    EXPECT_LT(scored, queries.size());
}

/// Half of the rows have one score: more than a pass finds for a query. Of the queries beside it,
/// whose rows are in other lists, none is lost. On one processor, where all share its lists, those
/// that find room have the right answer.
TEST(GpuPlanePasses, AQueryWithTooManyRowsOverflows) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    using namespace kernels::cuda;
    constexpr std::size_t kRows = 65536;
    const TempDir dir;
    auto entries = random_entries(kRows, 32, 11);
    const std::vector<float> same = entries[16].second;
    for (std::size_t row = 0; row < kRows; ++row) {
        entries[row].first = fmt::format("w{:06}", row);  // so that the row is the place
        if (row / kernels::planes::kGroupRows % 2 == 1) entries[row].second = same;
    }
    const auto model = make_model(dir / "model", entries);
    const auto device = read_device(0);
    require(device);
    if (!device->shape.integer_products)
        GTEST_SKIP() << "skipped: this device has no passes over the plane";
    Oracle oracle(model);
    std::vector<Query> queries;
    for (Row row = 0; row < 8; ++row) {
        const auto vector = model.vector(row == 3 ? 16 : row);
        queries.push_back({kernels::Cosine{vector_of({vector.begin(), vector.end()})}, 5, {}, {}});
    }
    for (const int processors : {device->shape.processors, 1}) {
        const auto shard = shard_on_processors(model, processors);
        ASSERT_TRUE(shard->start_plane_pass(pass_of(queries)));
        const auto waited = shard->wait();
        ASSERT_TRUE(waited) << waited.error().message;
        for (std::size_t i = 0; i < queries.size(); ++i) {
            const ShardAnswer answer = shard->answer(i);
            if (i == 3 || processors > 1) {
                EXPECT_EQ(answer.overflow, i == 3) << i;
            }
            if (answer.overflow) continue;
            expect_identical(hits_of(answer), oracle.answer(queries[i]).hits,
                             fmt::format("query {}, {} processors", i, processors));
        }
    }
}

/// Asks a shard the same batch over and over. Returns the first error or the
/// first wrong answer, or «».
std::string fault_of_passes(const format::Model& model, int passes) {
    const auto queries = queries_of(model, kernels::cuda::kMaxPlanePass);
    const auto wanted = oracle_answers(model, queries);
    const auto shard = shard_on_processors(model, 132);
    for (int i = 0; i < passes; ++i) {
        if (Status started = shard->start_plane_pass(pass_of(queries)); !started)
            return started.error().message;
        if (Status waited = shard->wait(); !waited) return waited.error().message;
        for (std::size_t query = 0; query < queries.size(); ++query) {
            const auto answer = shard->answer(query);
            if (!answer.overflow && hits_of(answer) != wanted[query])
                return fmt::format("pass {}, query {}: another answer", i, query);
        }
    }
    return {};
}

/// Blocks of a launch wait for one another while those of the other model want
/// the device too.
TEST(GpuPlanePasses, TwoModelsShareADevice) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    if (!kernels::cuda::read_device(0)->shape.integer_products)
        GTEST_SKIP() << "skipped: this device has no passes over the plane";
    const TempDir dir;
    const auto wide = make_model(dir / "wide", random_entries(3000, 300, 1));
    const auto narrow = make_model(dir / "narrow", random_entries(3000, 256, 2));
    constexpr int kPasses = 3000;
    std::string of_narrow;
    std::jthread beside([&] { of_narrow = fault_of_passes(narrow, kPasses); });
    EXPECT_EQ(fault_of_passes(wide, kPasses), "");
    beside.join();
    EXPECT_EQ(of_narrow, "");
}

/// On few processors a warp has many units of rows: the threshold comes from the
/// first of them, and the last are taken by whoever is done. A block that has no
/// shared memory for the bounds of its rows keeps them in the device's.
TEST(GpuPlaneQueries, ManyUnitsAWarp) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    using namespace kernels::cuda;
    constexpr std::size_t kRows = 20011;  // the last unit is not whole
    for (const std::size_t dim : {33U, 300U, 333U}) {
        const TempDir dir;
        const auto model = make_model(dir / "model", random_entries(kRows, dim, dim));
        std::vector<Query> queries = queries_of(model, 24);
        for (std::size_t i = 0; i < queries.size(); i += 3)
            queries[i].filter.rows = kernels::RowRange{i * 100 + 7, kRows - i * 500};
        const auto wanted = oracle_answers(model, queries);
        for (const int processors : {1, 2}) {
            for (const bool room : {true, false}) {
                auto device = read_device(0);
                require(device);
                device->shape.processors = processors;
                if (!room) device->shape.shared_bytes = kPlaneStaticShared;
                const PlaneGrid grid(kRows / kUnitRows, (dim + 7) / 8, device->shape);
                ASSERT_GT(grid.fixed_rounds, 6U);
                ASSERT_EQ(grid.shares_bounds, room);
                const auto shard = shard_on(*device, model);
                const std::vector<PassQuery> pass = pass_of(queries);
                for (std::size_t i = 0; i < pass.size(); ++i) {
                    require(shard->start_plane_query(pass[i]));
                    require(shard->wait());
                    const std::string what = fmt::format("dim {}, {} processors, room {}, query {}",
                                                         dim, processors, room, i);
                    expect_identical(hits_of(shard->answer(0)), wanted[i], what);
                    // The threshold rules most rows out.
                    EXPECT_LT(shard->answer(0).facts.rescored, kRows / 4) << what;
                }
            }
        }
    }
}

}  // namespace
}  // namespace gloved::tests
