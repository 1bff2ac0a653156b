// A pass over the plane for many queries: its schedule, its thresholds and the canonical scores of
// the rows that come through. plane_multiply.cu has the product.
//
// The plane is taken in parts, each as large as all before it together, but for the first. Between
// two parts the canonical scores of the survivors raise the thresholds, so that all parts let about
// as many rows through. Before the first part, the largest estimates among its rows name some whose
// canonical scores are the first thresholds. docs/certified-search.md has the proof.
#include <algorithm>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/encode_int8.cuh"
#include "kernels/cuda/int8_codes.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_pass.cuh"
#include "kernels/cuda/plane_tiles.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
/// Blocks of a rescore in all, a processor: several waves even out queries with many survivors and
/// with few.
constexpr unsigned kRescoreBlocks = 64;
/// Blocks of a rescore for one query. More would have too few rows each.
constexpr unsigned kMaxRescoreBlocks = 64;
/// Fewer could not remember all rows that they may have to score.
constexpr unsigned kMinRescoreBlocks = 8;
/// Rows of a query whose canonical scores make its first threshold.
constexpr std::uint32_t kMinCandidates = 64;
constexpr std::uint32_t kCandidatesPerHit = 2;
constexpr std::uint32_t kMaxCandidates = 512;

/// Computes the queries' digits of one byte each, and of two where there are int8 codes, as
/// make_plane_query does. One warp a query.
__global__ __launch_bounds__(kThreads) void prepare(DeviceModel model, DeviceQueries queries,
                                                    PlaneWorkspace plane) {
    const std::uint32_t q = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (q >= queries.count) return;
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t dim = model.dim;
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    const double norm = queries.queries[q].norm;
    const float longest = longest_component(raw, dim, lane);
    const std::uint32_t width = (dim + kDigitStep - 1) / kDigitStep * kDigitStep;
    std::int8_t* const digits = plane.digits + static_cast<std::size_t>(q) * width;
    const planes::DigitFacts facts =
        query_digits(raw, norm, dim, longest, planes::kOneByteDigit, lane, width,
                     [&](unsigned i, int digit) { digits[i] = static_cast<std::int8_t>(digit); });
    if (lane == 0) plane.facts[q] = facts;
    if (model.int8_codes.rows != nullptr) {
        const std::uint32_t stride = model.int8_codes.stride;
        std::int8_t* const high = plane.int8_digits + static_cast<std::size_t>(q) * 2 * stride;
        const planes::DigitFacts int8_facts =
            query_digits(raw, norm, dim, longest, planes::kTwoByteDigit, lane, stride,
                         [&](unsigned i, int digit) {
                             const int upper = (digit + 64) >> 7;
                             high[i] = static_cast<std::int8_t>(upper);
                             high[stride + i] = static_cast<std::int8_t>(digit - 128 * upper);
                         });
        if (lane == 0) plane.int8_facts[q] = int8_facts;
    }
    if (lane == 0) plane.counters[q] = {};
}

/// Finds a query's first threshold: the canonical scores of the sample's best rows. One block a
/// query.
__global__ __launch_bounds__(kThreads) void first_floor(DeviceModel model, DeviceQueries queries,
                                                        Part part, PlaneWorkspace work) {
    __shared__ std::uint32_t rows[kMaxCandidates];
    __shared__ double scores[kMaxCandidates];
    __shared__ std::uint32_t count;
    __shared__ double floor;
    const std::uint32_t q = blockIdx.x;
    const DeviceQuery query = queries.queries[q];
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    const float* const keys = work.keys + static_cast<std::size_t>(q) * part.groups;
    if (threadIdx.x == 0) {
        count = 0;
        floor = static_cast<double>(minus_infinity());
    }
    __syncthreads();
    const std::uint32_t tried =
        min(max(kMinCandidates, kCandidatesPerHit * query.k_plus_excluded), kMaxCandidates);
    const float least = fmaxf(
        kth_largest_lower_bound<kThreads, 8, kMinGuessBit>(keys, part.groups, tried), kNoKeyAtMost);
    for (std::uint32_t i = threadIdx.x; i < part.groups; i += kThreads) {
        const float key = keys[i];
        if (!(key >= least)) continue;
        const std::uint32_t at = atomicAdd(&count, 1U);
        if (at >= kMaxCandidates) continue;
        const std::uint32_t in_group = static_cast<std::uint32_t>(__float_as_int(key)) & kRowBits;
        rows[at] = ((i << part.shift) + part.offset) * planes::kGroupRows + in_group;
    }
    __syncthreads();
    const std::uint32_t candidates = min(count, kMaxCandidates);
    score_rows<kThreads>(
        model, query, raw, candidates, [&](std::uint32_t i) { return rows[i]; },
        [&](std::uint32_t i, std::uint32_t, double score) { scores[i] = score; });
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < candidates; i += kThreads) {
        // A damaged row's score is NaN, which has no place.
        if (isnan(scores[i])) continue;
        std::uint32_t place = 0;
        for (std::uint32_t j = 0; j < candidates; ++j) {
            place += scores[j] > scores[i] || (scores[j] == scores[i] && j < i) ? 1 : 0;
        }
        if (place == query.k_plus_excluded - 1) floor = scores[i];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    const double from = fmax(floor, query.min_score);
    work.floors[q] = from;
    work.cutoffs[q] = planes::plane_cutoff(work.facts[q], from, model.dim);
}

/// Scores a part's survivors canonically; eligible ones that reach the floor are found. The blocks
/// of query blockIdx.y share its survivors. After the first part, scores the uncovered rows too.
__global__ __launch_bounds__(kThreads) void rescore(DeviceModel model, DeviceQueries queries,
                                                    bool first, Workspace all) {
    const PlaneWorkspace& work = all.plane;
    const std::uint32_t q = blockIdx.y;
    PlaneCounters& counters = work.counters[q];
    const std::uint32_t survivors = counters.part_survivors;
    if (survivors > kPlanePassSurvivors) return;
    const DeviceQuery query = queries.queries[q];
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    const double floor = work.floors[q];
    Found* const found = all.found + static_cast<std::size_t>(q) * kBatchFound;
    const auto keep = [&](std::uint32_t, std::uint32_t row, double score) {
        if (!(score >= floor) || !admits(query, model, row) ||
            is_excluded(query, queries.excluded, row))
            return;
        const std::uint32_t at = atomicAdd(&counters.found, 1U);
        if (at < kBatchFound) found[at] = {score, row, 0};
    };
    const auto share = [&](std::uint32_t count, auto row_at, const auto& take) {
        const std::uint32_t size = (count + gridDim.x - 1) / gridDim.x;
        const std::uint32_t begin = min(blockIdx.x * size, count);
        score_rows<kThreads>(
            model, query, raw, min(size, count - begin),
            [&](std::uint32_t i) { return row_at(begin + i); }, take);
    };
    const std::uint32_t* const rows =
        work.survivors + static_cast<std::size_t>(q) * kPlanePassSurvivors;
    // Few survivors need few blocks.
    const std::uint32_t size = max((survivors + gridDim.x - 1) / gridDim.x, kThreads);
    if (model.int8_codes.rows == nullptr) {
        share(
            survivors, [&](std::uint32_t i) { return rows[i]; }, keep);
    } else if (blockIdx.x * size < survivors) {
        // Int8 codes rule out nearly all survivors; the rest is scored together.
        __shared__ std::uint32_t left[kPlanePassSurvivors / kMinRescoreBlocks];
        __shared__ std::uint32_t left_count;
        const std::uint32_t begin = blockIdx.x * size;
        const std::uint32_t end = min(begin + size, survivors);
        const Int8Cutoff cutoff = int8_cutoff(work.int8_facts[q], floor, model.dim);
        const std::uint32_t vectors = model.int8_codes.stride / kInt8Step;
        const auto* const digits = reinterpret_cast<const uint4*>(
            work.int8_digits + static_cast<std::size_t>(q) * 2 * model.int8_codes.stride);
        constexpr unsigned kTeams = kThreads / kCanonicalLanes;
        constexpr unsigned kRowsOfTeam = kThreads / kTeams;
        static_assert(kMaxProducts * kDigitStep <= kInt8DimsAtOnce);
        const unsigned part = threadIdx.x % kCanonicalLanes;
        Int8Digits own[kInt8Loads];
#pragma unroll
        for (unsigned j = 0; j < kInt8Loads; ++j) {
            const unsigned v = part + j * kCanonicalLanes;
            if (v < vectors) own[j] = {digits[v], digits[vectors + v]};
        }
        if (threadIdx.x == 0) left_count = 0;
        __syncthreads();
        for (std::uint32_t lot = begin; lot < end; lot += kThreads) {
#pragma unroll 4
            for (unsigned r = 0; r < kRowsOfTeam; ++r) {
                const std::uint32_t i = lot + r * kTeams + threadIdx.x / kCanonicalLanes;
                const std::uint32_t row = rows[min(i, end - 1)];
                const bool out =
                    int8_rules_out<true>(model.int8_codes, row, part, cutoff,
                                         [&](std::uint32_t, unsigned j) { return own[j]; });
                if (part == 0 && i < end && !out) {
                    left[atomicAdd(&left_count, 1U)] = row;
                }
            }
        }
        __syncthreads();
        score_rows<kThreads>(
            model, query, raw, left_count, [&](std::uint32_t i) { return left[i]; }, keep);
        if (threadIdx.x == 0) atomicAdd(&counters.rescored, left_count);
    }
    if (first) {
        share(
            model.uncovered_count, [&](std::uint32_t i) { return model.uncovered[i]; }, keep);
    }
}

/// Keeps the best found rows and raises the threshold to the k-th of them. After the last part,
/// writes the answer. One block a query.
__global__ __launch_bounds__(kThreads) void settle(DeviceModel model, DeviceQueries queries,
                                                   bool first, bool last, Workspace all) {
    __shared__ Found kept[kBatchFound];
    __shared__ double next_floor;
    __shared__ std::uint32_t left;
    const PlaneWorkspace& work = all.plane;
    const std::uint32_t q = blockIdx.x;
    PlaneCounters& counters = work.counters[q];
    const std::uint32_t count = counters.found;
    const bool overflow = counters.overflow != 0 || counters.part_survivors > kPlanePassSurvivors ||
                          count > kBatchFound;
    const std::uint32_t here = overflow ? 0 : count;
    const std::uint32_t survivors =
        counters.survivors + counters.part_survivors + (first ? model.uncovered_count : 0);
    const std::uint32_t rescored =
        counters.rescored + (model.int8_codes.rows == nullptr ? counters.part_survivors : 0) +
        (first ? model.uncovered_count : 0);
    const DeviceQuery query = queries.queries[q];
    Found* const found = all.found + static_cast<std::size_t>(q) * kBatchFound;
    Found* const hits = all.hits + static_cast<std::size_t>(q) * kMaxBatchHits;
    for (std::uint32_t i = threadIdx.x; i < here; i += kThreads) kept[i] = found[i];
    if (threadIdx.x == 0) {
        next_floor = work.floors[q];
        left = 0;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < here; i += kThreads) {
        const Found mine = kept[i];
        std::uint32_t place = 0;
        for (std::uint32_t j = 0; j < here; ++j) place += comes_before(kept[j], mine) ? 1 : 0;
        if (place == query.k - 1) next_floor = mine.score;
        if (last && place < query.k) hits[place] = mine;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < here && !last; i += kThreads) {
        if (kept[i].score >= next_floor) found[atomicAdd(&left, 1U)] = kept[i];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    counters = {.part_survivors = 0,
                .found = left,
                .rescored = rescored,
                .overflow = overflow ? 1U : 0U,
                .survivors = survivors};
    work.floors[q] = next_floor;
    if (last) {
        all.answers[q] = {next_floor, min(query.k, here), overflow ? kFoundCapacity + 1 : here,
                          rescored, survivors};
    } else {
        // Another pass answers an overflowed query; a floor of 2 lets no more rows through.
        work.cutoffs[q] =
            planes::plane_cutoff(work.facts[q], overflow ? 2.0 : next_floor, model.dim);
    }
}

}  // namespace

cudaError_t load_plane_pass_kernels() { return load_each(prepare, first_floor, rescore, settle); }

cudaError_t launch_plane_pass(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape,
                              cudaStream_t stream) {
    const auto part_of = [&](std::uint32_t shift, std::uint32_t offset) {
        const std::uint32_t groups = model.plane.groups;
        return Part{shift, offset, groups <= offset ? 0 : ((groups - offset - 1) >> shift) + 1};
    };
    std::uint32_t shift = 0;
    while ((std::uint32_t{1} << shift) < kPlaneSample) ++shift;
    const Part sample = part_of(shift, 0);

    prepare<<<(queries.count + kWarps - 1) / kWarps, kThreads, 0, stream>>>(model, queries,
                                                                            work.plane);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    if (const auto error = multiply_to_keys(model, queries, sample, work, shape, stream);
        error != cudaSuccess)
        return error;
    first_floor<<<queries.count, kThreads, 0, stream>>>(model, queries, sample, work.plane);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;

    // The sample, then the groups halfway between those taken, until none is left.
    for (std::uint32_t left = shift + 1;; --left) {
        const bool first = left == shift + 1;
        const Part part = first ? sample : part_of(left, std::uint32_t{1} << (left - 1));
        const bool last = left == 1 || kPlaneSample == 1;
        if (const auto error = multiply_to_survivors(model, queries, part, work, shape, stream);
            error != cudaSuccess) {
            return error;
        }
        const unsigned blocks =
            std::clamp(static_cast<unsigned>(shape.processors) * kRescoreBlocks / queries.count,
                       kMinRescoreBlocks, kMaxRescoreBlocks);
        rescore<<<dim3(blocks, queries.count), kThreads, 0, stream>>>(model, queries, first, work);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
        settle<<<queries.count, kThreads, 0, stream>>>(model, queries, first, last, work);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
        if (last) return cudaSuccess;
    }
}

}  // namespace gloved::kernels::cuda
