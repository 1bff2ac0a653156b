// One query by the 4-bit plane, in one launch: an upper bound for every row, a threshold from the
// canonical scores of the rows with the best estimates, and the canonical scores of the rows whose
// bounds reach it. docs/certified-search-passes.md has the proof (§7).
//
// Expected limit: memory, 13 % of the float32 bytes. All blocks are on the device at once,
// since they wait for one another before the threshold. The bounds stay in their blocks. A warp
// takes a unit of 32 rows at a time. A thread sums four rows of both groups in every eighth step;
// after seven exchanges each thread has the whole sum of one row.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <cuda/barrier>
#include <utility>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_codes.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/order_hits.cuh"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/cuda/row_upper.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = kPlaneWarps * kWarp;
/// Loads of 16 bytes in a step: four rows each.
constexpr unsigned kQuads = 4;
/// Steps that a warp loads with one load a thread.
constexpr unsigned kStepsAtOnce = kWarp / kQuads;
constexpr std::uint32_t kCodeMask = 0x0F0F0F0FU;
constexpr unsigned kAnySteps = 0;
/// Stands for no unit in a warp's list.
constexpr std::uint32_t kNoUnit = ~std::uint32_t{0};
/// Units of each warp from which on the floor comes from the first of them.
constexpr std::uint32_t kMinFixedRounds = 6;
/// Rows whose canonical scores make the threshold: more than k and the excluded rows, since the
/// plane's estimates may order them otherwise.
constexpr std::uint32_t kMinCandidates = 64;
constexpr std::uint32_t kCandidatesPerHit = 2;
constexpr std::uint32_t kMinBlockCandidates = 2;
/// A block's candidates are the best rows of its half warps.
constexpr std::uint32_t kMaxBlockCandidates = 2 * kPlaneWarps;
static_assert(kMaxBlockCandidates <= kWarp);
/// Rows of a block that reach the threshold and are scored together; also the most candidates.
constexpr std::uint32_t kListRoom = kMaxCandidates;
static_assert(kListRoom >= kThreads);
/// Limits of a query that is passed as a parameter.
constexpr unsigned kInlineSteps = 38;
constexpr unsigned kInlineFloats = 300;
constexpr unsigned kInlineExcluded = 16;
/// Steps of digits that a row's int8 codes and bounds are multiplied with; zeros for the bounds.
constexpr unsigned kMaxInt8Steps = int8_stride(kMaxInt8Dim) / planes::kStepDims;

/// The query as a parameter; where not `usable`, it is on the device.
struct InlineQuery {
    DeviceQuery query;
    uint4 digits[kInlineSteps];
    float raw[kInlineFloats];
    std::uint32_t excluded[kInlineExcluded];
    bool usable = false;
};

/// Adds four products of bytes, codes and digits, to `sum`.
__device__ inline int dot4(std::uint32_t codes, std::uint32_t digits, int sum) {
    return __dp4a(static_cast<int>(codes), static_cast<int>(digits), sum);
}

/// Sums of digits and codes of four rows of both groups of a unit.
struct Sums {
    int high[2][4] = {};
    int low[2][4] = {};

    __device__ void add(unsigned group, const uint4& codes, const uint4& digits) {
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (unsigned r = 0; r < 4; ++r) {
            const std::uint32_t first = words[r] & kCodeMask;
            const std::uint32_t second = words[r] >> 4 & kCodeMask;
            high[group][r] = dot4(second, digits.y, dot4(first, digits.x, high[group][r]));
            low[group][r] = dot4(second, digits.w, dot4(first, digits.z, low[group][r]));
        }
    }

    /// The sum of the thread's own row. Eight threads share four rows of both groups: each exchange
    /// halves a thread's rows. The whole warp calls it.
    __device__ int of_own_row(unsigned lane) const {
        int sums[2][4];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
            for (unsigned r = 0; r < 4; ++r) sums[g][r] = high[g][r] * 128 + low[g][r];
        }
        int half[2][2];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
            for (unsigned r = 0; r < 2; ++r) {
                const bool back = (lane & 16) != 0;
                const int give = back ? sums[g][r] : sums[g][r + 2];
                half[g][r] =
                    (back ? sums[g][r + 2] : sums[g][r]) + __shfl_xor_sync(kWholeWarp, give, 16);
            }
        }
        int quarter[2];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
            const bool odd = (lane & 8) != 0;
            const int give = odd ? half[g][0] : half[g][1];
            quarter[g] = (odd ? half[g][1] : half[g][0]) + __shfl_xor_sync(kWholeWarp, give, 8);
        }
        const bool second = (lane & 4) != 0;
        const int give = second ? quarter[0] : quarter[1];
        return (second ? quarter[1] : quarter[0]) + __shfl_xor_sync(kWholeWarp, give, 4);
    }
};

/// What the threads of a block share beside codes, digits and bounds.
struct BlockMemory {
    float raw[kInlineFloats];
    std::uint32_t excluded[kInlineExcluded];
    /// The best estimates of each half warp, and the rows that have them.
    float best[kMaxBlockCandidates];
    std::uint32_t best_rows[kMaxBlockCandidates];
    std::uint32_t candidates[kMaxBlockCandidates];
    double floor;
    std::uint32_t list[kListRoom];  // candidates' scores, then rows that reach the floor
    std::uint32_t list_count;
    uint4 int8_digits[kMaxInt8Steps];
};

static_assert(sizeof(BlockMemory) + sizeof(DeviceQuery) + kThreads * sizeof(Found) + 256 <=
              kPlaneStaticShared);

/// Writes the canonical scores of the block's `count` best rows by estimate to `scores`, rounded
/// down; -infinity where there are fewer rows, or for a damaged one. One warp calls it.
__device__ void score_candidates(const DeviceModel& model, const DeviceQuery& query,
                                 const float* raw, std::uint32_t count, const float* best,
                                 const std::uint32_t* best_rows, std::uint32_t* candidates,
                                 float* scores) {
    constexpr std::uint32_t kNone = ~std::uint32_t{0};
    const unsigned lane = threadIdx.x % kWarp;
    if (lane < kMaxBlockCandidates) {
        const float mine = best[lane];
        std::uint32_t before = 0;
        for (unsigned i = 0; i < kMaxBlockCandidates; ++i)
            before += best[i] > mine || (best[i] == mine && i < lane) ? 1 : 0;
        candidates[before] = mine != minus_infinity() ? best_rows[lane] : kNone;
    }
    __syncwarp();
    const unsigned canonical_lane = lane % kCanonicalLanes;
    for (std::uint32_t base = 0; base < count; base += kWarp / kCanonicalLanes) {
        const std::uint32_t i = base + lane / kCanonicalLanes;
        const std::uint32_t row = i < count ? candidates[i] : kNone;
        const bool active = row != kNone;
        const double norm = active ? model.norms[row] : 0;
        const double dot = row_dot(model, raw, row, canonical_lane, active);
        if (i >= count || canonical_lane > 0) continue;
        const double score = active ? score_from_dot(dot, query.norm, norm) : -HUGE_VAL;
        scores[i] = isnan(score) ? minus_infinity() : __double2float_rd(score);
    }
}

/// Waits until every block has called it. What they wrote before is visible then. One warp of each
/// block calls it.
__device__ void wait_for_all_blocks(std::uint32_t* arrived) {
    __threadfence();
    __syncwarp();
    if (threadIdx.x % kWarp == 0) {
        atomicAdd(arrived, 1U);
        while (*static_cast<volatile std::uint32_t*>(arrived) < gridDim.x) __nanosleep(100);
        __threadfence();
    }
    __syncwarp();
}

/// A score that k_plus_excluded of `count` candidates reach, or the query's min_score if that is
/// more. One warp calls it; `keys` has room for all candidates.
__device__ double floor_of_candidates(const DeviceQuery& query, const float* scores,
                                      std::uint32_t count, std::uint32_t* keys) {
    const unsigned lane = threadIdx.x % kWarp;
    for (std::uint32_t i = lane; i < count; i += kWarp) keys[i] = ordered(__ldcg(scores + i));
    __syncwarp();
    // Bit by bit, as kth_largest_lower_bound.
    std::uint32_t found = 0;
    for (int bit = 31; bit >= kMinBit; --bit) {
        const std::uint32_t tried = found | (std::uint32_t{1} << bit);
        std::uint32_t reaching = 0;
        for (std::uint32_t i = lane; i < count; i += kWarp) reaching += keys[i] >= tried ? 1 : 0;
        if (warp_sum(reaching) >= query.k_plus_excluded) found = tried;
    }
    __syncwarp();
    const float reached =
        found > ordered(minus_infinity()) ? from_ordered(found) : minus_infinity();
    return fmax(static_cast<double>(reached), query.min_score);
}

/// Drops the rows of the list that int8 codes rule out, and returns their number to one thread. The
/// whole block calls it.
__device__ std::uint32_t drop_ruled_out(const DeviceModel& model, const Int8Cutoff& cutoff,
                                        BlockMemory& shared) {
    __shared__ std::uint32_t left;
    const std::uint32_t count = shared.list_count;
    if (count == 0) return 0;  // no barrier would part this read from the write below
    if (threadIdx.x == 0) left = 0;
    constexpr std::uint32_t kTeams = kThreads / kCanonicalLanes;
    for (std::uint32_t base = 0; base < count; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const std::uint32_t row = shared.list[min(i, count - 1)];
        // 16 bytes of a row are two steps of digits.
        const bool out = int8_rules_out(
            model.int8_codes, row, threadIdx.x % kCanonicalLanes, cutoff, [&](std::uint32_t v) {
                if (v >= model.int8_codes.stride / kInt8Step) return Int8Digits{};
                const uint4 one = shared.int8_digits[2 * v];
                const uint4 two = shared.int8_digits[2 * v + 1];
                return Int8Digits{{one.x, one.y, two.x, two.y}, {one.z, one.w, two.z, two.w}};
            });
        __syncthreads();  // all threads have read their row
        if (threadIdx.x % kCanonicalLanes == 0 && i < count && !out)
            shared.list[atomicAdd(&left, 1U)] = row;
        __syncthreads();
    }
    if (threadIdx.x == 0) shared.list_count = left;
    __syncthreads();
    return threadIdx.x == 0 ? count - left : 0;
}

/// What the threads of a block work with.
struct Context {
    const DeviceModel& model;
    const DeviceQuery& query;
    const float* raw;
    const std::uint32_t* excluded;
    const PlaneGrid& grid;
    const Workspace& work;
    BlockMemory& shared;
    /// (max_rounds, kPlaneWarps): the units of each warp, in the order in which it handles them
    std::uint32_t* units;
    float* bounds;  ///< (max_rounds, kPlaneWarps, kUnitRows)
};

/// The greatest estimate that a thread has seen, and its row.
struct Best {
    float estimate = minus_infinity();
    std::uint32_t row = 0;

    __device__ void take(float other, std::uint32_t other_row) {
        if (!(other > estimate)) return;
        estimate = other;
        row = other_row;
    }
};

using Barrier = ::cuda::barrier<::cuda::thread_scope_block>;

/// Hands the best rows so far to the scout, which is the block's first warp: from them and those
/// of the other blocks it finds the floor, while the other warps go on. The whole block calls it.
__device__ void find_floor(const Context& context, Best best, std::uint32_t block_candidates,
                           Barrier& bests_written) {
    BlockMemory& shared = context.shared;
    const unsigned lane = threadIdx.x % kWarp;
    constexpr unsigned kHalfWarp = kWarp / 2;
    for (unsigned distance = kHalfWarp / 2; distance > 0; distance /= 2) {
        const float other = __shfl_xor_sync(kWholeWarp, best.estimate, distance);
        const std::uint32_t other_row = __shfl_xor_sync(kWholeWarp, best.row, distance);
        if (other > best.estimate || (other == best.estimate && other_row < best.row))
            best = {other, other_row};
    }
    if (lane % kHalfWarp == 0) {
        shared.best[threadIdx.x / kHalfWarp] = best.estimate;
        shared.best_rows[threadIdx.x / kHalfWarp] = best.row;
    }
    auto arrival = bests_written.arrive();
    if (threadIdx.x >= kWarp) return;
    bests_written.wait(std::move(arrival));
    float* const scores = context.work.candidate_scores;
    score_candidates(context.model, context.query, context.raw, block_candidates, shared.best,
                     shared.best_rows, shared.candidates, scores + blockIdx.x * block_candidates);
    wait_for_all_blocks(&context.work.counters[kArrivedCounter]);
    const double floor =
        floor_of_candidates(context.query, scores, gridDim.x * block_candidates, shared.list);
    if (lane == 0) shared.floor = floor;
}

/// Loads of kStepsAtOnce steps that a thread's digits are in registers for; kAnySteps: one, unused.
constexpr unsigned registers_of(unsigned loads) { return loads == kAnySteps ? 1 : loads; }

/// Multiplies the codes of a unit, whose second group is `to_second` vectors behind the first, with
/// the digits, which are in registers, or for kAnySteps in shared memory. The whole warp calls it.
template <unsigned kLoads>
__device__ Sums multiply(const uint4* codes, std::uint32_t to_second, std::uint32_t steps,
                         const uint4 (&digits)[registers_of(kLoads)], const uint4* shared_digits) {
    const unsigned lane = threadIdx.x % kWarp;
    Sums sums;
    if constexpr (kLoads == kAnySteps) {
        for (unsigned step = lane / kQuads; step < steps; step += kStepsAtOnce) {
            const unsigned at = step * kQuads + lane % kQuads;
            sums.add(0, __ldcs(codes + at), shared_digits[step]);
            sums.add(1, __ldcs(codes + to_second + at), shared_digits[step]);
        }
    } else {
        uint4 loaded[2][kLoads];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
            for (unsigned j = 0; j < kLoads; ++j) {
                const unsigned at = lane + j * kWarp;
                loaded[g][j] =
                    at < steps * kQuads ? __ldcs(codes + g * to_second + at) : uint4{0, 0, 0, 0};
            }
        }
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
#pragma unroll
            for (unsigned g = 0; g < 2; ++g) sums.add(g, loaded[g][j], digits[j]);
        }
    }
    return sums;
}

/// Scores the rows whose bounds reach the floor, of the rounds that the warp has handled, and the
/// block's share of the uncovered rows, and adds those that reach it to the found ones. The whole
/// block calls it.
__device__ void score_reaching(const Context& context, std::uint32_t rounds, const uint4* digits) {
    const auto& [model, query, raw, excluded, grid, work, shared, units, bounds] = context;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const double floor = shared.floor;
    const float cutoff = __double2float_rd(floor);
    // Rows in host memory are read only where int8 codes do not rule them out.
    const bool by_int8 = model.vectors_on_host && model.int8_codes.rows != nullptr;
    Int8Cutoff second_cutoff;
    if (by_int8) {
        for (unsigned i = threadIdx.x; i < model.int8_codes.stride / planes::kStepDims;
             i += kThreads)
            shared.int8_digits[i] = i < model.plane.steps ? digits[i] : uint4{0, 0, 0, 0};
        second_cutoff = int8_cutoff(query.digits, floor, model.dim);
    }
    std::uint32_t scored = 0;
    std::uint32_t ruled_out = 0;
    const auto take = [&](std::uint32_t row, double score) {
        ++scored;
        if (!(score >= floor) || is_excluded(query, excluded, row)) return;
        const std::uint32_t at = atomicAdd(&work.counters[kFoundCounter], 1U);
        if (at < kFoundCapacity) work.found[at] = {score, row, 0};
    };
    // Lists the rows of rounds `begin` to `end` - 1 that reach the cutoff, and returns their
    // number, which may be more than there is room for.
    const auto list_rows = [&](std::uint32_t begin, std::uint32_t end) {
        __syncthreads();
        if (threadIdx.x == 0) shared.list_count = 0;
        __syncthreads();
#pragma unroll 4
        for (std::uint32_t i = begin; i < min(end, rounds); ++i) {
            const float upper = bounds[i * kThreads + threadIdx.x];
            if (!(upper >= cutoff) || upper == minus_infinity()) continue;
            const std::uint32_t at = atomicAdd(&shared.list_count, 1U);
            if (at < kListRoom) shared.list[at] = units[i * kPlaneWarps + warp] * kUnitRows + lane;
        }
        __syncthreads();
        return shared.list_count;
    };
    const auto score_list = [&] {
        if (by_int8) ruled_out += drop_ruled_out(model, second_cutoff, shared);
        score_rows<kThreads>(
            model, query, raw, shared.list_count, [&](std::uint32_t i) { return shared.list[i]; },
            [&](std::uint32_t, std::uint32_t row, double score) { take(row, score); });
    };
    if (list_rows(0, grid.max_rounds) <= kListRoom) {
        score_list();
    } else {
        constexpr std::uint32_t kRounds = kListRoom / kThreads;
        for (std::uint32_t begin = 0; begin < grid.max_rounds; begin += kRounds) {
            list_rows(begin, begin + kRounds);
            score_list();
        }
    }
    const std::uint32_t share = (model.uncovered_count + gridDim.x - 1) / gridDim.x;
    const std::uint32_t from = min(blockIdx.x * share, model.uncovered_count);
    score_rows<kThreads>(
        model, query, raw, min(share, model.uncovered_count - from),
        [&](std::uint32_t i) { return model.uncovered[from + i]; },
        [&](std::uint32_t, std::uint32_t row, double score) {
            if (admits(query, model, row)) take(row, score);
        });
    scored = warp_sum(scored);
    if (lane == 0 && scored > 0) atomicAdd(&work.counters[kRescoredCounter], scored);
    if (ruled_out > 0) atomicAdd(&work.counters[kRuledOutCounter], ruled_out);
}

/// Upper bounds of every row, then the rows that reach the threshold. kLoads: loads of kStepsAtOnce
/// steps a row, or kAnySteps to read their number from the model. `block_candidates`: rows of each
/// block whose scores make the threshold.
template <unsigned kLoads>
__global__ __launch_bounds__(kThreads, 1) void plane_query(DeviceModel model, DeviceQueries queries,
                                                           InlineQuery inlined, PlaneGrid grid,
                                                           std::uint32_t block_candidates,
                                                           Workspace work) {
    extern __shared__ uint4 shared_digits[];  // (steps), then units and bounds
    // As bytes: the types have constructors.
    __shared__ __align__(16) std::byte memory[sizeof(BlockMemory)];
    auto& shared = *reinterpret_cast<BlockMemory*>(memory);
    __shared__ __align__(alignof(DeviceQuery)) std::byte shared_query[sizeof(DeviceQuery)];
    __shared__ __align__(alignof(Barrier)) std::byte barrier[sizeof(Barrier)];
    auto& bests_written = *reinterpret_cast<Barrier*>(barrier);
    if (threadIdx.x == 0) init(&bests_written, kThreads);
    const DevicePlane& plane = model.plane;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const std::uint32_t group_vectors = (plane.steps + 1) * kQuads;
    // x, y: the high digits of components 0–3 and 4–7 of a step; z, w: the low ones.
    const uint4* const all_digits =
        inlined.usable ? inlined.digits : reinterpret_cast<const uint4*>(queries.digits);
    auto* const units = reinterpret_cast<std::uint32_t*>(shared_digits + plane.steps);
    float* const bounds = grid.shares_bounds
                              ? reinterpret_cast<float*>(units + grid.max_rounds * kPlaneWarps)
                              : work.uppers + blockIdx.x * grid.block_bounds();

    const std::uint32_t first = inlined.usable ? inlined.query.first : queries.queries[0].first;
    const std::uint32_t last = inlined.usable ? inlined.query.last : queries.queries[0].last;
    const std::uint32_t first_unit = first / kUnitRows;
    const std::uint32_t last_unit = last > first ? (last - 1) / kUnitRows + 1 : first_unit;
    // Lists the unit that this warp handles in a round, or kNoUnit. One thread of the warp calls
    // it.
    const auto take_unit = [&](std::uint32_t round) {
        if (round >= grid.max_rounds) return;
        const std::uint32_t warps = gridDim.x * kPlaneWarps;
        const std::uint32_t unit =
            first_unit +
            (round < grid.fixed_rounds
                 ? round * warps + blockIdx.x * kPlaneWarps + warp
                 : grid.fixed_rounds * warps + atomicAdd(&work.counters[kUnitCounter], 1U));
        units[round * kPlaneWarps + warp] = unit < last_unit ? unit : kNoUnit;
    };
    if (lane == 0) take_unit(0);

    uint4 digits[registers_of(kLoads)];
    if constexpr (kLoads != kAnySteps) {
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            const unsigned step = lane / kQuads + j * kStepsAtOnce;
            digits[j] = uint4{0, 0, 0, 0};
            if (step < plane.steps) digits[j] = all_digits[step];
        }
    } else {
        for (unsigned i = threadIdx.x; i < plane.steps; i += kThreads)
            shared_digits[i] = all_digits[i];
    }
    if (threadIdx.x == 0)
        *reinterpret_cast<DeviceQuery*>(shared_query) =
            inlined.usable ? inlined.query : queries.queries[0];
    if (inlined.usable) {
        for (unsigned i = threadIdx.x; i < model.dim; i += kThreads) shared.raw[i] = inlined.raw[i];
        if (threadIdx.x < inlined.query.excluded_count)
            shared.excluded[threadIdx.x] = inlined.excluded[threadIdx.x];
    }
    __syncthreads();
    const DeviceQuery query = *reinterpret_cast<const DeviceQuery*>(shared_query);
    const Context context{model,
                          query,
                          inlined.usable ? shared.raw : queries.raw,
                          inlined.usable ? shared.excluded : queries.excluded,
                          grid,
                          work,
                          shared,
                          units,
                          bounds};

    // Which of a unit's 32 rows is this thread's own.
    const unsigned own = lane % kQuads * 4 + (lane >> 4 & 1) * 2 + (lane >> 3 & 1);
    const bool second = (lane & 4) != 0;
    const unsigned row_in_unit = own + (second ? planes::kGroupRows : 0);
    Best best;
    std::uint32_t round = 0;
    // With few units a warp, those at the end may be the best.
    const std::uint32_t scout_round =
        grid.fixed_rounds < kMinFixedRounds ? grid.max_rounds : grid.fixed_rounds;
    bool scouted = false;
    while (true) {
        __syncwarp();
        const std::uint32_t unit =
            round < grid.max_rounds ? units[round * kPlaneWarps + warp] : kNoUnit;
        if (!scouted && (round == scout_round || unit == kNoUnit)) {
            find_floor(context, best, block_candidates, bests_written);
            scouted = true;
        }
        if (unit == kNoUnit) break;
        if (lane == 0) take_unit(round + 1);
        const auto* const codes =
            reinterpret_cast<const uint4*>(plane.bytes) + std::size_t{unit} * 2 * group_vectors;
        const bool has_second = unit * 2 + 1 < plane.groups;
        const std::uint32_t to_second = has_second ? group_vectors : 0;
        // The bounds of this thread's own row, loaded together with its codes.
        const auto* const row_bounds = reinterpret_cast<const std::uint16_t*>(
            codes + (second ? to_second : 0) + plane.steps * kQuads);
        const std::uint16_t projection = row_bounds[own];
        const std::uint16_t residual = row_bounds[planes::kGroupRows + own];
        const int sum =
            multiply<kLoads>(codes, to_second, plane.steps, digits, shared_digits).of_own_row(lane);
        const std::uint32_t row = unit * kUnitRows + row_in_unit;
        float upper = minus_infinity();
        // Uncovered rows have neither projection nor residual.
        if (row < model.rows && (projection | residual) != 0 && (!second || has_second) &&
            admits(query, model, row)) {
            float estimate = 0;
            upper = row_upper(sum, projection, residual, query.upper, estimate);
            best.take(estimate, row);
        }
        bounds[(round * kPlaneWarps + warp) * kUnitRows + row_in_unit] = upper;
        ++round;
    }
    __syncthreads();

    score_reaching(context, round, all_digits);
    if (!is_last_block(&work.counters[kBlocksDoneCounter])) return;
    order_hits<kThreads>(query, shared.floor, work);
}

/// Rows of each block whose scores make the threshold.
std::uint32_t block_candidates_of(std::uint32_t k_plus_excluded, const PlaneGrid& grid) {
    const std::uint32_t wanted = max(kMinCandidates, kCandidatesPerHit * k_plus_excluded);
    const std::uint32_t of_block =
        max((wanted + grid.blocks - 1) / grid.blocks, kMinBlockCandidates);
    return min(of_block, min(kMaxBlockCandidates, kListRoom / grid.blocks));
}

PlaneGrid grid_of(const DeviceModel& model, const DeviceQueries& queries,
                  const DeviceShape& shape) {
    const DeviceQuery& query = queries.host.queries[0];
    const std::uint32_t units =
        query.last > query.first ? (query.last - 1) / kUnitRows + 1 - query.first / kUnitRows : 0;
    return {units, model.plane.steps, shape};
}

template <unsigned kLoads>
cudaError_t run(const DeviceModel& model, const DeviceQueries& queries, const InlineQuery& inlined,
                const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const PlaneGrid grid = grid_of(model, queries, shape);
    return launch_together(plane_query<kLoads>, grid.blocks, kThreads,
                           grid.dynamic_bytes(model.plane.steps), stream, model, queries, inlined,
                           grid, block_candidates_of(queries.max_k_plus_excluded, grid), work);
}

}  // namespace

cudaError_t load_plane_query_kernels() {
    return load_and_allow(plane_query<1>, plane_query<2>, plane_query<3>, plane_query<4>,
                          plane_query<5>, plane_query<kAnySteps>);
}

bool plane_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                  const DeviceShape& shape) {
    if (model.plane.bytes == nullptr) return false;
    const PlaneGrid grid(model.units, model.plane.steps, shape);
    return k_plus_excluded * kCandidatesPerHit <=
           grid.blocks * block_candidates_of(k_plus_excluded, grid);
}

bool plane_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries) {
    return model.dim <= kInlineFloats && queries.host.queries[0].excluded_count <= kInlineExcluded;
}

cudaError_t launch_plane_query(const DeviceModel& model, const DeviceQueries& queries,
                               const Workspace& work, const DeviceShape& shape,
                               cudaStream_t stream) {
    InlineQuery inlined;
    if (plane_query_fits_parameters(model, queries)) {
        inlined.query = queries.host.queries[0];
        inlined.query.excluded_begin = 0;
        std::memcpy(inlined.digits, queries.host.digits, model.plane.steps * sizeof(uint4));
        std::copy_n(queries.host.raw, model.dim, inlined.raw);
        std::copy_n(queries.host.excluded, inlined.query.excluded_count, inlined.excluded);
        inlined.usable = true;
    }
    switch ((model.plane.steps + kStepsAtOnce - 1) / kStepsAtOnce) {
        case 1:
            return run<1>(model, queries, inlined, work, shape, stream);
        case 2:
            return run<2>(model, queries, inlined, work, shape, stream);
        case 3:
            return run<3>(model, queries, inlined, work, shape, stream);
        case 4:
            return run<4>(model, queries, inlined, work, shape, stream);
        case 5:
            return run<5>(model, queries, inlined, work, shape, stream);
        default:
            return run<kAnySteps>(model, queries, inlined, work, shape, stream);
    }
}

}  // namespace gloved::kernels::cuda
