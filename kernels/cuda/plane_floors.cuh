// The floors of plane_pass: scores that as many rows reach as a query asks for. The scouts of all
// blocks find them while the other warps scan.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plane_batch.cuh"

namespace gloved::kernels::cuda::plane_batch {

/// Waits for the block's other scouts.
__device__ inline void wait_for_scouts() {
    asm volatile("barrier.sync 1, %0;" ::"n"(kScoutThreads) : "memory");
}

/// Waits until the scouts of every block have called it `times` times. What they wrote before is
/// visible then.
__device__ inline void wait_for_all_scouts(std::uint32_t* arrived, std::uint32_t times) {
    wait_for_scouts();
    if (threadIdx.x % kScoutThreads == 0) {
        __threadfence();
        atomicAdd(arrived, 1U);
        while (*static_cast<volatile std::uint32_t*>(arrived) < times * gridDim.x) {
        }
        __threadfence();
    }
    wait_for_scouts();
}

/// The k-th largest of `count` candidates' scores, or -infinity if there are fewer. One warp calls
/// it; count is at most kScoresOfThread * kWarp.
__device__ inline float kth_of_candidates(const float* scores, std::uint32_t count,
                                          std::uint32_t k) {
    const unsigned lane = threadIdx.x % kWarp;
    std::uint32_t keys[kScoresOfThread];
#pragma unroll
    for (unsigned j = 0; j < kScoresOfThread; ++j) {
        const std::uint32_t i = lane + j * kWarp;
        keys[j] = i < count ? ordered(__ldcg(scores + i)) : 0;
    }
    std::uint32_t most = 0;
    for (std::uint32_t left = k; left > 0;) {
        std::uint32_t mine = 0;
#pragma unroll
        for (const std::uint32_t key : keys) mine = max(mine, key);
        most = warp_max(mine);
        if (most <= ordered(minus_infinity())) return minus_infinity();
        // Takes out one thread's largest, and equal ones of others.
        const unsigned having = __ballot_sync(kWholeWarp, mine == most);
        left -= min(left, static_cast<std::uint32_t>(__popc(having)));
        bool taken = mine != most;
#pragma unroll
        for (std::uint32_t& key : keys) {
            const bool take = !taken && key == most;
            if (take) key = 0;
            taken = taken || take;
        }
    }
    return from_ordered(most);
}

/// The canonical dot product of a query with a row, as row_dot. A team loads 128 bytes at once, and
/// each thread gets the components of its lane by way of `room`, which is the warp's.
__device__ __noinline__ inline double dot_of(const DeviceModel& model, BlockQueries queries,
                                             unsigned q, std::uint32_t row, unsigned lane,
                                             bool active, float* room) {
    if (queries.vectors == nullptr || model.vectors_on_host || room == nullptr)
        return row_dot(model, queries.raw + std::size_t{q} * queries.stride, row, lane, active);
    constexpr unsigned kLoads = kRowLoad / 4 / kCanonicalLanes;
    constexpr unsigned kStored = kLoads / 2;
    const float* const vector = queries.vectors + std::size_t{q} * queries.stride;
    const auto* const values = reinterpret_cast<const uint4*>(row_of(model, row));
    const std::uint32_t dim = model.dim;
    float* const own = room + threadIdx.x % kWarp / kCanonicalLanes * kRowStride;
    double sum = 0;
    for (std::uint32_t begin = 0; begin < dim; begin += kRowLoad) {
        uint4 loaded[kLoads];
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            const std::uint32_t at = begin / 4 + j * kCanonicalLanes + lane;
            loaded[j] = active && 4 * at < dim ? load_once(values + at) : uint4{0, 0, 0, 0};
        }
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            __syncwarp();
#pragma unroll
            for (unsigned j = 0; j < kStored; ++j)
                reinterpret_cast<uint4*>(own)[j * kCanonicalLanes + lane] =
                    loaded[half * kStored + j];
            __syncwarp();
            // Products of zeros beyond the end change no sum.
#pragma unroll
            for (unsigned j = 0; j < kRowRoom / kCanonicalLanes; ++j) {
                const std::uint32_t i = begin + half * kRowRoom + j * kCanonicalLanes + lane;
                sum = __fma_rn(static_cast<double>(own[j * kCanonicalLanes + lane]),
                               static_cast<double>(vector[min(i, dim - 1)]), sum);
            }
        }
    }
    return sum_of_team(sum);
}

/// Finds the best estimate of each query in each warp's list, of the rows that were there when the
/// warp told of this floor. The block's scouts call it.
__device__ inline void best_of_lists(const Context& context, unsigned floor) {
    BlockMemory& shared = context.shared;
    const unsigned lane = threadIdx.x % kWarp;
    for (unsigned warp = threadIdx.x / kWarp - kScanWarps; warp < kScanWarps; warp += kScoutWarps) {
        Best* const best = shared.best[warp];
        const Listed* const list = context.list_of(warp);
        if (lane < kMaxPlanePass) best[lane] = 0;
        __syncwarp();
        for (std::uint32_t i = lane; i < shared.told_listed[floor][warp]; i += kWarp) {
            const Listed one = list[i];
            const unsigned q = one.query();
            const float weight = weight_of(one.projection(), one.residual());
            const int sum = one.sum() << context.shape.listed_shift;
            const Best mine = make_best(estimate_of(sum, shared.centre[q], weight), one.row);
            if (mine > best[q]) atomicMax(&best[q], mine);
        }
    }
}

/// Scores the block's best rows of each query canonically for a floor.
__device__ inline void score_best(const Context& context, float* scores) {
    BlockMemory& shared = context.shared;
    const DeviceModel& model = context.model;
    const std::uint32_t of_query = context.shape.candidates;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned scout = threadIdx.x % kScoutThreads;
    for (unsigned q = scout / kWarp; q < context.queries.count; q += kScoutWarps) {
        Best mine = lane < kScanWarps ? shared.best[lane][q] : 0;
        for (std::uint32_t i = 0; i < of_query; ++i) {
            Best most = mine;
            for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
                most = max(most, __shfl_xor_sync(kWholeWarp, most, distance));
            const std::uint32_t row = most > 0 ? static_cast<std::uint32_t>(most) : kNone;
            if (lane == 0) shared.candidates[q * of_query + i] = row;
            if (mine == most) mine = 0;
            constexpr std::uint32_t kLine = 128 / sizeof(float);
            if (model.vectors_on_host || row == kNone) continue;
            for (std::uint32_t at = lane * kLine; at < model.dim; at += kWarp * kLine)
                prefetch(row_of(model, row) + at);
        }
    }
    wait_for_scouts();
    constexpr unsigned kTeams = kScoutThreads / kCanonicalLanes;
    const std::uint32_t count = context.queries.count * of_query;
    for (std::uint32_t base = 0; base < count; base += kTeams) {
        const std::uint32_t i = base + scout / kCanonicalLanes;
        const std::uint32_t row = i < count ? shared.candidates[i] : kNone;
        const std::uint32_t q = min(i, count - 1) / of_query;
        const bool active = row != kNone;
        const double norm = active ? model.norms[row] : 0;
        const double dot = dot_of(model, context.queries, q, active ? row : 0,
                                  scout % kCanonicalLanes, active, context.row_room());
        if (i >= count || scout % kCanonicalLanes > 0) continue;
        const double score =
            active ? score_from_dot(dot, context.queries[q].norm, norm) : -HUGE_VAL;
        scores[q * kMaxCandidates + blockIdx.x * of_query + i % of_query] =
            isnan(score) ? minus_infinity() : __double2float_rd(score);
    }
}

/// Finds the floors of all queries, one after the other: each is a score that k eligible rows
/// reach, of which each block has scored its best. The scouts of all blocks call it.
__device__ __noinline__ inline void find_floors(Context context) {
    BlockMemory& shared = context.shared;
    const BlockQueries& queries = context.queries;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned scout = threadIdx.x % kScoutThreads;
    for (unsigned floor = 0; floor < context.shape.floors; ++floor) {
        shared.told[floor].wait();
        if (floor > 0) {
            best_of_lists(context, floor);
            wait_for_scouts();
        }
        float* const scores = context.work.candidate_scores + floor * kFloorCandidates;
        score_best(context, scores);
        wait_for_all_scouts(&context.work.counters[kArrivedCounter], floor + 1);
        for (unsigned q = scout / kWarp; q < queries.count; q += kScoutWarps) {
            const float reached =
                kth_of_candidates(scores + q * kMaxCandidates, gridDim.x * context.shape.candidates,
                                  queries[q].k_plus_excluded);
            if (lane == 0) shared.reached[q] = reached;
        }
        wait_for_scouts();
        if (scout < queries.count) {
            const unsigned q = scout;
            const double before = floor == 0 ? queries[q].min_score : shared.floors[q];
            const double score = fmax(static_cast<double>(shared.reached[q]), before);
            const planes::PlaneCutoff cutoff =
                planes::plane_cutoff(shared.facts[q], score, context.model.dim);
            shared.floors[q] = score;
            shared.cutoffs[floor].of_projection[q] = cutoff.of_projection;
            shared.cutoffs[floor].of_residual[q] = cutoff.of_residual;
            shared.cutoffs[floor].constant[q] = cutoff.constant;
            if (floor + 1 == context.shape.floors && context.shape.int8_stride > 0)
                shared.int8_cutoffs[q] =
                    int8_cutoff(shared.int8_facts[q], score, context.model.dim);
        }
        shared.found[floor].arrive();
    }
}

}  // namespace gloved::kernels::cuda::plane_batch
