// Many queries by the 4-bit plane: an integer matrix product on tensor cores whose results are held
// against cutoffs in registers.
//
// Nothing but rows that may belong to an answer leaves a processor. The plane is taken in parts,
// each as large as all before it together, but for the first: between two of them the canonical
// scores of what came through raise the thresholds, so that all parts let through about as many.
// Before the first, the largest estimates among its rows name some whose canonical scores are the
// thresholds to begin with. docs/certified-search.md has the proof.
//
// A warp keeps the digits of 32 queries in registers for good. A thread's share of an instruction's
// 16 rows is whole 4-byte words of the plane, as they lie in memory: an even and an odd four
// components, which one mask each makes bytes.
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_codes.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_tiles.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kBlocksPerProcessor = 2;
/// That rescore starts in all, a processor: several waves of them even out queries of many
/// survivors and of few.
constexpr unsigned kRescoreBlocks = 64;
/// More for one query would have too few rows each.
constexpr unsigned kMaxRescoreBlocks = 64;
/// Fewer could not remember all rows that they may have to score.
constexpr unsigned kMinRescoreBlocks = 8;
constexpr unsigned kTileQueries = 8;  // of an instruction
constexpr unsigned kTiles = 4;
constexpr unsigned kWarpQueries = kTiles * kTileQueries;
constexpr unsigned kBlockQueries = kWarps * kWarpQueries;
/// Groups that a block holds in shared memory, twice: one lot is multiplied while the next comes
/// in. As many as let two blocks share a processor.
constexpr unsigned kMaxTileGroups = 16;
constexpr unsigned kMinTileGroups = 4;
/// Hits that a warp can have in one group, and that its buffer holds.
constexpr unsigned kHitsOfGroup = planes::kGroupRows * kWarpQueries;
constexpr unsigned kHitsRoom = kHitsOfGroup + 96;
/// So that a hit's group, row and query fit 32 bits.
constexpr std::uint32_t kMaxGroups = 1U << 23;
constexpr std::uint32_t kCodeMask = 0x0F0F0F0FU;
/// Below any estimate.
constexpr float kNoKey = -3e38F;
constexpr float kNoKeyAtMost = -1e38F;
/// Low bits of a key that say which of a group's rows it is of.
constexpr std::uint32_t kRowBits = planes::kGroupRows - 1;
constexpr std::uint32_t kMinCandidates = 64;
constexpr std::uint32_t kCandidatesPerHit = 2;
constexpr std::uint32_t kMaxCandidates = 512;

/// Every 2^shift-th group from `offset` on: `groups` in all.
struct Part {
    std::uint32_t shift = 0;
    std::uint32_t offset = 0;
    std::uint32_t groups = 0;
};

/// sums (16 rows, 8 queries) += rows (16, 32) * queries (32, 8).
__device__ inline void multiply_add(int (&sums)[4], const std::uint32_t (&rows)[4], uint2 queries) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
        "%9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(queries.x), "r"(queries.y));
#endif
}

/// One warp a query: its digits of one byte each, and of two where there is an int8 plane, as
/// make_plane_query has them.
__global__ __launch_bounds__(kThreads) void prepare(DeviceModel model, DeviceQueries queries,
                                                    PlaneWorkspace plane) {
    const std::uint32_t q = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (q >= queries.count) return;
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t dim = model.dim;
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    const double norm = queries.queries[q].norm;
    float longest = 0;
    for (unsigned i = lane; i < dim; i += kWarp) longest = fmaxf(longest, fabsf(raw[i]));
    longest = warp_max(longest);

    /// put(i, digit) for every i below `width`.
    const auto digits_of = [&](int largest, std::uint32_t width, planes::DigitFacts* facts,
                               auto put) {
        const double scale = static_cast<double>(longest) / norm / largest;
        double remainder = 0;
        int sum = 0;
        int size = 0;
        for (unsigned i = lane; i < width; i += kWarp) {
            int digit = 0;
            if (i < dim) {
                const double component = static_cast<double>(raw[i]) / norm;
                digit = max(-largest, min(largest, __double2int_rn(component / scale)));
                const double left = component - scale * digit;
                remainder += left * left;
                sum += digit;
                size += abs(digit);
            }
            put(i, digit);
        }
        for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
            remainder += __shfl_xor_sync(kWholeWarp, remainder, distance);
            sum += __shfl_xor_sync(kWholeWarp, sum, distance);
            size += __shfl_xor_sync(kWholeWarp, size, distance);
        }
        if (lane > 0) return;
        facts[q] = {scale, planes::remainder_bound(remainder), static_cast<double>(sum),
                    static_cast<double>(size)};
    };
    const std::uint32_t width = (dim + kDigitStep - 1) / kDigitStep * kDigitStep;
    std::int8_t* const digits = plane.digits + static_cast<std::size_t>(q) * width;
    digits_of(planes::kOneByteDigit, width, plane.facts,
              [&](unsigned i, int digit) { digits[i] = static_cast<std::int8_t>(digit); });
    if (model.int8_codes.rows != nullptr) {
        const std::uint32_t stride = model.int8_codes.stride;
        std::int8_t* const high = plane.int8_digits + static_cast<std::size_t>(q) * 2 * stride;
        digits_of(planes::kTwoByteDigit, stride, plane.int8_facts, [&](unsigned i, int digit) {
            const int upper = (digit + 64) >> 7;
            high[i] = static_cast<std::int8_t>(upper);
            high[stride + i] = static_cast<std::int8_t>(digit - 128 * upper);
        });
    }
    if (lane < kPlaneCounters) plane.counters[q * kPlaneCounters + lane] = 0;
}

/// One warp a row at a time.
__global__ __launch_bounds__(kThreads) void build_int8_codes(DeviceModel model) {
    const unsigned lane = threadIdx.x % kWarp;
    const DeviceInt8Codes& int8_codes = model.int8_codes;
    for (std::uint32_t row = blockIdx.x * kWarps + threadIdx.x / kWarp; row < model.rows;
         row += gridDim.x * kWarps) {
        const float* const values = row_of(model, row);
        std::int8_t* const codes =
            int8_codes.rows + static_cast<std::size_t>(row) * int8_codes.stride;
        const std::uint32_t width =
            int8_codes.stride - static_cast<std::uint32_t>(sizeof(planes::Int8Bounds));
        float longest = 0;
        for (unsigned i = lane; i < model.dim; i += kWarp)
            longest = fmaxf(longest, fabsf(values[i]));
        longest = warp_max(longest);
        // Rows that the bounds do not cover are scored canonically whatever stands here.
        const bool covered = !isnan(model.inverse_norms[row]);
        const float to_code = covered ? 127.0F / longest : 0;
        double product = 0;
        int squares = 0;
        for (unsigned i = lane; i < width; i += kWarp) {
            const float value = i < model.dim ? values[i] : 0;
            const int code = covered ? max(-127, min(127, __float2int_rn(value * to_code))) : 0;
            product += static_cast<double>(value) * code;
            squares += code * code;
            codes[i] = static_cast<std::int8_t>(code);
        }
        for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
            product += __shfl_xor_sync(kWholeWarp, product, distance);
            squares += __shfl_xor_sync(kWholeWarp, squares, distance);
        }
        if (lane == 0) {
            *reinterpret_cast<planes::Int8Bounds*>(codes + width) =
                covered ? planes::int8_bounds(product, squares, model.norms[row])
                        : planes::Int8Bounds{};
        }
    }
}

/// kProducts: instructions along a row. kKeys: writes the largest estimate of each group, with the
/// row in its low bits, to keys; otherwise appends the rows that reach their query's cutoff to
/// survivors. A warp's queries are those of column warp % columns; the warps of a column share a
/// tile's groups.
template <unsigned kProducts, bool kKeys>
__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void plane_multiply(
    DeviceModel model, DeviceQueries queries, Part part, unsigned columns, unsigned tile_groups,
    PlaneWorkspace work) {
    extern __shared__ __align__(16) std::uint8_t tiles[];  // (kTileBuffers, tile_bytes)
    __shared__ std::uint32_t hits[kKeys ? 1 : kWarps * kHitsRoom];
    __shared__ unsigned pending[kWarps];
    __shared__ float cutoff_projection[kBlockQueries];  // kKeys: the centre
    __shared__ float cutoff_residual[kBlockQueries];
    __shared__ float cutoff_constant[kBlockQueries];
    const DevicePlane& plane = model.plane;
    const std::uint32_t group_bytes = tile_group_bytes(plane.steps);
    const std::uint32_t buffer_bytes = tile_bytes(plane.steps, kProducts, tile_groups);
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned column = warp % columns;
    const unsigned first_group = warp / columns;
    const unsigned group_step = kWarps / columns;
    const std::uint32_t block_query = blockIdx.x * kBlockQueries;
    const std::uint32_t width = (model.dim + kDigitStep - 1) / kDigitStep * kDigitStep;

    if (threadIdx.x < kWarps) pending[threadIdx.x] = 0;
    for (unsigned i = threadIdx.x; i < kBlockQueries; i += kThreads) {
        const std::uint32_t q = block_query + i;
        if (kKeys) {
            cutoff_projection[i] =
                q < queries.count ? static_cast<float>(planes::kTopLevel * work.facts[q].sum) : 0;
        } else {
            // What no sum reaches, where there is no query.
            const planes::PlaneCutoff none{0, 0, __int_as_float(0x7F800000)};
            const planes::PlaneCutoff cutoff = q < queries.count ? work.cutoffs[q] : none;
            cutoff_projection[i] = cutoff.of_projection;
            cutoff_residual[i] = cutoff.of_residual;
            cutoff_constant[i] = cutoff.constant;
        }
    }
    uint2 digits[kTiles][kProducts];
#pragma unroll
    for (unsigned t = 0; t < kTiles; ++t) {
        const std::uint32_t q = block_query + column * kWarpQueries + t * kTileQueries + lane / 4;
        const auto* const from =
            reinterpret_cast<const uint2*>(work.digits + static_cast<std::size_t>(q) * width);
#pragma unroll
        for (unsigned m = 0; m < kProducts; ++m) {
            const unsigned step = m * kStepsOfProduct + lane % 4;
            digits[t][m] =
                q < queries.count && step * planes::kStepDims < width ? from[step] : uint2{0, 0};
        }
    }

    const std::uint32_t count = (part.groups + tile_groups - 1) / tile_groups;
    const auto fetch = [&](std::uint32_t tile, unsigned which) {
        if (tile < count) {
            for (unsigned g = 0; g < tile_groups; ++g) {
                const std::uint32_t i = tile * tile_groups + g;
                if (i >= part.groups) break;
                const std::size_t group = (static_cast<std::size_t>(i) << part.shift) + part.offset;
                const std::uint8_t* const from = plane.bytes + group * group_bytes;
                std::uint8_t* const to = tiles + which * buffer_bytes + g * group_bytes;
                for (unsigned at = threadIdx.x * 16; at < group_bytes; at += kThreads * 16) {
                    __pipeline_memcpy_async(to + at, from + at, 16);
                }
            }
        }
        __pipeline_commit();
    };

    // A warp's hits leave it many at a time: their places in the lists are asked for together.
    const auto flush = [&] {
        __syncwarp();
        const unsigned count_here = pending[warp];
        for (unsigned at = lane; at < count_here; at += kWarp) {
            const std::uint32_t hit = hits[warp * kHitsRoom + at];
            const std::uint32_t q = block_query + column * kWarpQueries + hit % kWarpQueries;
            const std::uint32_t row =
                (((hit / kHitsOfGroup) << part.shift) + part.offset) * planes::kGroupRows +
                hit / kWarpQueries % planes::kGroupRows;
            // Rows that the bounds do not cover have zeros in the plane, which some cutoffs let
            // through; they are scored once, for themselves.
            if (row >= model.rows || isnan(model.inverse_norms[row])) continue;
            if (queries.any_rank && !admits(queries.queries[q], model, row)) continue;
            const std::uint32_t place = atomicAdd(&work.counters[q * kPlaneCounters], 1U);
            if (place < kPlanePassSurvivors) {
                work.survivors[static_cast<std::size_t>(q) * kPlanePassSurvivors + place] = row;
            }
        }
        __syncwarp();
        if (lane == 0) pending[warp] = 0;
        __syncwarp();
    };

    unsigned which = 0;
    std::uint32_t tile = blockIdx.y;
    fetch(tile, which);
    for (; tile < count; tile += gridDim.y, which ^= 1) {
        fetch(tile + gridDim.y, which ^ 1);
        __pipeline_wait_prior(1);
        __syncthreads();
        const std::uint32_t here = min(tile_groups, part.groups - tile * tile_groups);
        for (unsigned g = first_group; g < here; g += group_step) {
            const std::uint8_t* const group = tiles + which * buffer_bytes + g * group_bytes;
            int sums[kTiles][4] = {};
            // Half of the threads take their two rows in the other order, so that no two meet in a
            // bank.
            const bool swap = (lane & 2) != 0;
            const auto* const words = reinterpret_cast<const std::uint32_t*>(group) +
                                      lane % 4 * (planes::kStepBytes / 4) + lane / 4;
#pragma unroll
            for (unsigned m = 0; m < kProducts; ++m) {
                const auto* const at = words + m * kStepsOfProduct * (planes::kStepBytes / 4);
                const std::uint32_t one = at[swap ? 8 : 0];
                const std::uint32_t other = at[swap ? 0 : 8];
                const std::uint32_t top = swap ? other : one;
                const std::uint32_t bottom = swap ? one : other;
                const std::uint32_t rows[4] = {top & kCodeMask, bottom & kCodeMask,
                                               top >> 4 & kCodeMask, bottom >> 4 & kCodeMask};
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) multiply_add(sums[t], rows, digits[t][m]);
            }
            const auto* const bounds =
                reinterpret_cast<const std::uint16_t*>(group + plane.steps * planes::kStepBytes);
            const unsigned r = lane / 4;
            const auto projection = [&](unsigned row) { return static_cast<float>(bounds[row]); };
            const auto residual = [&](unsigned row) {
                return static_cast<float>(bounds[planes::kGroupRows + row]);
            };
            const float p[2] = {projection(r), projection(r + 8)};
            const float h[2] = {residual(r), residual(r + 8)};
            const std::uint32_t i = tile * tile_groups + g;
            const std::uint32_t first_row = ((i << part.shift) + part.offset) * planes::kGroupRows;

            if constexpr (kKeys) {
                float weight[2];
                std::uint32_t rank[2];
#pragma unroll
                for (unsigned s = 0; s < 2; ++s) {
                    const std::uint32_t row = first_row + r + 8 * s;
                    // NaN for rows that take no part: fmaxf leaves them out.
                    weight[s] = row < model.rows ? p[s] / (p[s] * p[s] + h[s] * h[s])
                                                 : __int_as_float(0x7FC00000);
                    rank[s] = queries.any_rank && row < model.rows ? model.ranks[row] : 0;
                }
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
#pragma unroll
                    for (unsigned c = 0; c < 2; ++c) {
                        const unsigned in_block =
                            column * kWarpQueries + t * kTileQueries + lane % 4 * 2 + c;
                        const std::uint32_t q = block_query + in_block;
                        const std::uint32_t below = queries.any_rank && q < queries.count
                                                        ? queries.queries[q].rank_below
                                                        : ~std::uint32_t{0};
                        float best = kNoKey;
#pragma unroll
                        for (unsigned s = 0; s < 2; ++s) {
                            const float estimate = (2.0F * static_cast<float>(sums[t][2 * s + c]) -
                                                    cutoff_projection[in_block]) *
                                                   weight[s];
                            if (rank[s] >= below && below != ~std::uint32_t{0}) continue;
                            if (!(estimate > kNoKeyAtMost)) continue;
                            const auto bits = static_cast<std::uint32_t>(__float_as_int(estimate));
                            best = fmaxf(best, __int_as_float(static_cast<int>((bits & ~kRowBits) |
                                                                               (r + 8 * s))));
                        }
                        for (unsigned distance = 4; distance < kWarp; distance *= 2) {
                            best = fmaxf(best, __shfl_xor_sync(kWholeWarp, best, distance));
                        }
                        if (lane < 4 && q < queries.count) {
                            work.keys[static_cast<std::size_t>(q) * part.groups + i] = best;
                        }
                    }
                }
            } else {
                // Bit 4 t + 2 s + c: the row r + 8 s reaches the cutoff of query 8 t + 2 (lane % 4)
                // + c.
                unsigned reached = 0;
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
                    const unsigned in_block =
                        column * kWarpQueries + t * kTileQueries + lane % 4 * 2;
                    const float2 of_projection =
                        *reinterpret_cast<const float2*>(cutoff_projection + in_block);
                    const float2 of_residual =
                        *reinterpret_cast<const float2*>(cutoff_residual + in_block);
                    const float2 constant =
                        *reinterpret_cast<const float2*>(cutoff_constant + in_block);
#pragma unroll
                    for (unsigned s = 0; s < 2; ++s) {
                        const float x = __fmaf_rn(p[s], of_projection.x,
                                                  __fmaf_rn(-h[s], of_residual.x, constant.x));
                        const float y = __fmaf_rn(p[s], of_projection.y,
                                                  __fmaf_rn(-h[s], of_residual.y, constant.y));
                        if (!(static_cast<float>(sums[t][2 * s]) < x))
                            reached |= 1U << (4 * t + 2 * s);
                        if (!(static_cast<float>(sums[t][2 * s + 1]) < y))
                            reached |= 2U << (4 * t + 2 * s);
                    }
                }
                if (reached != 0) {
                    unsigned at = atomicAdd(&pending[warp], static_cast<unsigned>(__popc(reached)));
                    for (; reached != 0; reached &= reached - 1) {
                        const unsigned bit = __ffs(static_cast<int>(reached)) - 1;
                        const unsigned query = bit / 4 * kTileQueries + lane % 4 * 2 + bit % 2;
                        const unsigned in_group = r + bit / 2 % 2 * 8;
                        hits[warp * kHitsRoom + at++] =
                            i * kHitsOfGroup + in_group * kWarpQueries + query;
                    }
                }
                __syncwarp();
                if (pending[warp] > kHitsRoom - kHitsOfGroup) flush();
            }
        }
        __syncthreads();
    }
    if constexpr (!kKeys) flush();
    __pipeline_wait_prior(0);
}

/// One block a query: scores rows canonically, a team each. `row_at(i)` names them, `take(i, row,
/// score)` gets them; eligibility is the caller's.
template <typename RowAt, typename Take>
__device__ void score_rows(const DeviceModel& model, const DeviceQuery& ask, const float* raw,
                           std::uint32_t count, const RowAt& row_at, const Take& take) {
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    const unsigned part = threadIdx.x % kCanonicalLanes;
    for (std::uint32_t base = 0; base < count; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const bool active = i < count;
        const std::uint32_t row = active ? row_at(i) : 0;
        const double norm = active ? model.norms[row] : 0;
        const double dot = row_dot(model, raw, row, part, active);
        if (active && part == 0) take(i, row, score_from_dot(dot, ask.norm, norm));
    }
}

/// One block a query: its first threshold.
__global__ __launch_bounds__(kThreads) void first_floor(DeviceModel model, DeviceQueries queries,
                                                        Part part, PlaneWorkspace work) {
    __shared__ std::uint32_t rows[kMaxCandidates];
    __shared__ double scores[kMaxCandidates];
    __shared__ std::uint32_t count;
    __shared__ double floor;
    const std::uint32_t q = blockIdx.x;
    const DeviceQuery ask = queries.queries[q];
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    const float* const keys = work.keys + static_cast<std::size_t>(q) * part.groups;
    if (threadIdx.x == 0) {
        count = 0;
        floor = static_cast<double>(minus_infinity());
    }
    __syncthreads();
    const std::uint32_t tried =
        min(max(kMinCandidates, kCandidatesPerHit * ask.k_plus_excluded), kMaxCandidates);
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
    score_rows(
        model, ask, raw, candidates, [&](std::uint32_t i) { return rows[i]; },
        [&](std::uint32_t i, std::uint32_t, double score) { scores[i] = score; });
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < candidates; i += kThreads) {
        // A damaged row's score is NaN, which has no place.
        if (isnan(scores[i])) continue;
        std::uint32_t place = 0;
        for (std::uint32_t j = 0; j < candidates; ++j) {
            place += scores[j] > scores[i] || (scores[j] == scores[i] && j < i) ? 1 : 0;
        }
        if (place == ask.k_plus_excluded - 1) floor = scores[i];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    const double from = fmax(floor, ask.min_score);
    work.floors[q] = from;
    work.cutoffs[q] = planes::plane_cutoff(work.facts[q], from, model.dim);
}

/// blockIdx.y: the query, whose blocks share what a part let through: its canonical scores; those
/// that reach the floor are found. After the first part the uncovered rows are scored too.
__global__ __launch_bounds__(kThreads) void rescore(DeviceModel model, DeviceQueries queries,
                                                    bool first, Workspace all) {
    const PlaneWorkspace& work = all.plane;
    const std::uint32_t q = blockIdx.y;
    std::uint32_t* const counters = work.counters + q * kPlaneCounters;
    const std::uint32_t survivors = counters[0];
    if (survivors > kPlanePassSurvivors) return;
    const DeviceQuery ask = queries.queries[q];
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    const double floor = work.floors[q];
    Found* const found = all.found + static_cast<std::size_t>(q) * kPlanePassFound;
    const auto keep = [&](std::uint32_t, std::uint32_t row, double score) {
        if (!(score >= floor) || !admits(ask, model, row) ||
            is_excluded(ask, queries.excluded, row))
            return;
        const std::uint32_t at = atomicAdd(&counters[1], 1U);
        if (at < kPlanePassFound) found[at] = {score, row, 0};
    };
    const auto share = [&](std::uint32_t count, auto row_at, const auto& take) {
        const std::uint32_t size = (count + gridDim.x - 1) / gridDim.x;
        const std::uint32_t begin = min(blockIdx.x * size, count);
        score_rows(
            model, ask, raw, min(size, count - begin),
            [&](std::uint32_t i) { return row_at(begin + i); }, take);
    };
    const std::uint32_t* const rows =
        work.survivors + static_cast<std::size_t>(q) * kPlanePassSurvivors;
    // Few survivors are the work of few blocks.
    const std::uint32_t size = max((survivors + gridDim.x - 1) / gridDim.x, kThreads);
    if (model.int8_codes.rows == nullptr) {
        share(
            survivors, [&](std::uint32_t i) { return rows[i]; }, keep);
    } else if (blockIdx.x * size < survivors) {
        // One byte a component rules out nearly all of them; what is left is scored many together.
        __shared__ std::uint32_t left[kPlanePassSurvivors / kMinRescoreBlocks];
        __shared__ std::uint32_t left_count;
        const std::uint32_t begin = blockIdx.x * size;
        const std::uint32_t end = min(begin + size, survivors);
        const planes::Int8Cutoff cutoff = planes::int8_cutoff(work.int8_facts[q], floor, model.dim);
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
        score_rows(
            model, ask, raw, left_count, [&](std::uint32_t i) { return left[i]; }, keep);
        if (threadIdx.x == 0) atomicAdd(&counters[2], left_count);
    }
    if (first) {
        share(
            model.uncovered_count, [&](std::uint32_t i) { return model.uncovered[i]; }, keep);
    }
}

/// One block a query: the best of what was found stay, and the threshold becomes that of the k-th
/// of them. After the last part the answer is written.
__global__ __launch_bounds__(kThreads) void settle(DeviceModel model, DeviceQueries queries,
                                                   bool first, bool last, Workspace all) {
    __shared__ Found kept[kPlanePassFound];
    __shared__ double next_floor;
    __shared__ std::uint32_t left;
    const PlaneWorkspace& work = all.plane;
    const std::uint32_t q = blockIdx.x;
    std::uint32_t* const counters = work.counters + q * kPlaneCounters;
    const std::uint32_t count = counters[1];
    const bool overflow =
        counters[3] != 0 || counters[0] > kPlanePassSurvivors || count > kPlanePassFound;
    const std::uint32_t here = overflow ? 0 : count;
    const std::uint32_t survivors = counters[4] + counters[0] + (first ? model.uncovered_count : 0);
    const std::uint32_t rescored = counters[2] +
                                   (model.int8_codes.rows == nullptr ? counters[0] : 0) +
                                   (first ? model.uncovered_count : 0);
    const DeviceQuery ask = queries.queries[q];
    Found* const found = all.found + static_cast<std::size_t>(q) * kPlanePassFound;
    Found* const hits = all.hits + static_cast<std::size_t>(q) * kMaxPlanePassHits;
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
        if (place == ask.k - 1) next_floor = mine.score;
        if (last && place < ask.k) hits[place] = mine;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < here && !last; i += kThreads) {
        if (kept[i].score >= next_floor) found[atomicAdd(&left, 1U)] = kept[i];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    counters[0] = 0;
    counters[1] = left;
    counters[2] = rescored;
    counters[3] = overflow ? 1 : 0;
    counters[4] = survivors;
    work.floors[q] = next_floor;
    if (last) {
        all.answers[q] = {next_floor, min(ask.k, here), overflow ? kFoundCapacity + 1 : here,
                          rescored, survivors};
    } else {
        // What has overflowed is answered another way: nothing more need come through.
        work.cutoffs[q] =
            planes::plane_cutoff(work.facts[q], overflow ? 2.0 : next_floor, model.dim);
    }
}

template <unsigned kProducts, bool kKeys>
cudaError_t run_multiply(const DeviceModel& model, const DeviceQueries& queries, const Part& part,
                         const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const auto kernel = plane_multiply<kProducts, kKeys>;
    constexpr std::size_t kStatic = 26 * 1024;  // with what the driver takes of each block
    const auto shared_for = [&](unsigned groups) {
        return std::size_t{kTileBuffers} * tile_bytes(model.plane.steps, kProducts, groups);
    };
    unsigned tile_groups = kMaxTileGroups;
    while (tile_groups > kMinTileGroups &&
           kBlocksPerProcessor * (shared_for(tile_groups) + kStatic) >
               shape.shared_bytes_processor) {
        tile_groups /= 2;
    }
    const std::size_t shared = shared_for(tile_groups);
    const unsigned in_x = (queries.count + kBlockQueries - 1) / kBlockQueries;
    unsigned columns = 1;
    while (columns < kWarps && columns * kWarpQueries < queries.count) columns *= 2;
    const unsigned tiles = (part.groups + tile_groups - 1) / tile_groups;
    const unsigned in_y =
        min(tiles, max(static_cast<unsigned>(shape.processors) * kBlocksPerProcessor / in_x, 1U));
    // Per device, and cheap enough to say each time.
    if (const auto error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(shared));
        error != cudaSuccess) {
        return error;
    }
    kernel<<<dim3(in_x, in_y), kThreads, shared, stream>>>(model, queries, part, columns,
                                                           tile_groups, work.plane);
    return cudaGetLastError();
}

template <bool kKeys>
cudaError_t multiply(const DeviceModel& model, const DeviceQueries& queries, const Part& part,
                     const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    if (part.groups == 0) return cudaSuccess;
    switch (products_for(model.plane.steps)) {
        case 1:
            return run_multiply<1, kKeys>(model, queries, part, work, shape, stream);
        case 2:
            return run_multiply<2, kKeys>(model, queries, part, work, shape, stream);
        case 4:
            return run_multiply<4, kKeys>(model, queries, part, work, shape, stream);
        case 7:
            return run_multiply<7, kKeys>(model, queries, part, work, shape, stream);
        case kMaxProducts:
            return run_multiply<kMaxProducts, kKeys>(model, queries, part, work, shape, stream);
        default:
            return cudaErrorInvalidValue;
    }
}

}  // namespace

cudaError_t load_plane_multiply_kernels() {
    return load_each(prepare, build_int8_codes, first_floor, rescore, settle,
                     plane_multiply<1, true>, plane_multiply<2, true>, plane_multiply<4, true>,
                     plane_multiply<7, true>, plane_multiply<kMaxProducts, true>,
                     plane_multiply<1, false>, plane_multiply<2, false>, plane_multiply<4, false>,
                     plane_multiply<7, false>, plane_multiply<kMaxProducts, false>);
}

std::uint32_t plane_pass_capacity(std::size_t rows, std::uint32_t dim, const DeviceShape& shape) {
    const bool fits =
        dim <= kMaxProducts * kDigitStep && rows <= std::size_t{kMaxGroups} * planes::kGroupRows;
    return shape.integer_products && fits ? kMaxPlanePass : 0;
}

cudaError_t launch_build_int8_codes(const DeviceModel& model, cudaStream_t stream) {
    const unsigned blocks =
        blocks_of_rounds(min((model.rows + kWarps - 1) / kWarps, 1U << 16), kWarps);
    build_int8_codes<<<blocks, kThreads, 0, stream>>>(model);
    return cudaGetLastError();
}

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
    if (const auto error = multiply<true>(model, queries, sample, work, shape, stream);
        error != cudaSuccess)
        return error;
    first_floor<<<queries.count, kThreads, 0, stream>>>(model, queries, sample, work.plane);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;

    // The sample, then what lies halfway between what has been taken, until nothing is left.
    for (std::uint32_t left = shift + 1;; --left) {
        const bool first = left == shift + 1;
        const Part part = first ? sample : part_of(left, std::uint32_t{1} << (left - 1));
        const bool last = left == 1 || kPlaneSample == 1;
        if (const auto error = multiply<false>(model, queries, part, work, shape, stream);
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
