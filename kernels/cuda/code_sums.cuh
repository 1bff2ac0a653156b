// What the kernels that multiply code tiles share (code_multiply_wgmma.cu, code_multiply_mma.cu):
// which sums a thread has, and what becomes of them. Four warps multiply a block of queries with a
// tile. Both kinds of tensor cores leave the sums in the same threads: a thread has those of
// kQueries queries with kRows rows of the tile, and three others have the rest of these queries'.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Threads that multiply a block of queries with a tile.
inline constexpr unsigned kWarpgroup = 128;
/// Sums of a thread: those of kQueries queries with kRows rows of a tile.
inline constexpr unsigned kSums = kCodeTileRows * kCodeBlockQueries / kWarpgroup;
inline constexpr unsigned kQueries = 2;
inline constexpr unsigned kRows = kSums / kQueries;
static_assert(kKeysOfTile == CodeGrid::kThreadsOfQuery);
static_assert(kKeysOfTile * kRows == kCodeTileRows);

/// The index in a thread's sums of row `r` of its rows and its query `h`.
__device__ constexpr unsigned sum_at(unsigned h, unsigned r) { return r / 2 * 4 + h * 2 + r % 2; }

/// The part's tile number `n`.
__device__ inline std::uint32_t tile_of(const CodePart& part, std::uint32_t n) {
    if (!part.rest) return n << part.shift;
    return n + n / ((1U << part.shift) - 1) + 1;
}

/// The part of a block that a thread of a warpgroup works on.
struct Assignment {
    std::uint32_t queries[kQueries];
    unsigned lane;
    unsigned column;  ///< which block of the panel's queries
    unsigned turn;    ///< which of the warpgroups that take these queries

    __device__ explicit Assignment(const CodeGrid& grid) {
        // From one lane, so that the compiler knows it is the same in the whole warp.
        const unsigned warpgroup = __shfl_sync(kWholeWarp, threadIdx.x / kWarpgroup, 0);
        lane = threadIdx.x % kWarp;
        column = warpgroup % grid.columns;
        turn = warpgroup / grid.columns;
        const unsigned row = threadIdx.x % kWarpgroup / kWarp * 16 + lane / 4;
        for (unsigned h = 0; h < kQueries; ++h) {
            queries[h] = (blockIdx.y * grid.columns + column) * kCodeBlockQueries + row + 8 * h;
        }
    }
    __device__ std::size_t list(const CodeGrid& grid, unsigned h) const {
        constexpr unsigned kSharing = CodeGrid::kThreadsOfQuery;
        const std::size_t of_range = std::size_t{queries[h]} * grid.ranges + blockIdx.x;
        return (of_range * grid.turns() + turn) * kSharing + lane % kSharing;
    }
};

/// What a thread that multiplies needs, beside its assignment.
struct Context {
    const DeviceModel& model;
    const DeviceQueries& queries;
    const Job& job;
    const CodeWorkspace& work;
    const Assignment& assignment;

    /// The filter of query `h`; nullptr if no query of the pass has one.
    __device__ const DeviceQuery* filter(unsigned h) const {
        return job.filtered ? queries.queries + assignment.queries[h] : nullptr;
    }
    __device__ bool is_marked(const DeviceQuery* filter) const { return filter->marks != kNoMarks; }
    /// The thread's rows of a tile that a marked filter admits: bit r stands for row r.
    __device__ std::uint32_t marks(const DeviceQuery* filter, std::uint32_t tile) const {
        const std::size_t at = std::size_t{filter->marks} * model.code_tiles.tiles + tile;
        return work.marks[at * kKeysOfTile + assignment.lane % kKeysOfTile];
    }
    /// Whether a place holds a row that the filter admits.
    __device__ bool is_admitted(const DeviceQuery* filter, std::uint32_t place) const {
        return place < model.code_tiles.places &&
               (filter == nullptr || admits(*filter, model, model.code_tiles.rows[place]));
    }
};

/// Writes a lower bound on the score of one of the thread's rows, for each of its queries.
struct Keys {
    const Context& context;
    Int8Range next;
    Int8Range range;

    __device__ explicit Keys(const Context& of) : context(of) {}
    __device__ void load(std::uint32_t tile) { next = context.model.code_tiles.ranges[tile]; }
    __device__ void prepare() { range = next; }

    __device__ void take(const int (&sums)[kSums], std::uint32_t tile, std::uint32_t n) const {
        const CodeWorkspace& work = context.work;
        const Assignment& assignment = context.assignment;
#pragma unroll
        for (unsigned h = 0; h < kQueries; ++h) {
            const std::uint32_t q = assignment.queries[h];
            if (q >= context.queries.count) continue;
            const double lower =
                int8_lower(largest_sum(sums, h, tile), range, work.facts[q], context.model.dim);
            const std::size_t key = (std::size_t{q} * context.job.part.tiles + n) * kKeysOfTile;
            work.keys[key + assignment.lane % kKeysOfTile] = __double2float_rd(lower);
        }
    }

    /// The largest sum of an eligible row; INT_MIN if there is none. (Beyond the last place all
    /// sums are 0, which proves nothing.)
    __device__ int largest_sum(const int (&sums)[kSums], unsigned h, std::uint32_t tile) const {
        const DeviceQuery* const filter = context.filter(h);
        int largest = INT_MIN;
        if (filter != nullptr && context.is_marked(filter)) {
            const std::uint32_t marks = context.marks(filter, tile);
#pragma unroll
            for (unsigned r = 0; r < kRows; ++r)
                largest = (marks >> r & 1) != 0 ? max(largest, sums[sum_at(h, r)]) : largest;
            return largest;
        }
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            const std::uint32_t place = place_of(tile, r, context.assignment.lane);
            if (filter != nullptr && !context.is_admitted(filter, place)) continue;
            largest = max(largest, sums[sum_at(h, r)]);
        }
        return largest;
    }
};

/// Appends the rows that reach a query's cutoff to the thread's list, for each of its queries.
struct Lists {
    const Context& context;
    Int8SumCutoff cutoffs[kQueries];
    std::uint32_t counts[kQueries];
    Int8Range next;
    int min_sums[kQueries];

    __device__ explicit Lists(const Context& of) : context(of) {
        for (unsigned h = 0; h < kQueries; ++h) {
            const std::uint32_t q = of.assignment.queries[h];
            const bool is_query = q < of.queries.count;
            // What fills the panel reaches no cutoff.
            cutoffs[h] = is_query ? of.work.cutoffs[q] : Int8SumCutoff{0, 0, -kBeyondInt8Sums};
            counts[h] = 0;
        }
    }
    __device__ void load(std::uint32_t tile) { next = context.model.code_tiles.ranges[tile]; }
    __device__ void prepare() {
#pragma unroll
        for (unsigned h = 0; h < kQueries; ++h) min_sums[h] = int8_min_sum(cutoffs[h], next);
    }

    __device__ void take(const int (&sums)[kSums], std::uint32_t tile, std::uint32_t) {
        int over[kQueries];
#pragma unroll
        for (unsigned h = 0; h < kQueries; ++h) {
            over[h] = -1;
#pragma unroll
            for (unsigned r = 0; r < kRows; ++r)
                over[h] = __viaddmax_s32(sums[sum_at(h, r)], -min_sums[h], over[h]);
        }
        // Few tiles have a row that reaches a cutoff of a thread.
        if ((over[0] & over[1]) < 0) return;
#pragma unroll
        for (unsigned h = 0; h < kQueries; ++h) {
            if (over[h] >= 0) append(sums, h, tile);
        }
    }

    __device__ void append(const int (&sums)[kSums], unsigned h, std::uint32_t tile) {
        CodeHit* const list =
            context.work.lists + context.assignment.list(context.job.grid, h) * kCodeListRoom;
        const bool is_full = (tile + 1) * kCodeTileRows <= context.model.code_tiles.places;
        if (!is_full || context.job.filtered || counts[h] + kRows > kCodeListRoom) {
            append_tested(sums, h, tile, list);
            return;
        }
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            const int sum = sums[sum_at(h, r)];
            if (sum >= min_sums[h])
                list[counts[h]++] = {place_of(tile, r, context.assignment.lane), sum};
        }
    }

    /// Appends rows that have a place, that the filter admits, and for which the list has room.
    /// Keeps a copy of the sums in local memory, since registers have no run-time index: 32 times
    /// all these tests would be more code than the instruction cache holds.
    __device__ void append_tested(const int (&sums)[kSums], unsigned h, std::uint32_t tile,
                                  CodeHit* list) {
        int own[kRows];
        unsigned reached = 0;
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            own[r] = sums[sum_at(h, r)];
            reached |= own[r] >= min_sums[h] ? 1U << r : 0;
        }
        const DeviceQuery* const filter = context.filter(h);
        const bool marked = filter != nullptr && context.is_marked(filter);
        if (marked) reached &= context.marks(filter, tile);
        for (; reached != 0; reached &= reached - 1) {
            const auto r = static_cast<unsigned>(__ffs(static_cast<int>(reached)) - 1);
            const std::uint32_t place = place_of(tile, r, context.assignment.lane);
            if (!marked && !context.is_admitted(filter, place)) continue;
            if (counts[h] < kCodeListRoom) list[counts[h]] = {place, own[r]};
            ++counts[h];
        }
    }

    __device__ void write_counts() const {
        for (unsigned h = 0; h < kQueries; ++h) {
            if (context.assignment.queries[h] < context.queries.count)
                context.work.counts[context.assignment.list(context.job.grid, h)] = counts[h];
        }
    }
};
/// For every tile, number `n` of the part, that the assignment takes: calls use.load(tile) while
/// the tile before it is multiplied, use.prepare() when that is done, products.multiply(sums), and
/// then use.take(sums, tile, n).
template <class Products, class Use>
__device__ void for_each_tile(const Job& job, const Assignment& assignment, Products& products,
                              Use& use) {
    const std::uint32_t step = job.grid.turns() * gridDim.x;
    std::uint32_t n = blockIdx.x + assignment.turn * gridDim.x;
    if (n < job.part.tiles) use.load(tile_of(job.part, n));
    for (; n < job.part.tiles; n += step) {
        use.prepare();
        if (n + step < job.part.tiles) use.load(tile_of(job.part, n + step));
        int sums[kSums];
        products.multiply(sums);
        use.take(sums, tile_of(job.part, n), n);
    }
}

/// Takes the sums of all tiles of the assignment: writes keys if kSample, otherwise appends to
/// lists.
template <bool kSample, class Products>
__device__ void use_sums(const Context& context, Products& products) {
    if constexpr (kSample) {
        Keys keys(context);
        for_each_tile(context.job, context.assignment, products, keys);
    } else {
        Lists lists(context);
        for_each_tile(context.job, context.assignment, products, lists);
        lists.write_counts();
    }
}

}  // namespace gloved::kernels::cuda
