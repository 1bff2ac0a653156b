// A pass over code tiles for many queries: its schedule, its thresholds and the canonical scores of
// the rows that come through. code_multiply_wgmma.cu and code_multiply_mma.cu have the products.
//
// First a sample of the tiles: the k-th largest lower bound on the scores of its rows is a query's
// first threshold. Then an eighth of the tiles, whose rows raise the threshold, and then the rest.
// All this is known from the sums of integers. No vector is read before the end, when each row that
// was listed is compared by its own bounds, and the few that reach the last threshold are scored
// canonically; where they are not so few, first the best, whose scores raise the threshold once
// more. docs/certified-search.md has the proof (§9).
#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/encode_int8.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
/// The first part is every 2^kFirstShift-th tile.
constexpr std::uint32_t kFirstShift = 3;

/// The shape of blocks that work on one query each.
template <unsigned kBlockThreads, std::uint32_t kRoom>
struct QueryBlock {
    static constexpr unsigned kThreads = kBlockThreads;
    /// Rows of a query that may come through, in all its lists and kept together; more overflow.
    static constexpr std::uint32_t kMaxListed = kRoom;
};
/// Room where blocks have much shared memory, and what fits into the 64 KB of compute capability
/// 7.5.
constexpr std::uint32_t kMuchRoom = 12288;
constexpr std::uint32_t kLessRoom = 6656;
/// For few queries, each of which must be fast.
template <std::uint32_t kRoom>
using WideBlock = QueryBlock<1024, kRoom>;
/// For many queries: more blocks at the same time.
using UsualBlock = QueryBlock<256, 4096>;
/// For many queries that ask for more hits, so that more rows come through.
template <std::uint32_t kRoom>
using RoomyBlock = QueryBlock<256, kRoom>;
constexpr std::uint32_t kMaxUsualK = 40;
/// Rows of a query that may be scored; more overflow.
constexpr std::uint32_t kMaxLeft = 2048;
/// A threshold that no row reaches.
constexpr double kNoRow = 2;

/// Writes the query's vector, padded with zeros, if it is a row of the shard. The whole warp calls
/// it.
__device__ void copy_row(const DeviceModel& model, std::uint32_t row, float* raw, unsigned lane) {
    if (row == kNotARow) return;
    const float* const values = row_of(model, row);
    // +0 for −0, as make_query_vector.
    for (unsigned i = lane; i < model.stride; i += kWarp)
        raw[i] = i < model.dim ? values[i] + 0.0F : 0.0F;
    __syncwarp();
}

/// Computes the queries' digits, and zeros where the last panel has no query. One warp a query.
__global__ __launch_bounds__(kThreads) void prepare(DeviceModel model, DeviceQueries queries,
                                                    std::uint32_t padded, CodeWorkspace work) {
    const std::uint32_t q = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (q >= padded) return;
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t width = model.code_tiles.width;
    std::int8_t* const block =
        work.digits + static_cast<std::size_t>(q / kCodeBlockQueries) * kCodeBlockQueries * width;
    const auto put = [&](unsigned i, int digit) {
        block[code_offset(kCodeBlockQueries, q % kCodeBlockQueries, i)] =
            static_cast<std::int8_t>(digit);
    };
    if (q >= queries.count) {
        for (unsigned i = lane; i < width; i += kWarp) put(i, 0);
        return;
    }
    float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    copy_row(model, queries.queries[q].vector_row, raw, lane);
    const planes::DigitFacts facts =
        query_digits([&](std::uint32_t i) { return raw[i]; }, queries.queries[q].norm, model.dim,
                     planes::kOneByteDigit, lane, width, put);
    if (lane == 0) work.facts[q] = facts;
}

/// Marks the rows that filter number blockIdx.y of the pass admits, tile by tile. A thread for each
/// row of tile blockIdx.x.
__global__ __launch_bounds__(kCodeTileRows) void mark_rows(DeviceModel model, DeviceQueries queries,
                                                           CodeWorkspace work) {
    static_assert(kCodeTileRows == kKeysOfTile * kWarp);
    const DeviceQuery& query = queries.queries[queries.marked[blockIdx.y]];
    const DeviceCodeTiles& tiles = model.code_tiles;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned sharing = threadIdx.x / kWarp;
    const std::uint32_t place = place_of(blockIdx.x, lane, sharing);
    const bool admitted = place < tiles.places && admits(query, model, tiles.rows[place]);
    const unsigned marks = __ballot_sync(kWholeWarp, admitted);
    if (lane > 0) return;
    const std::size_t tile = std::size_t{blockIdx.y} * tiles.tiles + blockIdx.x;
    work.marks[tile * kKeysOfTile + sharing] = marks;
}

/// Finds a query's first threshold: as many rows of the sample reach it as there are excluded rows
/// in the sample, and k more. One block a query.
__global__ __launch_bounds__(kThreads) void first_floor(DeviceModel model, DeviceQueries queries,
                                                        std::uint32_t sample_shift,
                                                        std::uint32_t keys, CodeWorkspace work) {
    let_next_start();
    wait_for_previous();
    const std::uint32_t q = blockIdx.x;
    const DeviceQuery& query = queries.queries[q];
    const std::uint32_t step_mask = (1U << sample_shift) - 1;
    std::uint32_t excluded = 0;
    for (std::uint32_t begin = 0; begin < query.excluded_count; begin += kThreads) {
        const std::uint32_t i = begin + threadIdx.x;
        const std::uint32_t place =
            i < query.excluded_count
                ? model.code_tiles.places_of[queries.excluded[query.excluded_begin + i]]
                : kNoPlace;
        const bool in_sample = place != kNoPlace && (place / kCodeTileRows & step_mask) == 0;
        excluded += static_cast<std::uint32_t>(__syncthreads_count(in_sample ? 1 : 0));
    }
    const float lower = kth_largest_lower_bound<kThreads, 8>(
        work.keys + static_cast<std::size_t>(q) * keys, keys, query.k + excluded);
    if (threadIdx.x > 0) return;
    const double floor = fmax(static_cast<double>(lower), query.min_score);
    work.floors[q] = floor;
    work.cutoffs[q] = int8_sum_cutoff(work.facts[q], floor, model.dim);
}

/// The rows that came through so far for a query. In dynamic shared memory.
template <class Block>
struct Listed {
    static constexpr unsigned kThreads = Block::kThreads;
    static constexpr std::uint32_t kMaxListed = Block::kMaxListed;
    static_assert(kMaxKept <= kMaxListed);

    CodeHit hits[kMaxListed];  ///< kNoPlace where the query excludes the row
    std::uint32_t count;
    bool overflow;  ///< there are more
    double floor;
    Int8SumCutoff cutoff;  ///< of `floor`

    /// Collects them from the query's lists and, unless `first`, from those kept of a part before.
    /// Raises the floor to the largest score that k of them are known to reach. The whole block
    /// calls it, and returns with the same values.
    __device__ void collect(const DeviceModel& model, const DeviceQueries& queries, bool first,
                            const CodeGrid& grid, const CodeWorkspace& work) {
        const std::uint32_t q = blockIdx.x;
        const DeviceQuery& query = queries.queries[q];
        const std::uint32_t kept = first ? 0 : work.kept_counts[q];
        if (threadIdx.x == 0) {
            count = min(kept, kMaxKept);
            overflow = kept > kMaxKept;
        }
        for (std::uint32_t i = threadIdx.x; i < kept && i < kMaxKept; i += kThreads)
            hits[i] = work.kept[static_cast<std::size_t>(q) * kMaxKept + i];
        __syncthreads();
        take_lists(static_cast<std::size_t>(q) * grid.lists(), grid.lists(), work);
        __syncthreads();
        if (threadIdx.x == 0 && count > kMaxListed) overflow = true;
        __syncthreads();
        if (overflow) return;
        const float kth = kth_largest_lower_bound_of<kThreads, 2048 / kThreads>(
            count, query.k, [&](std::uint32_t i) {
                const CodeHit hit = hits[i];
                if (query.excluded_count > 0 &&
                    is_named(query, queries.excluded, model.code_tiles.rows[hit.place])) {
                    hits[i].place = kNoPlace;
                    return minus_infinity();
                }
                return __double2float_rd(lower(model, hit, work.facts[q]));
            });
        if (threadIdx.x == 0) {
            floor = fmax(static_cast<double>(kth), work.floors[q]);
            cutoff = int8_sum_cutoff(work.facts[q], floor, model.dim);
        }
        __syncthreads();
    }

    /// Whether a collected row reaches the floor by its own bounds.
    __device__ bool is_left(const DeviceModel& model, const CodeHit& hit) const {
        return hit.place != kNoPlace && hit.sum >= int8_min_sum(cutoff, range_of(model, hit));
    }

    /// A lower bound on the score of a collected row.
    __device__ static double lower(const DeviceModel& model, const CodeHit& hit,
                                   const planes::DigitFacts& facts) {
        return int8_lower(hit.sum, range_of(model, hit), facts, model.dim);
    }

  private:
    /// Appends the rows of `lists` lists. Many loads at a time: most lists are empty.
    __device__ void take_lists(std::size_t first, std::uint32_t lists, const CodeWorkspace& work) {
        constexpr unsigned kAtOnce = kThreads == UsualBlock::kThreads ? 9 : 3;
        for (std::uint32_t base = threadIdx.x; base < lists; base += kAtOnce * kThreads) {
            std::uint32_t counts[kAtOnce];
#pragma unroll
            for (unsigned j = 0; j < kAtOnce; ++j) {
                const std::uint32_t list = base + j * kThreads;
                counts[j] = list < lists ? work.counts[first + list] : 0;
            }
#pragma unroll
            for (unsigned j = 0; j < kAtOnce; ++j) {
                if (counts[j] == 0) continue;
                if (counts[j] > kCodeListRoom) overflow = true;
                const std::uint32_t begin = atomicAdd(&count, counts[j]);
                const std::uint32_t end = min(begin + min(counts[j], kCodeListRoom), kMaxListed);
                const CodeHit* const from =
                    work.lists + (first + base + j * kThreads) * kCodeListRoom;
                for (std::uint32_t i = begin; i < end; ++i) hits[i] = from[i - begin];
            }
        }
    }

    /// The bounds of a row alone.
    __device__ static Int8Range range_of(const DeviceModel& model, const CodeHit& hit) {
        const Int8Bounds bounds = model.code_tiles.bounds[hit.place];
        return {bounds.projection, bounds.projection, bounds.residual};
    }
};

/// Raises a query's threshold by the rows of the first part, and keeps those that reach it. One
/// block a query.
template <class Block>
__global__ __launch_bounds__(Block::kThreads) void raise_floor(DeviceModel model,
                                                               DeviceQueries queries, CodeGrid grid,
                                                               CodeWorkspace work) {
    constexpr unsigned kThreads = Block::kThreads;
    extern __shared__ __align__(16) std::byte shared_memory[];
    auto& listed = *reinterpret_cast<Listed<Block>*>(shared_memory);
    __shared__ std::uint32_t kept;
    let_next_start();
    wait_for_previous();
    const std::uint32_t q = blockIdx.x;
    listed.collect(model, queries, true, grid, work);
    if (threadIdx.x == 0) kept = 0;
    __syncthreads();
    if (listed.overflow) {
        // Another pass answers the query, so that no more rows need come through.
        if (threadIdx.x == 0) {
            work.kept_counts[q] = kMaxKept + 1;
            work.cutoffs[q] = int8_sum_cutoff(work.facts[q], kNoRow, model.dim);
        }
        return;
    }
    for (std::uint32_t i = threadIdx.x; i < listed.count; i += kThreads) {
        if (!listed.is_left(model, listed.hits[i])) continue;
        const std::uint32_t at = atomicAdd(&kept, 1U);
        if (at < kMaxKept) work.kept[static_cast<std::size_t>(q) * kMaxKept + at] = listed.hits[i];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    work.kept_counts[q] = kept;
    work.floors[q] = listed.floor;
    work.cutoffs[q] = listed.cutoff;
}

/// Rows that are scored before others. In shared memory.
struct First {
    std::uint32_t rows[kMaxBatchHits];
    double scores[kMaxBatchHits];
    std::uint32_t count;
};

/// Scores those of listed.hits[left[i]] whose lower bounds reach the floor, some k, takes them out
/// of `listed`, and raises the floor to a score that k of them reach. The whole block calls it.
template <class Block>
__device__ void score_first(const DeviceModel& model, const DeviceQuery& query, const float* raw,
                            const planes::DigitFacts& facts, const std::uint32_t* left,
                            std::uint32_t left_count, Listed<Block>& listed, First& first) {
    constexpr unsigned kThreads = Block::kThreads;
    for (std::uint32_t i = threadIdx.x; i < left_count; i += kThreads) {
        CodeHit& hit = listed.hits[left[i]];
        if (!(listed.lower(model, hit, facts) >= listed.floor)) continue;
        const std::uint32_t at = atomicAdd(&first.count, 1U);
        if (at >= kMaxBatchHits) continue;
        first.rows[at] = model.code_tiles.rows[hit.place];
        hit.place = kNoPlace;
    }
    __syncthreads();
    if (threadIdx.x == 0) first.count = min(first.count, kMaxBatchHits);
    __syncthreads();
    const std::uint32_t count = first.count;
    score_rows<kThreads>(
        model, query, raw, count, [&](std::uint32_t i) { return first.rows[i]; },
        [&](std::uint32_t i, std::uint32_t, double score) { first.scores[i] = score; });
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
        const double mine = first.scores[i];
        if (isnan(mine)) continue;  // a damaged row
        std::uint32_t before = 0;
        for (std::uint32_t j = 0; j < count; ++j) {
            const double other = first.scores[j];
            before += other > mine || (other == mine && j < i) ? 1 : 0;
        }
        if (before != query.k - 1) continue;
        listed.floor = fmax(listed.floor, mine);
        listed.cutoff = int8_sum_cutoff(facts, listed.floor, model.dim);
    }
    __syncthreads();
}

/// Puts the rows of those of listed.hits[left[i]] that reach the floor into left[0 … kept), where
/// `kept` is 0 before. The whole block calls it.
template <class Block>
__device__ void to_rows(const DeviceModel& model, const Listed<Block>& listed, std::uint32_t* left,
                        std::uint32_t left_count, std::uint32_t& kept) {
    for (std::uint32_t begin = 0; begin < left_count; begin += Block::kThreads) {
        const std::uint32_t i = begin + threadIdx.x;
        const CodeHit hit = i < left_count ? listed.hits[left[i]] : CodeHit{kNoPlace, 0};
        __syncthreads();  // all have read what the rows take the place of
        if (listed.is_left(model, hit))
            left[atomicAdd(&kept, 1U)] = model.code_tiles.rows[hit.place];
    }
    __syncthreads();
}

/// Orders found rows: writes the k best as hits. The whole block calls it.
template <unsigned kThreads>
__device__ void order_hits(const DeviceQuery& query, const Found* found, std::uint32_t count,
                           Found* hits) {
    for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
        const Found mine = found[i];
        std::uint32_t place = 0;
        for (std::uint32_t j = 0; j < count; ++j) place += comes_before(found[j], mine) ? 1 : 0;
        if (place < query.k) hits[place] = mine;
    }
}

/// Scores the rows that reach the last threshold, and the uncovered rows, and writes the answer.
/// One block a query.
template <class Block>
__global__ __launch_bounds__(Block::kThreads) void finish(DeviceModel model, DeviceQueries queries,
                                                          CodeGrid grid, Workspace all) {
    constexpr unsigned kThreads = Block::kThreads;
    extern __shared__ __align__(16) std::byte shared_memory[];
    auto& listed = *reinterpret_cast<Listed<Block>*>(shared_memory);
    __shared__ std::uint32_t rows[kMaxLeft];  // indexes in listed.hits at first
    __shared__ std::uint32_t left;
    __shared__ std::uint32_t kept;
    __shared__ std::uint32_t found;
    __shared__ First first;
    let_next_start();
    wait_for_previous();
    const std::uint32_t q = blockIdx.x;
    const DeviceQuery& query = queries.queries[q];
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    listed.collect(model, queries, false, grid, all.code);
    if (threadIdx.x == 0) left = kept = found = first.count = 0;
    __syncthreads();
    if (!listed.overflow) {
        for (std::uint32_t i = threadIdx.x; i < listed.count; i += kThreads) {
            if (!listed.is_left(model, listed.hits[i])) continue;
            const std::uint32_t at = atomicAdd(&left, 1U);
            if (at < kMaxLeft) rows[at] = i;
        }
    }
    __syncthreads();
    if (listed.overflow || left > kMaxLeft) {
        if (threadIdx.x == 0) all.answers[q] = {kNoRow, 0, kFoundCapacity + 1, 0, listed.count};
        return;
    }

    // Of a query that is far from all rows, many are left, and take longer than those of all other
    // queries of a pass.
    if (left > kThreads / kCanonicalLanes + query.k)
        score_first(model, query, raw, all.code.facts[q], rows, left, listed, first);
    to_rows(model, listed, rows, left, kept);

    // The rows that came through have served: their memory takes those that are found.
    auto* const best = reinterpret_cast<Found*>(listed.hits);
    static_assert(sizeof(listed.hits) >= kBatchFound * sizeof(Found));
    const auto keep = [&](std::uint32_t row, double score) {
        if (!(score >= listed.floor)) return;
        const std::uint32_t at = atomicAdd(&found, 1U);
        if (at < kBatchFound) best[at] = {score, row, 0};
    };
    for (std::uint32_t i = threadIdx.x; i < first.count; i += kThreads)
        keep(first.rows[i], first.scores[i]);
    score_rows<kThreads>(
        model, query, raw, kept, [&](std::uint32_t i) { return rows[i]; },
        [&](std::uint32_t, std::uint32_t row, double score) { keep(row, score); });
    score_rows<kThreads>(
        model, query, raw, model.uncovered_count,
        [&](std::uint32_t i) { return model.uncovered[i]; },
        [&](std::uint32_t, std::uint32_t row, double score) {
            if (admits(query, model, row) && !is_named(query, queries.excluded, row))
                keep(row, score);
        });
    __syncthreads();
    const bool overflow = found > kBatchFound;
    if (!overflow) {
        order_hits<kThreads>(query, best, found,
                             all.hits + static_cast<std::size_t>(q) * queries.max_k);
    }
    if (threadIdx.x > 0) return;
    all.answers[q] = {
        listed.floor, overflow ? 0 : min(query.k, found), overflow ? kFoundCapacity + 1 : found,
        first.count + kept + model.uncovered_count, listed.count + model.uncovered_count};
}

}  // namespace

cudaError_t load_code_pass_kernels() {
    if (const auto error = load_each(prepare, mark_rows, first_floor); error != cudaSuccess)
        return error;
    return load_and_allow(raise_floor<UsualBlock>, finish<UsualBlock>,
                          raise_floor<WideBlock<kLessRoom>>, finish<WideBlock<kLessRoom>>,
                          raise_floor<WideBlock<kMuchRoom>>, finish<WideBlock<kMuchRoom>>,
                          raise_floor<RoomyBlock<kLessRoom>>, finish<RoomyBlock<kLessRoom>>,
                          raise_floor<RoomyBlock<kMuchRoom>>, finish<RoomyBlock<kMuchRoom>>);
}

std::uint32_t code_pass_capacity() { return kMaxCodePass; }

std::size_t code_lists(const DeviceShape& shape) {
    // A grid has at most one block a processor or, for the largest pass, one block a panel.
    constexpr std::size_t kPanelQueries = CodeGrid::kWarpgroups * kCodeBlockQueries;
    const std::size_t blocks =
        max(static_cast<std::size_t>(shape.processors), std::size_t{kMaxCodePass} / kPanelQueries);
    return blocks * kPanelQueries * CodeGrid::kThreadsOfQuery;
}

cudaError_t launch_code_pass(const DeviceModel& model, const DeviceQueries& queries,
                             const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const CodeGrid grid(queries.count, model.code_tiles.width, shape);
    const bool filtered = queries.any_filter || !queries.all_rows;
    const auto multiply = [&](const CodePart& part, bool is_sample) {
        const auto by = shape.wgmma ? multiply_by_wgmma : multiply_by_mma;
        return by(model, queries, {part, grid, is_sample, filtered}, work.code, shape, stream);
    };
    const std::uint32_t tiles = model.code_tiles.tiles;
    std::uint32_t sample_shift = 0;
    while ((1U << sample_shift) < code_sample_step(tiles)) ++sample_shift;
    const CodePart sample{false, sample_shift, code_sample_tiles(tiles)};
    const std::uint32_t in_first = (tiles + (1U << kFirstShift) - 1) >> kFirstShift;
    const CodePart first{false, kFirstShift, in_first};
    const CodePart rest{true, kFirstShift, tiles - in_first};

    cudaError_t error = cudaSuccess;
    const auto then = [&](auto launch) {
        if (error == cudaSuccess) error = launch();
    };
    const auto for_each_query = [&](auto kernel, unsigned threads, std::size_t shared,
                                    auto... arguments) {
        return launch_early(shape, kernel, queries.count, threads, shared, stream, model, queries,
                            arguments...);
    };
    const auto with_block = [&](auto use) {
        constexpr std::size_t kBesideRoom = 16384;
        const bool much = shape.shared_bytes >= kMuchRoom * sizeof(CodeHit) + kBesideRoom;
        if (queries.count <= kMaxRoomyCodePass)
            return much ? use(WideBlock<kMuchRoom>{}) : use(WideBlock<kLessRoom>{});
        if (queries.max_k <= kMaxUsualK) return use(UsualBlock{});
        return much ? use(RoomyBlock<kMuchRoom>{}) : use(RoomyBlock<kLessRoom>{});
    };
    prepare<<<(grid.padded() + kWarps - 1) / kWarps, kThreads, 0, stream>>>(
        model, queries, grid.padded(), work.code);
    error = cudaGetLastError();
    if (queries.marked_count > 0) {
        then([&] {
            mark_rows<<<dim3(tiles, queries.marked_count), kCodeTileRows, 0, stream>>>(
                model, queries, work.code);
            return cudaGetLastError();
        });
    }
    then([&] { return multiply(sample, true); });
    then([&] {
        return for_each_query(first_floor, kThreads, 0, sample_shift, code_sample_keys(tiles),
                              work.code);
    });
    then([&] { return multiply(first, false); });
    then([&] {
        return with_block([&](auto block) {
            using Block = decltype(block);
            return for_each_query(raise_floor<Block>, Block::kThreads, sizeof(Listed<Block>), grid,
                                  work.code);
        });
    });
    then([&] { return multiply(rest, false); });
    then([&] {
        return with_block([&](auto block) {
            using Block = decltype(block);
            return for_each_query(finish<Block>, Block::kThreads, sizeof(Listed<Block>), grid,
                                  work);
        });
    });
    return error;
}

}  // namespace gloved::kernels::cuda
