// Select: answers from estimates, by threshold, collect and rank (launches.hpp).
#include <algorithm>
#include <cstring>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_codes.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/cuda/stream.cuh"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThresholdThreads = 1024;
constexpr unsigned kCollectThreads = 256;
constexpr unsigned kCollectBlocks = 4;  // a processor
constexpr unsigned kTeamsPerWarp = kWarp / kCanonicalLanes;
/// Limits of a query that is passed as a parameter: the widths that stream.cu has loops for.
constexpr unsigned kInlineFloats = 300;
constexpr unsigned kInlineExcluded = 16;
constexpr unsigned kInlineSteps = (kInlineFloats + planes::kStepDims - 1) / planes::kStepDims;
/// Steps of digits that a row's int8 codes and bounds are multiplied with; zeros for the bounds.
constexpr unsigned kMaxInt8Steps = int8_stride(kMaxInt8Dim) / planes::kStepDims;
/// Values that a block's threads keep for the radix select. The kMaxKPlusExcluded-th largest of so
/// many is hardly below that of all groups.
constexpr unsigned kMaximaApart = 8192;
/// Warps for each hit or excluded row that a threshold from the warps' maxima needs: few hits then
/// share a warp.
constexpr unsigned kWarpsPerRow = 4;
/// Upper bounds that a thread loads at once.
constexpr unsigned kRowsOfThread = 16;

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

/// Orders the found rows: a hit's place is the number of those before it. The last block
/// calls it.
__device__ void rank(const DeviceQuery& query, double floor, const Workspace& work) {
    std::uint32_t* const counters = work.counters;
    const std::uint32_t count = __ldcg(counters + kFoundCounter);
    const std::uint32_t rescored = __ldcg(counters + kRescoredCounter);
    const std::uint32_t ruled_out = __ldcg(counters + kRuledOutCounter);
    __syncthreads();
    if (threadIdx.x == 0) {
        const std::uint32_t hits = count <= kFoundCapacity ? min(query.k, count) : 0;
        work.answers[0] = {floor, hits, count, rescored, rescored + ruled_out};
        for (std::uint32_t i = 0; i < kCounters; ++i) counters[i] = 0;
    }
    if (count > kFoundCapacity) return;
    const Found* const found = work.found;

    __shared__ Found tile[kCollectThreads];
    for (std::uint32_t begin = 0; begin < count; begin += kCollectThreads) {
        const std::uint32_t i = begin + threadIdx.x;
        Found mine;
        if (i < count) mine = found[i];
        std::uint32_t place = 0;
        for (std::uint32_t other = 0; other < count; other += kCollectThreads) {
            __syncthreads();
            if (other + threadIdx.x < count) tile[threadIdx.x] = found[other + threadIdx.x];
            __syncthreads();
            const std::uint32_t size = min(kCollectThreads, count - other);
            for (std::uint32_t j = 0; j < size; ++j) place += comes_before(tile[j], mine) ? 1 : 0;
        }
        if (i < count && place < query.k) work.hits[place] = mine;
    }
}

/// Whether collect finds the threshold from warp_maxima.
bool threshold_from_warps(const DeviceQueries& queries, std::uint32_t warps) {
    return queries.max_k_plus_excluded * kWarpsPerRow <= warps;
}

/// Whether a single query checks int8 codes before it reads a row.
GLOVED_HOST_DEVICE bool checks_int8(const DeviceModel& model) {
    return model.vectors_on_host && model.int8_codes.rows != nullptr;
}

/// A single query as a parameter of collect; where not `usable`, the queries are on the device.
struct SelectQuery {
    DeviceQuery query;
    std::uint32_t excluded[kInlineExcluded];
    float raw[kInlineFloats];
    uint4 digits[kInlineSteps];  // for int8 codes
    bool usable = false;
};

/// Scores the groups (or, with uppers, the rows) that may hold a hit, one row a team, and finds
/// those that reach the floor. The blocks share the groups and the uncovered rows; the last block
/// to end ranks what all have found. With `warps`, each block finds the same floor from the warps'
/// maxima, which is faster than another launch. blockIdx.y: the query.
template <SelectSource kSource>
__global__ __launch_bounds__(kCollectThreads) void collect(DeviceModel model, DeviceQueries queries,
                                                           SelectQuery inlined, std::uint32_t warps,
                                                           Workspace all) {
    constexpr bool kStored = kSource == SelectSource::stored_scores;
    constexpr bool kByRow = kSource == SelectSource::uppers;
    // Rows in host memory are read only where int8 codes do not rule them out.
    const bool by_int8 = kByRow && checks_int8(model);
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
    const unsigned q = kByRow ? blockIdx.y : 0;
    const Workspace work = workspace_of_query(model, all, q);
    const DeviceQuery query = inlined.usable ? inlined.query : queries.queries[q];
    const float* const raw =
        inlined.usable ? shared_raw : queries.raw + static_cast<std::size_t>(q) * model.stride;
    const std::uint32_t* const excluded = inlined.usable ? shared_excluded : queries.excluded;
    double floor;
    if (!kByRow && warps > 0) {
        floor = floor_of(query, kth_largest_lower_bound<kCollectThreads, 8>(work.warp_maxima, warps,
                                                                            query.k_plus_excluded));
    } else {
        floor = work.floors[0];
    }
    const float cutoff = __double2float_rd(kByRow ? floor : floor - query.error);
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned part = lane % kCanonicalLanes;

    /// Groups, or with uppers rows, whose estimate reaches the cutoff.
    __shared__ std::uint32_t candidates[kByRow ? kCollectThreads * kRowsOfThread : kCollectThreads];
    __shared__ std::uint32_t candidate_count;
    std::uint32_t scored = 0;
    std::uint32_t ruled_out = 0;

    __shared__ uint4 digits[kByRow ? kMaxInt8Steps : 1];
    planes::Int8Cutoff int8_cutoff;
    if (by_int8) {
        const auto* const on_device =
            reinterpret_cast<const uint4*>(queries.digits) + q * model.plane.steps;
        for (unsigned i = threadIdx.x; i < model.int8_codes.stride / planes::kStepDims;
             i += kCollectThreads) {
            const bool there = i < model.plane.steps;
            digits[i] = !there           ? uint4{0, 0, 0, 0}
                        : inlined.usable ? inlined.digits[i]
                                         : on_device[i];
        }
        int8_cutoff = planes::int8_cutoff(query.digits, floor, model.dim);
        __syncthreads();
    }
    /// Drops the candidates that int8 codes rule out. The whole block calls it.
    const auto drop_ruled_out = [&] {
        __shared__ std::uint32_t left;
        const std::uint32_t count = candidate_count;
        if (threadIdx.x == 0) left = 0;
        constexpr std::uint32_t kTeams = kCollectThreads / kCanonicalLanes;
        for (std::uint32_t base = 0; base < count; base += kTeams) {
            const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
            const std::uint32_t row = candidates[min(i, count - 1)];
            // 16 bytes of a row are two steps of digits.
            const bool out = int8_rules_out<false>(
                model.int8_codes, row, part, int8_cutoff, [&](std::uint32_t v, unsigned) {
                    if (v >= model.int8_codes.stride / kInt8Step) return Int8Digits{};
                    const uint4 one = digits[2 * v];
                    const uint4 two = digits[2 * v + 1];
                    return Int8Digits{{one.x, one.y, two.x, two.y}, {one.z, one.w, two.z, two.w}};
                });
            __syncthreads();  // all threads have read their candidate
            if (part == 0 && i < count && !out) candidates[atomicAdd(&left, 1U)] = row;
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            candidate_count = left;
            ruled_out += count - left;
        }
        __syncthreads();
    };

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
                const double dot = kByRow
                                       ? row_dot(model, raw, row, part, active)
                                       : team_dot(raw, row_of(model, row), model.dim, part, active);
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

    if constexpr (kByRow) {
        constexpr std::uint32_t kRowsOfBlock = kCollectThreads * kRowsOfThread;
        const auto* const uppers = reinterpret_cast<const float4*>(work.uppers);
        // `uppers` is written for whole groups of rows.
        const std::uint32_t base = query.first / kGroupRows * kGroupRows;
        const std::uint32_t end = query.last > query.first
                                      ? (query.last + kGroupRows - 1) / kGroupRows * kGroupRows
                                      : base;
        for (std::uint32_t begin = base + blockIdx.x * kRowsOfBlock; begin < end;
             begin += gridDim.x * kRowsOfBlock) {
            if (threadIdx.x == 0) candidate_count = 0;
            __syncthreads();
            float4 values[kRowsOfThread / 4];
#pragma unroll
            for (unsigned j = 0; j < kRowsOfThread / 4; ++j) {
                const std::uint32_t row = begin + 4 * (j * kCollectThreads + threadIdx.x);
                const float none = minus_infinity();
                values[j] = row < end ? uppers[row / 4] : float4{none, none, none, none};
            }
#pragma unroll
            for (unsigned j = 0; j < kRowsOfThread / 4; ++j) {
                const std::uint32_t row = begin + 4 * (j * kCollectThreads + threadIdx.x);
                const float of_rows[4] = {values[j].x, values[j].y, values[j].z, values[j].w};
#pragma unroll
                for (unsigned r = 0; r < 4; ++r) {
                    if (of_rows[r] >= cutoff && of_rows[r] != minus_infinity())
                        candidates[atomicAdd(&candidate_count, 1U)] = row + r;
                }
            }
            __syncthreads();
            if (by_int8 && candidate_count > 0) drop_ruled_out();
            score_rows(candidate_count, true, [&](std::uint32_t i) { return candidates[i]; });
            __syncthreads();
        }
    } else {
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
    }
    if constexpr (!kStored) {
        const std::uint32_t share = (model.uncovered_count + gridDim.x - 1) / gridDim.x;
        const std::uint32_t first = min(blockIdx.x * share, model.uncovered_count);
        score_rows(min(share, model.uncovered_count - first), false,
                   [&](std::uint32_t i) { return model.uncovered[first + i]; });
    }
    scored = warp_sum(scored);
    if (lane == 0 && scored > 0) atomicAdd(&work.counters[kRescoredCounter], scored);
    if (ruled_out > 0) atomicAdd(&work.counters[kRuledOutCounter], ruled_out);

    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0) {
        // This block's writes are visible before it counts as done, and those of blocks that count
        // as done are visible here.
        __threadfence();
        last = atomicAdd(&work.counters[kBlocksDoneCounter], 1U) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    rank(query, floor, work);
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

bool plane_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries) {
    return queries.count == 1 && model.dim <= kInlineFloats &&
           queries.host.queries[0].excluded_count <= kInlineExcluded;
}

cudaError_t load_select_kernels() {
    return load_each(threshold, collect<SelectSource::warp_maxima>,
                     collect<SelectSource::stored_scores>, collect<SelectSource::uppers>,
                     count_before, report_count);
}

cudaError_t launch_select(const DeviceModel& model, const DeviceQueries& queries,
                          SelectSource source, std::uint32_t warps, const Workspace& work,
                          const DeviceShape& shape, cudaStream_t stream) {
    const bool by_row = source == SelectSource::uppers;
    const bool by_warps =
        source == SelectSource::warp_maxima && threshold_from_warps(queries, warps);
    SelectQuery inlined;
    if (by_row ? plane_query_fits_parameters(model, queries)
               : source == SelectSource::warp_maxima &&
                     scan_query_fits_parameters(model, queries, shape)) {
        inlined.query = queries.host.queries[0];
        inlined.query.excluded_begin = 0;
        std::copy_n(queries.host.excluded, inlined.query.excluded_count, inlined.excluded);
        std::copy_n(queries.host.raw, model.dim, inlined.raw);
        if (by_row && checks_int8(model)) {
            std::memcpy(inlined.digits, queries.host.digits, model.plane.steps * sizeof(uint4));
        }
        inlined.usable = true;
    }
    if (!by_warps && !by_row) {
        threshold<<<1, kThresholdThreads, 0, stream>>>(queries.queries, work.maxima, model.groups,
                                                       work.floors);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    }
    // Blocks that fill the device, and no more than there are pieces of work.
    const std::uint32_t piece_rows = kCollectThreads * (by_row ? kRowsOfThread : kGroupRows);
    const std::uint32_t piece_groups = piece_rows / kGroupRows;
    const std::uint32_t pieces = max((model.groups + piece_groups - 1) / piece_groups, 1U);
    const unsigned filling = static_cast<unsigned>(shape.processors) * kCollectBlocks;
    const unsigned blocks = blocks_of_rounds(min(pieces, filling), piece_rows);
    const auto kernel = source == SelectSource::stored_scores ? collect<SelectSource::stored_scores>
                        : by_row                              ? collect<SelectSource::uppers>
                                                              : collect<SelectSource::warp_maxima>;
    if (by_warps || by_row)
        return launch_early(shape, kernel, dim3(blocks, by_row ? queries.count : 1),
                            kCollectThreads, 0, stream, model, queries, inlined,
                            by_warps ? warps : 0, work);
    kernel<<<blocks, kCollectThreads, 0, stream>>>(model, queries, inlined, by_warps ? warps : 0,
                                                   work);
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
