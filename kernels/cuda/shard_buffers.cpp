#include "kernels/cuda/shard_buffers.hpp"

#include <algorithm>
#include <utility>

#include "common/result.hpp"
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

/// The table: calls visit(buffer, elements) for each buffer of a shard. A buffer whose condition is
/// false has no elements.
template <class Visit>
void for_each_buffer(ShardBuffers& b, const ShardSizes& n, Visit visit) {
    const auto entry = [&](auto& buffer, std::size_t elements, bool condition = true) {
        visit(buffer, condition ? elements : 0);
    };
    const bool vectors = n.residency.vectors;
    const bool plane = n.residency.plane;
    entry(b.vectors, n.rows * n.stride, vectors);
    entry(b.norms, n.rows);
    entry(b.ranks, n.rows);
    entry(b.uncovered, n.uncovered);
    entry(b.plane, n.plane.bytes() + kPlanePadding, plane);
    entry(b.host_int8_codes, n.rows * n.int8_stride);

    entry(b.tile_codes, n.tiles * kCodeTileRows * n.code_width);
    entry(b.tile_ranges, n.tiles);
    entry(b.tile_bounds, n.places);
    entry(b.tile_rows, n.places);
    entry(b.tile_places, n.rows, n.code_pass > 0);

    constexpr std::size_t kScored = kMaxScoredQueries;
    const std::size_t plane_queries = std::max<std::size_t>(1, n.plane_pass);
    entry(b.maxima, kScored * n.groups);
    entry(b.floors, kScored);
    entry(b.counters, std::max(kScored, plane_queries) * kCounters);
    entry(b.found, std::max(kScored * kFoundCapacity, plane_queries * kBatchFound));
    entry(b.scores, n.rows);
    entry(b.divisors, n.rows);
    entry(b.candidate_scores, plane_queries * kMaxCandidates, plane);
    entry(b.uppers, n.uppers);
    // Room for queries that fill the last panel.
    entry(b.code_digits, kMaxCodePass * n.code_width, n.code_pass > 0);
    entry(b.code_facts, n.code_pass);
    entry(b.code_floors, n.code_pass);
    entry(b.code_cutoffs, n.code_pass);
    entry(b.code_keys, n.code_pass * max_code_sample_keys(static_cast<std::uint32_t>(n.tiles)));
    entry(b.code_kept, n.code_pass * kMaxKept);
    entry(b.code_kept_counts, n.code_pass);
    entry(b.code_marks, n.tiles * kMaxMarkedFilters * kKeysOfTile);
    entry(b.code_counts, n.code_lists);
    entry(b.code_hits, n.code_lists * kCodeListRoom);
    const bool few = n.code_pass > 0 && vectors;
    entry(b.rows_by_rank, n.rows, few);
    entry(b.memberships, n.rows, n.residency.lists);
    entry(b.list_rows, kMaxLists * kMaxFewRows, n.residency.lists && few);
    entry(b.few_best, std::size_t{kMaxFewBlocks} * kMaxBatchHits, few);
    entry(b.few_counts, kMaxFewBlocks, few);
    entry(b.few_done, kMaxCodePass, few);
    entry(b.host_scores, n.rows);

    const std::size_t batch = std::max({kScored, n.plane_pass, n.code_pass});
    for (ShardBuffers::Slot& slot : b.slots) {
        const bool used = &slot == &b.slots.front() || n.code_pass + n.plane_pass > 0;
        entry(slot.input, n.input, used);
        entry(slot.input_staging, n.input, used);
        entry(slot.answers, batch, used);
        entry(slot.hits, std::max(kScored * kMaxHits, batch * kMaxBatchHits), used);
    }
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
    groups = divided_up(rows, kGroupRows);
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
    if (held.plane) uppers = PlaneGrid(groups, plane.steps(), shape).uppers();
    inputs = std::max({std::size_t{kMaxScoreVectors}, plane_pass, code_pass});
    excluded = std::max(inputs * kMaxBatchKPlusExcluded, kMinExcluded);
    const std::size_t digit_bytes = plane.steps() * 2 * planes::kStepDims;
    input = InputLayout(inputs, digit_bytes, stride, excluded).end;
}

std::size_t device_bytes(const ShardSizes& sizes) {
    ShardBuffers none;
    std::size_t bytes = 0;
    for_each_buffer(none, sizes, [&](const auto& buffer, std::size_t elements) {
        if (buffer.kOnDevice) bytes += elements * sizeof(*buffer.data());
    });
    return bytes;
}

Result<ShardBuffers> allocate_buffers(const ShardSizes& sizes) {
    ShardBuffers buffers;
    Status done;
    for_each_buffer(buffers, sizes, [&](auto& buffer, std::size_t elements) {
        if (!done) return;
        auto made = buffer.allocate(elements);
        if (made) {
            buffer = *std::move(made);
        } else {
            done = made.error();
        }
    });
    if (!done) return done.error();
    return buffers;
}

Workspace workspace_of(const ShardBuffers& b) {
    return {.maxima = b.maxima.data(),
            .floors = b.floors.data(),
            .counters = b.counters.data(),
            .found = b.found.data(),
            .scores = b.scores.data(),
            .divisors = b.divisors.data(),
            .candidate_scores = b.candidate_scores.data(),
            .uppers = b.uppers.data(),
            .code = {.digits = b.code_digits.data(),
                     .facts = b.code_facts.data(),
                     .floors = b.code_floors.data(),
                     .cutoffs = b.code_cutoffs.data(),
                     .keys = b.code_keys.data(),
                     .kept = b.code_kept.data(),
                     .kept_counts = b.code_kept_counts.data(),
                     .marks = b.code_marks.data(),
                     .counts = b.code_counts.data(),
                     .lists = b.code_hits.data()},
            .few = {.best = b.few_best.data(),
                    .counts = b.few_counts.data(),
                    .done = b.few_done.data()},
            .answers = b.slots[0].answers.data(),
            .hits = b.slots[0].hits.data()};
}

}  // namespace gloved::kernels::cuda
