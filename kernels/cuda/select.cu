// Select: answers from estimates, by threshold, collect and rank (launches.hpp).
#include <algorithm>
#include <cstring>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/cuda/rank.cuh"
#include "kernels/cuda/stream.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThresholdThreads = 1024;
constexpr unsigned kCollectThreads = 256;
constexpr unsigned kCollectBlocks = 4;  // a processor
constexpr unsigned kTeamsPerWarp = kWarp / kCanonicalLanes;
/// Limits of a query that is passed as a parameter: the widths that stream.cu has loops for.
constexpr unsigned kInlineFloats = 300;
constexpr unsigned kInlineExcluded = 16;
/// Values that a block's threads keep for the radix select. The kMaxKPlusExcluded-th largest of so
/// many is hardly below that of all groups.
constexpr unsigned kMaximaApart = 8192;
/// Warps for each hit or excluded row that a threshold from the warps' maxima needs: few hits then
/// share a warp.
constexpr unsigned kWarpsPerRow = 4;

/// The score that the k-th best eligible row reaches, given the k-th largest estimate.
__device__ double floor_of(const DeviceQuery& query, float reached) {
    double floor = static_cast<double>(reached) - query.error;
    // Estimated cosines may lie above 1, canonical ones do not. (Stored scores have no error, and
    // need not be cosines.)
    if (query.error > 0) floor = fmin(floor, 1.0);
    return fmax(floor, query.min_score);
}

/// Finds the floor of the query from its groups' maxima. One block.
__global__ __launch_bounds__(kThresholdThreads) void threshold(
    const DeviceQuery* __restrict__ queries, const float* __restrict__ maxima, std::uint32_t groups,
    double* __restrict__ floors) {
    const DeviceQuery query = queries[0];
    const float reached =
        kth_largest_lower_bound<kThresholdThreads, kMaximaApart / kThresholdThreads>(
            maxima, groups, query.k_plus_excluded);
    if (threadIdx.x == 0) floors[0] = floor_of(query, reached);
}

/// Whether collect finds the threshold from warp_maxima.
bool threshold_from_warps(const DeviceQueries& queries, std::uint32_t warps) {
    return queries.max_k_plus_excluded * kWarpsPerRow <= warps;
}

/// A single query as a parameter of collect; where not `usable`, the queries are on the device.
struct SelectQuery {
    DeviceQuery query;
    std::uint32_t excluded[kInlineExcluded];
    float raw[kInlineFloats];
    bool usable = false;
};

/// Scores the groups that may hold a hit, one row a team, and finds the rows that reach the floor.
/// The blocks share the groups and the uncovered rows; the last block to end ranks what all have
/// found. With `warps`, each block finds the same floor from the warps' maxima, which is faster
/// than another launch.
template <SelectSource kSource>
__global__ __launch_bounds__(kCollectThreads) void collect(DeviceModel model, DeviceQueries queries,
                                                           SelectQuery inlined, std::uint32_t warps,
                                                           Workspace work) {
    constexpr bool kStored = kSource == SelectSource::stored_scores;
    __shared__ float shared_raw[kInlineFloats];
    __shared__ std::uint32_t shared_excluded[kInlineExcluded];
    if (inlined.usable) {
        // The previous kernel may still write the estimates.
        for (unsigned i = threadIdx.x; i < model.dim; i += kCollectThreads)
            shared_raw[i] = inlined.raw[i];
        if (threadIdx.x < inlined.query.excluded_count)
            shared_excluded[threadIdx.x] = inlined.excluded[threadIdx.x];
        __syncthreads();
    }
    wait_for_previous();
    const DeviceQuery query = inlined.usable ? inlined.query : queries.queries[0];
    const float* const raw = inlined.usable ? shared_raw : queries.raw;
    const std::uint32_t* const excluded = inlined.usable ? shared_excluded : queries.excluded;
    double floor;
    if (warps > 0) {
        floor = floor_of(query, kth_largest_lower_bound<kCollectThreads, 8>(work.warp_maxima, warps,
                                                                            query.k_plus_excluded));
    } else {
        floor = work.floors[0];
    }
    const float cutoff = __double2float_rd(floor - query.error);
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned part = lane % kCanonicalLanes;

    /// Groups whose estimate reaches the cutoff.
    __shared__ std::uint32_t candidates[kCollectThreads];
    __shared__ std::uint32_t candidate_count;
    std::uint32_t scored = 0;

    // Scores the rows row_at(0) … row_at(count - 1). The whole block calls it. Eligibility is
    // tested after the score, so that the loads for both overlap.
    const auto score_rows = [&](std::uint32_t count, bool covered, auto row_at) {
        for (std::uint32_t base = warp * kTeamsPerWarp; base < count;
             base += kCollectThreads / kWarp * kTeamsPerWarp) {
            const std::uint32_t i = base + lane / kCanonicalLanes;
            const std::uint32_t row = i < count ? row_at(i) : 0;
            const bool active = i < count && row < model.rows;
            const bool mine = active && part == 0;
            double score = 0;
            if constexpr (kStored) {
                // NaN, which reaches no floor, for rows that are not eligible.
                if (mine) score = work.scores[row];
            } else {
                bool eligible = mine;
                if (mine)
                    eligible =
                        isnan(model.inverse_norms[row]) != covered && admits(query, model, row);
                const double norm = mine ? model.norms[row] : 0;
                const double dot = team_dot(raw, row_of(model, row), model.dim, part, active);
                if (!eligible) continue;
                score = score_from_dot(dot, query.norm, norm);
            }
            if (!mine) continue;
            ++scored;
            if (!(score >= floor) || is_excluded(query, excluded, row)) continue;
            const std::uint32_t at = atomicAdd(&work.counters[kFoundCounter], 1U);
            if (at < kFoundCapacity) work.found[at] = {score, row, 0};
        }
    };

    for (std::uint32_t begin = blockIdx.x * kCollectThreads; begin < model.groups;
         begin += gridDim.x * kCollectThreads) {
        if (threadIdx.x == 0) candidate_count = 0;
        __syncthreads();
        const std::uint32_t group = begin + threadIdx.x;
        const float maximum = group < model.groups ? work.maxima[group] : minus_infinity();
        // -infinity: no row of the group is eligible, even where the floor is -infinity too.
        if (maximum >= cutoff && maximum != minus_infinity())
            candidates[atomicAdd(&candidate_count, 1U)] = group;
        __syncthreads();
        score_rows(candidate_count * kGroupRows, true, [&](std::uint32_t i) {
            return candidates[i / kGroupRows] * kGroupRows + i % kGroupRows;
        });
        __syncthreads();
    }
    if constexpr (!kStored) {
        const std::uint32_t share = (model.uncovered_count + gridDim.x - 1) / gridDim.x;
        const std::uint32_t first = min(blockIdx.x * share, model.uncovered_count);
        score_rows(min(share, model.uncovered_count - first), false,
                   [&](std::uint32_t i) { return model.uncovered[first + i]; });
    }
    scored = warp_sum(scored);
    if (lane == 0 && scored > 0) atomicAdd(&work.counters[kRescoredCounter], scored);

    if (!is_last_block(&work.counters[kBlocksDoneCounter])) return;
    rank<kCollectThreads>(query, floor, work);
}

/// Counts the eligible rows that come before `target`.
__global__ void count_before(DeviceModel model, DeviceQueries queries, Found target,
                             Workspace work) {
    const DeviceQuery query = queries.queries[0];
    std::uint32_t count = 0;
    for (std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x; row < model.rows;
         row += gridDim.x * blockDim.x) {
        // NaN, which is before nothing, for rows that rank, range and min_score rule out.
        const double score = work.scores[row];
        if (model.first_row + row == target.row || is_excluded(query, queries.excluded, row))
            continue;
        count +=
            score > target.score || (score == target.score && model.first_row + row < target.row)
                ? 1
                : 0;
    }
    count = warp_sum(count);
    if (threadIdx.x % kWarp == 0 && count > 0) atomicAdd(&work.counters[kFoundCounter], count);
}

/// Writes the count to the answer and clears the counter. One thread.
__global__ void report_count(Workspace work) {
    work.answers[0] = {static_cast<double>(minus_infinity()), 0, work.counters[kFoundCounter], 0,
                       0};
    work.counters[kFoundCounter] = 0;
}

}  // namespace

bool scan_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries,
                                const DeviceShape& shape) {
    return queries.count == 1 && can_stream(model, queries, shape) && model.dim <= kInlineFloats &&
           queries.host.queries[0].excluded_count <= kInlineExcluded &&
           threshold_from_warps(queries, stream_warps(model, shape));
}

cudaError_t load_select_kernels() {
    return load_each(threshold, collect<SelectSource::warp_maxima>,
                     collect<SelectSource::stored_scores>, count_before, report_count);
}

cudaError_t launch_select(const DeviceModel& model, const DeviceQueries& queries,
                          SelectSource source, std::uint32_t warps, const Workspace& work,
                          const DeviceShape& shape, cudaStream_t stream) {
    const bool by_warps =
        source == SelectSource::warp_maxima && threshold_from_warps(queries, warps);
    SelectQuery inlined;
    if (source == SelectSource::warp_maxima && scan_query_fits_parameters(model, queries, shape)) {
        inlined.query = queries.host.queries[0];
        inlined.query.excluded_begin = 0;
        std::copy_n(queries.host.excluded, inlined.query.excluded_count, inlined.excluded);
        std::copy_n(queries.host.raw, model.dim, inlined.raw);
        inlined.usable = true;
    }
    if (!by_warps) {
        threshold<<<1, kThresholdThreads, 0, stream>>>(queries.queries, work.maxima, model.groups,
                                                       work.floors);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    }
    // Blocks that fill the device, and no more than there are pieces of work.
    const std::uint32_t piece_rows = kCollectThreads * kGroupRows;
    const std::uint32_t piece_groups = piece_rows / kGroupRows;
    const std::uint32_t pieces = max((model.groups + piece_groups - 1) / piece_groups, 1U);
    const unsigned filling = static_cast<unsigned>(shape.processors) * kCollectBlocks;
    const unsigned blocks = blocks_of_rounds(min(pieces, filling), piece_rows);
    const auto kernel = source == SelectSource::stored_scores ? collect<SelectSource::stored_scores>
                                                              : collect<SelectSource::warp_maxima>;
    if (by_warps)
        return launch_early(shape, kernel, blocks, kCollectThreads, 0, stream, model, queries,
                            inlined, warps, work);
    kernel<<<blocks, kCollectThreads, 0, stream>>>(model, queries, inlined, 0, work);
    return cudaGetLastError();
}

cudaError_t launch_count_before(const DeviceModel& model, const DeviceQueries& queries,
                                std::uint32_t target_row, double target_score,
                                const Workspace& work, const DeviceShape& shape,
                                cudaStream_t stream) {
    const unsigned blocks =
        blocks_of_rounds(static_cast<unsigned>(shape.processors) * kCollectBlocks, kCollectThreads);
    count_before<<<blocks, kCollectThreads, 0, stream>>>(model, queries,
                                                         {target_score, target_row, 0}, work);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    report_count<<<1, 1, 0, stream>>>(work);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
