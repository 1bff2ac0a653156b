#include "kernels/cuda/shard_memory.hpp"

#include <algorithm>

#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/plane_grid.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr std::size_t kAlignment = 16;
/// Excluded rows that a pass can carry even where it takes few queries.
constexpr std::size_t kMinExcluded = std::size_t{1} << 16;

constexpr std::size_t divided_up(std::size_t value, std::size_t by) {
    return (value + by - 1) / by;
}
constexpr std::size_t rounded_up(std::size_t value, std::size_t to) {
    return divided_up(value, to) * to;
}

/// What a shard holds of a model.
DeviceModel lay_out_model(Arena& arena, const ShardSizes& n, ShardMemory& memory) {
    const bool tiles = n.code_pass > 0;
    const bool few = tiles && n.residency.vectors;
    memory.vectors = arena.device<float>(n.rows * n.stride, n.residency.vectors);
    DeviceModel model;
    model.vectors = memory.vectors;
    model.norms = arena.device<double>(n.rows);
    model.ranks = arena.device<std::uint32_t>(n.rows);
    model.uncovered = arena.device<std::uint32_t>(n.uncovered);
    memory.plane = arena.device<std::uint8_t>(n.plane.bytes() + kPlanePadding, n.residency.plane);
    if (n.residency.plane) {
        model.plane = {.bytes = memory.plane,
                       .groups = static_cast<std::uint32_t>(n.plane.groups()),
                       .steps = static_cast<std::uint32_t>(n.plane.steps())};
    }
    model.int8_codes = {
        .rows = arena.pinned<std::int8_t>(n.rows * n.int8_stride, n.int8_stride > 0),
        .stride = static_cast<std::uint32_t>(n.int8_stride)};
    model.code_tiles = {
        .codes = arena.device<std::int8_t>(n.tiles * kCodeTileRows * n.code_width, tiles),
        .ranges = arena.device<Int8Range>(n.tiles, tiles),
        .bounds = arena.device<Int8Bounds>(n.places, tiles),
        .rows = arena.device<std::uint32_t>(n.places, tiles),
        .places_of = arena.device<std::uint32_t>(n.rows, tiles),
        .places = static_cast<std::uint32_t>(n.places),
        .tiles = static_cast<std::uint32_t>(n.tiles),
        .width = static_cast<std::uint32_t>(n.code_width)};
    model.rows_by_rank = arena.device<std::uint32_t>(n.rows, few);
    model.memberships = arena.device<ListMask>(n.rows, n.residency.lists);
    model.list_rows =
        arena.device<std::uint32_t>(kMaxLists * kMaxFewRows, n.residency.lists && few);
    model.rows = static_cast<std::uint32_t>(n.rows);
    model.stride = static_cast<std::uint32_t>(n.stride);
    model.units = static_cast<std::uint32_t>(n.units);
    model.uncovered_count = static_cast<std::uint32_t>(n.uncovered);
    model.vectors_on_host = !n.residency.vectors;
    return model;
}

/// What passes write.
Workspace lay_out_work(Arena& arena, const ShardSizes& n) {
    constexpr std::size_t kScored = kMaxScoredQueries;
    const std::size_t plane_queries = std::max<std::size_t>(1, n.plane_pass);
    const bool tiles = n.code_pass > 0;
    const bool few = tiles && n.residency.vectors;
    const std::size_t keys = max_code_sample_keys(static_cast<std::uint32_t>(n.tiles));
    Workspace work;
    work.maxima = arena.device<float>(kScored * n.units);
    work.floors = arena.device<double>(kScored);
    work.counters = arena.device<std::uint32_t>(n.counters);
    work.found =
        arena.device<Found>(std::max(kScored * kFoundCapacity, plane_queries * kBatchFound));
    work.scores = arena.device<double>(n.rows);
    work.divisors = arena.device<double>(n.rows);
    work.candidate_scores = arena.device<float>(plane_queries * kMaxCandidates, n.residency.plane);
    work.uppers = arena.device<float>(n.uppers);
    work.code = {// Room for queries that fill the last panel.
                 .digits = arena.device<std::int8_t>(kMaxCodePass * n.code_width, tiles),
                 .facts = arena.device<planes::DigitFacts>(n.code_pass),
                 .floors = arena.device<double>(n.code_pass),
                 .cutoffs = arena.device<Int8SumCutoff>(n.code_pass),
                 .keys = arena.device<float>(n.code_pass * keys),
                 .kept = arena.device<CodeHit>(n.code_pass * kMaxKept),
                 .kept_counts = arena.device<std::uint32_t>(n.code_pass),
                 .marks = arena.device<std::uint32_t>(n.tiles * kMaxMarkedFilters * kKeysOfTile),
                 .counts = arena.device<std::uint32_t>(n.code_lists),
                 .lists = arena.device<CodeHit>(n.code_lists * kCodeListRoom)};
    work.few = {.best = arena.device<Found>(std::size_t{kMaxFewBlocks} * kMaxBatchHits, few),
                .counts = arena.device<std::uint32_t>(kMaxFewBlocks, few),
                .done = arena.device<std::uint32_t>(kMaxCodePass, few)};
    return work;
}

}  // namespace

InputLayout::InputLayout(std::size_t queries, std::size_t digit_bytes, std::size_t stride,
                         std::size_t excluded_rows)
    : excluded(rounded_up(queries * sizeof(DeviceQuery), kAlignment)),
      digits(excluded + rounded_up(excluded_rows * sizeof(std::uint32_t), kAlignment)),
      raw(digits + rounded_up(digit_bytes, kAlignment)),
      end(raw + rounded_up(queries * stride * sizeof(float), kAlignment)) {}

ShardSizes::ShardSizes(std::size_t shard_rows, std::size_t dim, std::size_t uncovered_rows,
                       const DeviceShape& shape, const Residency& held)
    : residency(held), rows(shard_rows), uncovered(uncovered_rows), plane{shard_rows, dim} {
    const auto width = static_cast<std::uint32_t>(dim);
    stride = held.vectors ? rounded_up(dim, kStrideFloats) : dim;
    units = divided_up(rows, kUnitRows);
    if (held.int8_codes && !held.vectors && dim <= kMaxInt8Dim)
        int8_stride = cuda::int8_stride(width);
    if (held.code_tiles) code_pass = code_pass_capacity();
    if (code_pass > 0) {
        places = rows - uncovered;
        tiles = code_tiles(places);
        code_width = cuda::code_width(width);
        code_lists = cuda::code_lists(shape);
    }
    // Without int8 codes, reading from the host what such a pass lets through takes longer than
    // answering query by query.
    if (held.plane && (held.vectors || int8_stride > 0))
        plane_pass = plane_pass_capacity(
            dim,
            static_cast<std::uint32_t>(int8_stride > 0 ? std::max(int8_stride, code_width) : 0),
            shape);
    if (held.plane) uppers = PlaneGrid(units, plane.steps(), shape).uppers();
    counters = std::max<std::size_t>(kMaxScoredQueries, plane_pass) * kCounters;
    inputs = std::max({std::size_t{kMaxScoreVectors}, plane_pass, code_pass});
    excluded = std::max(inputs * kMaxBatchKPlusExcluded, kMinExcluded);
    const std::size_t digit_bytes = plane.steps() * 2 * planes::kStepDims;
    input = InputLayout(inputs, digit_bytes, stride, excluded).end;
}

ShardMemory lay_out(Arena& arena, const ShardSizes& sizes) {
    ShardMemory memory;
    memory.model = lay_out_model(arena, sizes, memory);
    memory.work = lay_out_work(arena, sizes);
    memory.host_scores = arena.pinned<double>(sizes.rows);
    const std::size_t batch =
        std::max({std::size_t{kMaxScoredQueries}, sizes.plane_pass, sizes.code_pass});
    const std::size_t hits =
        std::max(std::size_t{kMaxScoredQueries} * kMaxHits, batch * kMaxBatchHits);
    for (ShardMemory::Slot& slot : memory.slots) {
        const bool used = &slot == &memory.slots.front() || sizes.code_pass + sizes.plane_pass > 0;
        slot.input = arena.device<std::byte>(sizes.input, used);
        slot.input_staging = arena.pinned<std::byte>(sizes.input, used);
        slot.answers = arena.pinned<DeviceAnswer>(batch, used);
        slot.hits = arena.pinned<Found>(hits, used);
    }
    memory.work.answers = memory.slots[0].answers;
    memory.work.hits = memory.slots[0].hits;
    return memory;
}

std::size_t device_bytes(const ShardSizes& sizes) {
    Arena arena(Arena::Mode::counts);
    (void)lay_out(arena, sizes);
    return arena.device_bytes();
}

}  // namespace gloved::kernels::cuda
