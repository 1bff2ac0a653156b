// A few queries by the 4-bit plane, in one launch: thresholds from a sample of the rows, the rows
// whose sums reach them, higher thresholds from the best of those, and the canonical scores of what
// is left. docs/certified-search.md has the proof (§5, §6).
//
// Expected limit: memory, 13 % of the float32 bytes, since tensor cores multiply all queries with
// codes that were read once. All blocks are on the device at once: they wait for one another where
// thresholds come from all of them. A warp takes a unit of 32 rows at a time. A thread's load of 16
// bytes is a step of four of them, as the plane lies in memory. It serves as operands as it is: the
// order of rows and components within an instruction is free as long as digits have it too.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/encode_int8.cuh"
#include "kernels/cuda/int8_codes.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/cuda/rank.cuh"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 512;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr std::uint32_t kCodeMask = 0x0F0F0F0FU;
/// Loads of 16 bytes in a step of the plane: four rows each.
constexpr unsigned kQuads = 4;
constexpr unsigned kRowsOfThread = kUnitRows / (kWarp / kQuads);
/// What an instruction multiplies: steps of the plane, and queries.
constexpr unsigned kStepsOfProduct = 4;
constexpr unsigned kQueriesOfTile = 8;
constexpr unsigned kMaxTiles = kMaxPlanePass / kQueriesOfTile;
/// Instructions for each tile of queries whose codes a thread holds at a time.
constexpr unsigned kLoads = 5;
/// Units of a warp in the sample: more where queries ask for more hits.
constexpr std::uint32_t kSampleRounds = 2;
constexpr std::uint32_t kHitsOfSampleRound = 12;
constexpr std::uint32_t kMaxSampleRounds = 8;
/// Rows of a query whose canonical scores make a threshold: more than k and the excluded rows,
/// since estimates may order them otherwise.
constexpr std::uint32_t kMinCandidates = 64;
constexpr std::uint32_t kCandidatesPerHit = 2;
constexpr std::uint32_t kMinOfBlock = 2;
/// A warp holds so many candidates' scores of a query in each thread.
constexpr unsigned kScoresOfThread = 12;
/// Candidates' scores of a query that there is room for in each of the two rounds. A block may
/// write those of the second while another still reads the first: each round has places of its own.
constexpr std::uint32_t kRoundCandidates = kMaxCandidates / 2;
static_assert(kScoresOfThread * kWarp <= kRoundCandidates);
/// Stands for no row.
constexpr std::uint32_t kNone = ~std::uint32_t{0};
/// A listed sum has so many bits, and the query the others.
constexpr unsigned kSumBits = 24;
constexpr std::uint32_t kSumMask = (1U << kSumBits) - 1;
static_assert(planes::kTopLevel * planes::kOneByteDigit * 4096 < 1 << (kSumBits - 1));
static_assert(kMaxPlanePass <= 32);

/// How a launch divides its work and a block's dynamic shared memory.
struct PassShape {
    std::uint32_t blocks = 0;
    std::uint32_t products = 0;       ///< instructions for a row and a tile of queries
    std::uint32_t tiles = 0;          ///< of queries
    std::uint32_t candidates = 0;     ///< of each block, for each query
    std::uint32_t sample_rounds = 0;  ///< units of each warp in the sample
    std::uint32_t room = 0;           ///< rows that a warp has room to list
    std::uint32_t int8_stride = 0;    ///< bytes of a row's int8 codes; 0: there are none
    bool shares_vectors = false;      ///< whether blocks keep queries' vectors in shared memory
    std::size_t shared_bytes = 0;
};

/// Limits of queries that are passed as a parameter, which saves a copy to the device.
constexpr std::uint32_t kInlineFloats = 1200;
constexpr std::uint32_t kInlineExcluded = 64;
/// Most bytes of queries' vectors, as float64, that blocks keep in shared memory.
constexpr std::size_t kSharedVectorBytes = std::size_t{80} << 10;

/// The queries as a parameter; where not `usable`, they are on the device.
struct InlineQueries {
    DeviceQuery queries[kMaxPlanePass];
    std::uint32_t excluded[kInlineExcluded];
    float raw[kInlineFloats];
    std::uint32_t excluded_count = 0;
    bool usable = false;
};

/// A row that reached a query's cutoff.
struct Listed {
    std::uint32_t row;
    std::uint32_t sum_and_query;
    std::uint32_t bounds;  ///< projection, and residual from bit 16 on

    __device__ unsigned query() const { return sum_and_query >> kSumBits; }
    __device__ int sum() const {
        return static_cast<int>(sum_and_query << (32 - kSumBits)) >> (32 - kSumBits);
    }
    __device__ float projection() const { return static_cast<float>(bounds & 0xFFFFU); }
    __device__ float residual() const { return static_cast<float>(bounds >> 16U); }
};

/// The best estimate of a query and its row, so that a comparison of integers orders them; 0 for
/// none.
using Best = unsigned long long;

__device__ Best make_best(float estimate, std::uint32_t row) {
    return static_cast<Best>(ordered(estimate)) << 32U | row;
}

/// What the threads of a block share, besides digits and lists.
struct BlockMemory {
    Best best[kWarps][kMaxPlanePass];  // of what each warp has seen
    planes::DigitFacts facts[kMaxPlanePass];
    // Of the digits for int8 codes.
    planes::DigitFacts int8_facts[kMaxPlanePass];
    Int8Cutoff int8_cutoffs[kMaxPlanePass];
    double floors[kMaxPlanePass];
    // The cutoffs of the floors. Apart, since a thread reads those of two queries at once.
    float of_projection[kMaxPlanePass];
    float of_residual[kMaxPlanePass];
    float constant[kMaxPlanePass];
    float centre[kMaxPlanePass];  // half of L Σ Q
    std::uint32_t candidates[kMaxPlanePass * kWarps];
    std::uint32_t listed[kWarps];
    std::uint32_t rescored[kMaxPlanePass];
    std::uint32_t ruled_out[kMaxPlanePass];
    std::uint32_t overflowed;  // a bit for each query
    std::uint32_t excluded[kInlineExcluded];
};

/// The queries of a launch as a block sees them.
struct BlockQueries {
    const DeviceQuery* queries;     ///< (count) shared memory
    const double* vectors;          ///< (count, stride) shared memory; nullptr: in `raw`
    const float* raw;               ///< (count, stride)
    const std::uint32_t* excluded;  ///< excluded rows of all
    std::uint32_t count;
    std::uint32_t stride;
    bool filtered;  ///< whether any has rows that are not eligible

    __device__ const DeviceQuery& operator[](unsigned q) const { return queries[q]; }
};

/// What an estimate of a row's cosine is multiplied with.
__device__ float weight_of(float projection, float residual) {
    return __fdividef(projection, projection * projection + residual * residual);
}

/// An estimate of a row's cosine, but for a factor that is the same for all rows.
__device__ float estimate_of(int sum, float centre, float weight) {
    return (static_cast<float>(sum) - centre) * weight;
}

/// sums += codes × digits, for two rows and two queries of each thread. The codes of row `one` are
/// `one_low` for the first components of a step and `one_high` for the others; `two` alike.
__device__ void multiply(int (&sums)[4], std::uint32_t one_low, std::uint32_t two_low,
                         std::uint32_t one_high, std::uint32_t two_high, uint2 digits) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(one_low), "r"(two_low), "r"(one_high), "r"(two_high), "r"(digits.x), "r"(digits.y));
#else
    __trap();  // plane_pass_capacity is 0 there
#endif
}

/// The codes of a unit, part by part, and the bounds of a thread's rows.
struct Unit {
    const uint4* codes = nullptr;  ///< of the thread's quad in step 0
    uint2 projections{};
    uint2 residuals{};
};

/// One thread's view of the plane.
struct PlaneReader {
    const uint4* plane;
    std::uint32_t steps;
    std::uint32_t groups;
    unsigned part;  ///< which step of an instruction
    unsigned quad;  ///< which four rows of a unit

    __device__ explicit PlaneReader(const DevicePlane& of)
        : plane(reinterpret_cast<const uint4*>(of.bytes)),
          steps(of.steps),
          groups(of.groups),
          part(threadIdx.x % kStepsOfProduct),
          quad(threadIdx.x % kWarp / kStepsOfProduct) {}

    __device__ Unit unit(std::uint32_t number) const {
        constexpr unsigned kQuadsOfGroup = planes::kGroupRows / kRowsOfThread;
        const std::uint32_t group = 2 * number + quad / kQuadsOfGroup;
        // The last unit may have one group. The other one's rows, which are not there, have codes
        // of the first and no bounds.
        const uint4* const begin =
            plane + std::size_t{min(group, groups - 1)} * (steps + 1) * kQuads;
        const unsigned here = quad % kQuadsOfGroup;
        if (group >= groups) return {begin + here, {0, 0}, {0, 0}};
        const auto* const bounds = reinterpret_cast<const uint2*>(begin + steps * kQuads);
        return {begin + here, __ldg(bounds + here), __ldg(bounds + kQuadsOfGroup + here)};
    }
    /// Loads the codes for kLoads instructions, zeros beyond the last step.
    __device__ void load(uint4 (&codes)[kLoads], const Unit& unit, std::uint32_t first) const {
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            const std::uint32_t step = (first + j) * kStepsOfProduct + part;
            codes[j] = step < steps ? __ldcs(unit.codes + step * kQuads) : uint4{0, 0, 0, 0};
        }
    }
    /// The first of the thread's rows in a unit.
    __device__ std::uint32_t row(std::uint32_t unit) const {
        return unit * kUnitRows + quad * kRowsOfThread;
    }
};

/// The 16-bit number at `index` of four.
__device__ std::uint32_t half_word(uint2 four, unsigned index) {
    return (index < 2 ? four.x : four.y) >> (16 * (index % 2)) & 0xFFFFU;
}

/// Sums of the thread's rows with two queries of a tile.
struct Sums {
    int sums[kRowsOfThread / 2][4];

    __device__ int of(unsigned row, unsigned query) const {
        return sums[row / 2][2 * (row % 2) + query];
    }
};

/// The bounds of the thread's rows.
struct Bounds {
    float projections[kRowsOfThread];
    float residuals[kRowsOfThread];

    __device__ explicit Bounds(const Unit& unit) {
#pragma unroll
        for (unsigned r = 0; r < kRowsOfThread; ++r) {
            projections[r] = static_cast<float>(half_word(unit.projections, r));
            residuals[r] = static_cast<float>(half_word(unit.residuals, r));
        }
    }
    /// Whether there is such a row. Uncovered rows have neither projection nor residual.
    __device__ bool there(unsigned r) const { return projections[r] > 0 || residuals[r] > 0; }
};

/// Goes through the units unit_at(0), unit_at(1) … up to the first kNone. For each tile of queries,
/// calls use(first row of the thread, Unit, Bounds, number of the tile, Sums). The whole warp calls
/// it, unit_at and use.
template <unsigned kTiles, class UnitAt, class Use>
__device__ void go_through(const PlaneReader& reader, const PassShape& shape, const uint2* digits,
                           const UnitAt& unit_at, const Use& use) {
    const unsigned lane = threadIdx.x % kWarp;
    std::uint32_t number = unit_at(0);
    if (number == kNone) return;
    uint4 next[kLoads];
    Unit unit = reader.unit(number);
    reader.load(next, unit, 0);
    for (std::uint32_t round = 1;; ++round) {
        const std::uint32_t next_number = unit_at(round);
        Unit next_unit;
        Sums sums[kTiles] = {};
        for (std::uint32_t first = 0; first < shape.products; first += kLoads) {
            uint4 codes[kLoads];
#pragma unroll
            for (unsigned j = 0; j < kLoads; ++j) codes[j] = next[j];
            if (first + kLoads < shape.products) {
                reader.load(next, unit, first + kLoads);
            } else if (next_number != kNone) {
                next_unit = reader.unit(next_number);
                reader.load(next, next_unit, 0);
            }
#pragma unroll
            for (unsigned j = 0; j < kLoads; ++j) {
                if (first + j >= shape.products) break;
                const uint4 words = codes[j];
                const uint2* const by = digits + (first + j) * shape.tiles * kWarp + lane;
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
                    if (t >= shape.tiles) break;
                    const uint2 of_tile = by[t * kWarp];
                    multiply(sums[t].sums[0], words.x & kCodeMask, words.y & kCodeMask,
                             words.x >> 4 & kCodeMask, words.y >> 4 & kCodeMask, of_tile);
                    multiply(sums[t].sums[1], words.z & kCodeMask, words.w & kCodeMask,
                             words.z >> 4 & kCodeMask, words.w >> 4 & kCodeMask, of_tile);
                }
            }
        }
        const Bounds bounds(unit);
#pragma unroll
        for (unsigned t = 0; t < kTiles; ++t) {
            if (t >= shape.tiles) break;
            use(reader.row(number), unit, bounds, t, sums[t]);
        }
        if (next_number == kNone) return;
        number = next_number;
        unit = next_unit;
    }
}

/// Waits until every block has called it `times` times. What they wrote before is visible then. The
/// whole block calls it.
__device__ void wait_for_all_blocks(std::uint32_t* arrived, std::uint32_t times) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1U);
        while (*static_cast<volatile std::uint32_t*>(arrived) < times * gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
}

/// The k-th largest of `count` candidates' scores, or -infinity if there are fewer. One warp calls
/// it; count is at most kScoresOfThread * kWarp.
__device__ float kth_of_candidates(const float* scores, std::uint32_t count, std::uint32_t k) {
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

/// Loads a component of a row. The memory is asked for its neighbours too, which are loaded next:
/// rows lie here and there.
__device__ float load_of_row(const float* address) {
    float value;
    asm("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];"
        : "=f"(value)
        : "l"(__cvta_generic_to_global(address)));
    return value;
}

/// The canonical dot product of a query with a row, as row_dot. As many loads of the row are under
/// way as registers hold.
__device__ __noinline__ double dot_of(const DeviceModel& model, const BlockQueries& queries,
                                      unsigned q, std::uint32_t row, unsigned part, bool active) {
    if (queries.vectors == nullptr || model.vectors_on_host)
        return row_dot(model, queries.raw + std::size_t{q} * queries.stride, row, part, active);
    constexpr unsigned kAtOnce = 40;
    constexpr unsigned kTogether = 10;
    constexpr std::uint32_t kLanes = kCanonicalLanes;
    const double* const vector = queries.vectors + std::size_t{q} * queries.stride;
    const float* const values = row_of(model, row);
    double sum = 0;
    for (std::uint32_t begin = part; active && begin < model.dim;
         begin += kAtOnce * kCanonicalLanes) {
        float x[kAtOnce];
#pragma unroll
        for (unsigned j = 0; j < kAtOnce; ++j) {
            const std::uint32_t i = begin + j * kCanonicalLanes;
            x[j] = i < model.dim ? load_of_row(values + i) : 0.0F;
        }
        // Products of zeros beyond the end change no sum.
#pragma unroll
        for (unsigned first = 0; first < kAtOnce; first += kTogether) {
            double y[kTogether];
#pragma unroll
            for (unsigned j = 0; j < kTogether; ++j)
                y[j] = vector[min(begin + (first + j) * kLanes, model.dim - 1)];
#pragma unroll
            for (unsigned j = 0; j < kTogether; ++j)
                sum = __fma_rn(static_cast<double>(x[first + j]), y[j], sum);
        }
    }
    return sum_of_team(sum);
}

/// Asks for the rows of a warp's best estimates, which are probably scored soon. The warp calls it.
__device__ void prefetch_best(const DeviceModel& model, const Best* best, std::uint32_t queries) {
    constexpr std::uint32_t kLine = 128 / sizeof(float);
    if (model.vectors_on_host) return;
    for (std::uint32_t q = 0; q < queries; ++q) {
        if (best[q] == 0) continue;
        const float* const row = row_of(model, static_cast<std::uint32_t>(best[q]));
        for (std::uint32_t i = threadIdx.x % kWarp * kLine; i < model.dim; i += kWarp * kLine)
            prefetch(row + i);
    }
}

/// Raises the floors of all queries by the canonical scores of the rows in shared.best, of which
/// each block scores its best. Each of them is an eligible row of its own. The whole block calls
/// it; `times`: how often it was called, with this one.
__device__ __noinline__ void raise_floors(const DeviceModel& model, const BlockQueries& queries,
                                          const PassShape& shape, std::uint32_t times,
                                          const Workspace& work, BlockMemory& shared) {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    __syncthreads();
    for (unsigned q = warp; q < queries.count; q += kWarps) {
        Best mine = lane < kWarps ? shared.best[lane][q] : 0;
        for (std::uint32_t i = 0; i < shape.candidates; ++i) {
            Best most = mine;
            for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
                most = max(most, __shfl_xor_sync(kWholeWarp, most, distance));
            if (lane == 0) {
                shared.candidates[q * shape.candidates + i] =
                    most > 0 ? static_cast<std::uint32_t>(most) : kNone;
            }
            if (mine == most) mine = 0;
        }
    }
    __syncthreads();
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    const std::uint32_t count = queries.count * shape.candidates;
    float* const scores = work.candidate_scores + (times - 1) * kRoundCandidates;
    for (std::uint32_t base = 0; base < count; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const std::uint32_t row = i < count ? shared.candidates[i] : kNone;
        const std::uint32_t q = min(i, count - 1) / shape.candidates;
        const bool active = row != kNone;
        const double norm = active ? model.norms[row] : 0;
        const double dot =
            dot_of(model, queries, q, active ? row : 0, threadIdx.x % kCanonicalLanes, active);
        if (i >= count || threadIdx.x % kCanonicalLanes > 0) continue;
        const double score = active ? score_from_dot(dot, queries[q].norm, norm) : -HUGE_VAL;
        scores[q * kMaxCandidates + blockIdx.x * shape.candidates + i % shape.candidates] =
            isnan(score) ? minus_infinity() : __double2float_rd(score);
    }
    wait_for_all_blocks(&work.counters[kArrivedCounter], times);
    for (unsigned q = warp; q < queries.count; q += kWarps) {
        const DeviceQuery& query = queries[q];
        const float reached = kth_of_candidates(
            scores + q * kMaxCandidates, gridDim.x * shape.candidates, query.k_plus_excluded);
        if (lane > 0) continue;
        const double before = times == 1 ? query.min_score : shared.floors[q];
        const double floor = fmax(static_cast<double>(reached), before);
        const planes::PlaneCutoff cutoff = planes::plane_cutoff(shared.facts[q], floor, model.dim);
        shared.floors[q] = floor;
        shared.of_projection[q] = cutoff.of_projection;
        shared.of_residual[q] = cutoff.of_residual;
        shared.constant[q] = cutoff.constant;
        if (times > 1 && shape.int8_stride > 0)
            shared.int8_cutoffs[q] = int8_cutoff(shared.int8_facts[q], floor, model.dim);
    }
    __syncthreads();
}

/// Leaves those of a warp's `count` listed rows for which stays(row) is true, and sets `count`. The
/// warp calls it.
template <class Stays>
__device__ void keep(Listed* list, std::uint32_t& count, const Stays& stays) {
    const unsigned lane = threadIdx.x % kWarp;
    std::uint32_t left = 0;
    for (std::uint32_t begin = 0; begin < count; begin += kWarp) {
        Listed one{};
        if (begin + lane < count) one = list[begin + lane];
        const bool stay = begin + lane < count && stays(one);
        const unsigned all = __ballot_sync(kWholeWarp, stay);
        __syncwarp();  // all have read theirs
        if (stay) list[left + static_cast<unsigned>(__popc(all & ((1U << lane) - 1)))] = one;
        left += static_cast<unsigned>(__popc(all));
        __syncwarp();
    }
    count = left;
}

/// The number of rows in the lists of all warps, and the i-th of them.
__device__ std::uint32_t listed_in_block(const BlockMemory& shared) {
    std::uint32_t total = 0;
#pragma unroll
    for (const std::uint32_t count : shared.listed) total += count;
    return total;
}
__device__ Listed* listed_at(Listed* lists, const PassShape& shape, const BlockMemory& shared,
                             std::uint32_t i) {
    std::uint32_t warp = 0;
    while (i >= shared.listed[warp]) i -= shared.listed[warp++];
    return lists + warp * shape.room + i;
}

/// Where the int8 codes of a row are: pieces of 16 bytes, so many pieces apart, and their bounds.
/// nullptr: it has none.
struct RowCodes {
    const uint4* first = nullptr;
    std::uint32_t step = 1;
    const Int8Bounds* bounds = nullptr;

    __device__ RowCodes(const DeviceModel& model, std::uint32_t row) {
        const DeviceCodeTiles& tiles = model.code_tiles;
        if (tiles.codes != nullptr) {
            const std::uint32_t place = tiles.places_of[row];
            const std::int8_t* const tile =
                tiles.codes + std::size_t{place / kCodeTileRows} * kCodeTileRows * tiles.width;
            // Only in a damaged plane is an uncovered row listed, which has no codes.
            if (place == kNoPlace) return;
            first = reinterpret_cast<const uint4*>(tile) + place % kCodeTileRows;
            step = kCodeTileRows;
            bounds = tiles.bounds + place;
        } else {
            const std::int8_t* const codes =
                model.int8_codes.rows + std::size_t{row} * model.int8_codes.stride;
            first = reinterpret_cast<const uint4*>(codes);
            bounds = reinterpret_cast<const Int8Bounds*>(codes + model.int8_codes.stride) - 1;
        }
    }
};

/// Marks the listed rows that int8 codes rule out by kNone. The whole block calls it.
__device__ __noinline__ void cut(const DeviceModel& model, const PassShape& shape,
                                 const std::int8_t* int8_digits, Listed* lists,
                                 BlockMemory& shared) {
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    // Rows of a team whose codes are loaded together.
    constexpr unsigned kRows = 4;
    const unsigned part = threadIdx.x % kCanonicalLanes;
    const std::uint32_t pieces = shape.int8_stride / kInt8Step;
    const std::uint32_t total = listed_in_block(shared);
    for (std::uint32_t base = threadIdx.x / kCanonicalLanes;
         base - threadIdx.x / kCanonicalLanes < total; base += kRows * kTeams) {
        Listed* of_row[kRows];
        const uint4* codes[kRows];
        std::uint32_t step = 1;
        Int8Bounds bounds[kRows];
        // A row that is not there reads nothing: another team may mark the one in its place.
        bool there[kRows];
        unsigned query[kRows];
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            there[r] = base + r * kTeams < total;
            of_row[r] = there[r] ? listed_at(lists, shape, shared, base + r * kTeams) : lists;
            query[r] = there[r] ? of_row[r]->query() : 0;
            if (!there[r]) continue;
            const RowCodes of(model, of_row[r]->row);
            there[r] = of.first != nullptr;
            if (!there[r]) continue;
            codes[r] = of.first;
            step = of.step;
            bounds[r] = *of.bounds;
        }
        int high[kRows] = {};
        int low[kRows] = {};
        for (std::uint32_t first = part; first - part < pieces;
             first += kInt8Loads * kCanonicalLanes) {
            uint4 loaded[kRows][kInt8Loads];
#pragma unroll
            for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
                for (unsigned j = 0; j < kInt8Loads; ++j) {
                    const std::uint32_t v = first + j * kCanonicalLanes;
                    loaded[r][j] = there[r] && v < pieces ? codes[r][v * step] : uint4{0, 0, 0, 0};
                }
            }
#pragma unroll
            for (unsigned r = 0; r < kRows; ++r) {
                const auto* const digits = reinterpret_cast<const uint4*>(
                    int8_digits + std::size_t{query[r]} * 2 * shape.int8_stride);
#pragma unroll
                for (unsigned j = 0; j < kInt8Loads; ++j) {
                    const std::uint32_t v = first + j * kCanonicalLanes;
                    if (v >= pieces) continue;
                    high[r] = dot16(loaded[r][j], digits[v], high[r]);
                    low[r] = dot16(loaded[r][j], digits[pieces + v], low[r]);
                }
            }
        }
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            int sum = 128 * high[r] + low[r];
            for (unsigned distance = kCanonicalLanes / 2; distance > 0; distance /= 2)
                sum += __shfl_xor_sync(kWholeWarp, sum, distance);
            if (part > 0 || !there[r] ||
                !int8_rejects(sum, bounds[r], shared.int8_cutoffs[query[r]]))
                continue;
            of_row[r]->row = kNone;
            atomicAdd(&shared.ruled_out[query[r]], 1U);
        }
    }
}

/// Orders the found rows of a query and writes its answer. One warp calls it.
__device__ __noinline__ void rank_by_warp(const DeviceQuery& query, double floor,
                                          std::uint32_t* counters, const Found* found, Found* hits,
                                          DeviceAnswer& answer) {
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t count = __ldcg(counters + kFoundCounter);
    const std::uint32_t rescored = __ldcg(counters + kRescoredCounter);
    const std::uint32_t ruled_out = __ldcg(counters + kRuledOutCounter);
    const bool overflow = count > kBatchFound;
    __syncwarp();
    if (lane == 0) {
        answer = {floor, overflow ? 0 : min(query.k, count), overflow ? kFoundCapacity + 1 : count,
                  rescored, rescored + ruled_out};
    }
    if (lane < kCounters) counters[lane] = 0;
    if (overflow) return;
    for (std::uint32_t begin = 0; begin < count; begin += kWarp) {
        const std::uint32_t i = begin + lane;
        Found mine;
        if (i < count) mine = {__ldcg(&found[i].score), __ldcg(&found[i].row), 0};
        std::uint32_t place = 0;
        for (std::uint32_t tile = 0; tile < count; tile += kWarp) {
            Found other;
            if (tile + lane < count)
                other = {__ldcg(&found[tile + lane].score), __ldcg(&found[tile + lane].row), 0};
            for (unsigned j = 0; j < kWarp && tile + j < count; ++j) {
                const Found one = {__shfl_sync(kWholeWarp, other.score, static_cast<int>(j)),
                                   __shfl_sync(kWholeWarp, other.row, static_cast<int>(j)), 0};
                place += comes_before(one, mine) ? 1 : 0;
            }
        }
        if (i < count && place < query.k) hits[place] = mine;
    }
}

template <unsigned kTiles>
__global__ void __launch_bounds__(kThreads, 1)
    plane_pass(const __grid_constant__ DeviceModel model,
               const __grid_constant__ DeviceQueries on_device,
               const __grid_constant__ InlineQueries inlined,
               const __grid_constant__ PassShape shape, const __grid_constant__ Workspace work) {
    extern __shared__ uint4 dynamic[];
    // As bytes: the types have constructors.
    __shared__ __align__(16) std::byte memory[sizeof(BlockMemory)];
    auto& shared = *reinterpret_cast<BlockMemory*>(memory);
    __shared__ __align__(alignof(DeviceQuery))
        std::byte shared_queries[kMaxPlanePass * sizeof(DeviceQuery)];
    auto* const several = reinterpret_cast<DeviceQuery*>(shared_queries);
    auto* const digits = reinterpret_cast<uint2*>(dynamic);  // (products, tiles, kWarp)
    const std::uint32_t digit_count = shape.products * shape.tiles * kWarp;
    // (queries, 2, int8_stride): the high bytes of digits for int8 codes, then the low ones
    auto* const int8_digits = reinterpret_cast<std::int8_t*>(digits + digit_count);
    auto* const vectors = reinterpret_cast<double*>(int8_digits + std::size_t{on_device.count} * 2 *
                                                                      shape.int8_stride);
    const std::uint32_t vector_count = shape.shares_vectors ? on_device.count * model.stride : 0;
    auto* const lists = reinterpret_cast<Listed*>(vectors + vector_count);
    const float* const raw_of_all = inlined.usable ? inlined.raw : on_device.raw;
    const BlockQueries queries{several,
                               shape.shares_vectors ? vectors : nullptr,
                               raw_of_all,
                               inlined.usable ? shared.excluded : on_device.excluded,
                               on_device.count,
                               model.stride,
                               on_device.any_filter || !on_device.all_rows};
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    Listed* const list = lists + warp * shape.room;
    const std::uint32_t warps = gridDim.x * kWarps;
    const std::uint32_t own = blockIdx.x * kWarps + warp;
    const std::uint32_t units = model.groups;

    for (std::uint32_t i = threadIdx.x; i < digit_count; i += kThreads) digits[i] = {0, 0};
    if (threadIdx.x < kMaxPlanePass) {
        // Nothing reaches the cutoff of a query that there is not.
        shared.of_projection[threadIdx.x] = shared.of_residual[threadIdx.x] = 0;
        shared.constant[threadIdx.x] = HUGE_VALF;
        shared.centre[threadIdx.x] = 0;
        shared.rescored[threadIdx.x] = shared.ruled_out[threadIdx.x] = 0;
    }
    if (threadIdx.x == 0) shared.overflowed = 0;
    if (threadIdx.x < queries.count)
        several[threadIdx.x] =
            inlined.usable ? inlined.queries[threadIdx.x] : on_device.queries[threadIdx.x];
#pragma unroll 8
    for (std::uint32_t i = threadIdx.x; i < vector_count; i += kThreads)
        vectors[i] = static_cast<double>(raw_of_all[i]);
    for (std::uint32_t i = threadIdx.x; inlined.usable && i < inlined.excluded_count; i += kThreads)
        shared.excluded[i] = inlined.excluded[i];
    if (lane < kMaxPlanePass) shared.best[warp][lane] = 0;
    __syncthreads();
    for (unsigned q = warp; q < queries.count; q += kWarps) {
        const float* const raw = raw_of_all + std::size_t{q} * model.stride;
        const double norm = queries[q].norm;
        const float longest = longest_component(raw, model.dim, lane);
        auto* const bytes = reinterpret_cast<std::int8_t*>(digits);
        const planes::DigitFacts facts = query_digits(
            raw, norm, model.dim, longest, planes::kOneByteDigit, lane, model.dim,
            [&](unsigned i, int digit) {
                constexpr unsigned kDims = planes::kStepDims;
                const unsigned product = i / (kStepsOfProduct * kDims);
                const unsigned of_lane =
                    q % kQueriesOfTile * kStepsOfProduct + i / kDims % kStepsOfProduct;
                const unsigned at = (product * shape.tiles + q / kQueriesOfTile) * kWarp + of_lane;
                bytes[at * kDims + i % kDims] = static_cast<std::int8_t>(digit);
            });
        if (lane == 0) {
            shared.facts[q] = facts;
            shared.centre[q] = static_cast<float>(0.5 * planes::kTopLevel * facts.sum);
        }
        if (shape.int8_stride == 0) continue;
        std::int8_t* const high = int8_digits + std::size_t{q} * 2 * shape.int8_stride;
        const planes::DigitFacts int8_facts = query_digits(
            raw, norm, model.dim, longest, planes::kTwoByteDigit, lane, shape.int8_stride,
            [&](unsigned i, int digit) {
                const int upper = (digit + 64) >> 7;
                high[i] = static_cast<std::int8_t>(upper);
                high[shape.int8_stride + i] = static_cast<std::int8_t>(digit - 128 * upper);
            });
        if (lane == 0) shared.int8_facts[q] = int8_facts;
    }
    __syncthreads();

    const PlaneReader reader(model.plane);
    const std::uint32_t sample = min(units, warps * shape.sample_rounds);
    Best best[kTiles][2] = {};
    go_through<kTiles>(
        reader, shape, digits,
        [&](std::uint32_t round) {
            const std::uint32_t i = round * warps + own;
            return i < sample ? static_cast<std::uint32_t>(std::uint64_t{i} * units / sample)
                              : kNone;
        },
        [&](std::uint32_t first, const Unit&, const Bounds& bounds, unsigned tile,
            const Sums& sums) {
            const unsigned q = tile * kQueriesOfTile + 2 * reader.part;
#pragma unroll
            for (unsigned r = 0; r < kRowsOfThread; ++r) {
                if (!bounds.there(r) || first + r >= model.rows) continue;
                const float weight = weight_of(bounds.projections[r], bounds.residuals[r]);
#pragma unroll
                for (unsigned j = 0; j < 2; ++j) {
                    if (q + j >= queries.count ||
                        (queries.filtered && !admits(queries[q + j], model, first + r)))
                        continue;
                    const float estimate = estimate_of(sums.of(r, j), shared.centre[q + j], weight);
                    best[tile][j] = max(best[tile][j], make_best(estimate, first + r));
                }
            }
        });
#pragma unroll
    for (unsigned t = 0; t < kTiles; ++t) {
        if (t >= shape.tiles) break;
#pragma unroll
        for (unsigned j = 0; j < 2; ++j) {
            Best most = best[t][j];
            for (unsigned distance = kStepsOfProduct; distance < kWarp; distance *= 2)
                most = max(most, __shfl_xor_sync(kWholeWarp, most, distance));
            if (reader.quad == 0)
                shared.best[warp][t * kQueriesOfTile + 2 * reader.part + j] = most;
        }
    }
    __syncwarp();
    prefetch_best(model, shared.best[warp], queries.count);
    raise_floors(model, queries, shape, 1, work, shared);

    const std::uint32_t fixed_rounds = units / warps * 3 / 4;
    std::uint32_t listed = 0;
    go_through<kTiles>(
        reader, shape, digits,
        [&](std::uint32_t round) {
            // Some multiprocessors get more of the memory's bandwidth than others.
            std::uint32_t number = round * warps + own;
            if (round >= fixed_rounds) {
                if (lane == 0)
                    number = fixed_rounds * warps + atomicAdd(&work.counters[kUnitCounter], 1U);
                number = __shfl_sync(kWholeWarp, number, 0);
            }
            return number < units ? number : kNone;
        },
        [&](std::uint32_t first, const Unit& unit, const Bounds& bounds, unsigned tile,
            const Sums& sums) {
            const unsigned q = tile * kQueriesOfTile + 2 * reader.part;
            const float2 of_projection = *reinterpret_cast<const float2*>(shared.of_projection + q);
            const float2 of_residual = *reinterpret_cast<const float2*>(shared.of_residual + q);
            const float2 constant = *reinterpret_cast<const float2*>(shared.constant + q);
            unsigned reaching = 0;
#pragma unroll
            for (unsigned r = 0; r < kRowsOfThread; ++r) {
                const float p = bounds.projections[r];
                const float h = -bounds.residuals[r];
                const float least_x = fmaf(p, of_projection.x, fmaf(h, of_residual.x, constant.x));
                const float least_y = fmaf(p, of_projection.y, fmaf(h, of_residual.y, constant.y));
                if (!(static_cast<float>(sums.of(r, 0)) < least_x)) reaching |= 1U << (2 * r);
                if (!(static_cast<float>(sums.of(r, 1)) < least_y)) reaching |= 2U << (2 * r);
            }
            if (__all_sync(kWholeWarp, reaching == 0)) return;
#pragma unroll
            for (unsigned r = 0; r < kRowsOfThread; ++r) {
                if (!bounds.there(r) || first + r >= model.rows) reaching &= ~(3U << (2 * r));
            }
            for (unsigned left = queries.filtered ? reaching : 0; left != 0; left &= left - 1) {
                const unsigned bit = __ffs(static_cast<int>(left)) - 1;
                if (!admits(queries[q + bit % 2], model, first + bit / 2)) reaching &= ~(1U << bit);
            }
            // In the order of bits, then of threads.
            std::uint32_t at[2 * kRowsOfThread];
            std::uint32_t all = listed;
            const unsigned before = (1U << lane) - 1;
#pragma unroll
            for (unsigned bit = 0; bit < 2 * kRowsOfThread; ++bit) {
                const unsigned having = __ballot_sync(kWholeWarp, (reaching >> bit & 1U) != 0);
                at[bit] = all + static_cast<std::uint32_t>(__popc(having & before));
                all += static_cast<std::uint32_t>(__popc(having));
            }
            if (all > shape.room) {
                for (unsigned left = reaching; left != 0; left &= left - 1)
                    atomicOr(&shared.overflowed,
                             1U << (q + (__ffs(static_cast<int>(left)) - 1) % 2));
                return;
            }
            listed = all;
#pragma unroll
            for (unsigned bit = 0; bit < 2 * kRowsOfThread; ++bit) {
                const unsigned r = bit / 2;
                const Listed one = {
                    first + r,
                    (static_cast<std::uint32_t>(sums.of(r, bit % 2)) & kSumMask) | (q + bit % 2)
                                                                                       << kSumBits,
                    half_word(unit.projections, r) | half_word(unit.residuals, r) << 16U};
                if ((reaching >> bit & 1U) != 0) list[at[bit]] = one;
            }
        });
    __syncwarp();

    // The best of each list raise the floors once more.
    if (lane < kMaxPlanePass) shared.best[warp][lane] = 0;
    __syncwarp();
    for (std::uint32_t i = lane; i < listed; i += kWarp) {
        const Listed one = list[i];
        const unsigned q = one.query();
        const Best mine = make_best(
            estimate_of(one.sum(), shared.centre[q], weight_of(one.projection(), one.residual())),
            one.row);
        if (mine > shared.best[warp][q]) atomicMax(&shared.best[warp][q], mine);
    }
    __syncwarp();
    prefetch_best(model, shared.best[warp], queries.count);
    raise_floors(model, queries, shape, 2, work, shared);

    keep(list, listed, [&](const Listed& one) {
        const unsigned q = one.query();
        const float least = fmaf(one.projection(), shared.of_projection[q],
                                 fmaf(-one.residual(), shared.of_residual[q], shared.constant[q]));
        return !(static_cast<float>(one.sum()) < least);
    });
    if (lane == 0) shared.listed[warp] = listed;
    __syncthreads();
    if (shape.int8_stride > 0) {
        cut(model, shape, int8_digits, lists, shared);
        __syncthreads();
        keep(list, listed, [&](const Listed& one) { return one.row != kNone; });
        if (lane == 0) shared.listed[warp] = listed;
        __syncthreads();
    }

    // The block's teams share what is left.
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    const unsigned part = threadIdx.x % kCanonicalLanes;
    const auto take = [&](std::uint32_t q, std::uint32_t row, double norm, double dot) {
        const DeviceQuery& query = queries[q];
        atomicAdd(&shared.rescored[q], 1U);
        const double value = score_from_dot(dot, query.norm, norm);
        if (!(value >= shared.floors[q]) || is_excluded(query, queries.excluded, row)) return;
        const std::uint32_t at = atomicAdd(&work.counters[q * kCounters + kFoundCounter], 1U);
        if (at < kBatchFound) work.found[std::size_t{q} * kBatchFound + at] = {value, row, 0};
    };
    const auto score = [&](std::uint32_t q, std::uint32_t row, bool active) {
        const double norm = active ? model.norms[row] : 0;
        const double dot = dot_of(model, queries, q, row, part, active);
        if (active && part == 0) take(q, row, norm, dot);
    };
    const std::uint32_t total = listed_in_block(shared);
    for (std::uint32_t base = 0; base < total; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        if (!model.vectors_on_host && i + kTeams < total) {
            constexpr std::uint32_t kLine = 128 / sizeof(float);
            const float* const next =
                row_of(model, listed_at(lists, shape, shared, i + kTeams)->row);
            for (std::uint32_t at = part * kLine; at < model.dim; at += kCanonicalLanes * kLine)
                prefetch(next + at);
        }
        const Listed one = i < total ? *listed_at(lists, shape, shared, i) : Listed{};
        score(one.query(), one.row, i < total);
    }
    const std::uint32_t share = (model.uncovered_count + gridDim.x - 1) / gridDim.x;
    const std::uint32_t from = min(blockIdx.x * share, model.uncovered_count);
    const std::uint32_t here = min(share, model.uncovered_count - from);
    for (std::uint32_t base = 0; base < here * queries.count; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const bool there = i < here * queries.count;
        const std::uint32_t q = there ? i / here : 0;
        const std::uint32_t row = there ? model.uncovered[from + i % here] : 0;
        score(q, row, there && admits(queries[q], model, row));
    }
    __syncthreads();
    if (threadIdx.x < queries.count) {
        std::uint32_t* const counters = work.counters + threadIdx.x * kCounters;
        const std::uint32_t rescored = shared.rescored[threadIdx.x];
        const std::uint32_t ruled_out = shared.ruled_out[threadIdx.x];
        if (rescored > 0) atomicAdd(counters + kRescoredCounter, rescored);
        if (ruled_out > 0) atomicAdd(counters + kRuledOutCounter, ruled_out);
        if ((shared.overflowed >> threadIdx.x & 1U) != 0)
            atomicAdd(counters + kFoundCounter, kBatchFound + 1);
    }
    if (!is_last_block(&work.counters[kBlocksDoneCounter])) return;
    for (unsigned q = warp; q < queries.count; q += kWarps) {
        rank_by_warp(queries[q], shared.floors[q], work.counters + q * kCounters,
                     work.found + std::size_t{q} * kBatchFound,
                     work.hits + std::size_t{q} * kMaxBatchHits, work.answers[q]);
    }
}

/// Shared memory of a block beside the dynamic part, rounded up.
constexpr std::size_t kStaticShared = std::size_t{20} << 10;
static_assert(sizeof(BlockMemory) + kMaxPlanePass * sizeof(DeviceQuery) + 512 <= kStaticShared);

/// For fewer listed rows a launch has no room.
constexpr std::size_t kMinListBytes = std::size_t{kWarps} * 64 * sizeof(Listed);

std::uint32_t divided_up(std::size_t value, std::size_t by) {
    return static_cast<std::uint32_t>((value + by - 1) / by);
}

std::uint32_t products_of(std::size_t dim) {
    return divided_up(planes::PlaneShape{0, dim}.steps(), kStepsOfProduct);
}

/// Bytes of dynamic shared memory before the lists.
std::size_t digit_bytes(std::uint32_t products, std::uint32_t queries, std::uint32_t int8_stride) {
    const std::size_t tiles = divided_up(queries, kQueriesOfTile);
    return products * tiles * kWarp * sizeof(uint2) + std::size_t{queries} * 2 * int8_stride;
}

std::uint32_t blocks_of(std::uint32_t units, const DeviceShape& shape) {
    return std::clamp(divided_up(units, kWarps), 1U, static_cast<std::uint32_t>(shape.processors));
}

/// Most candidates of each block for a query.
std::uint32_t max_candidates(std::uint32_t blocks) {
    return std::clamp(kScoresOfThread * kWarp / blocks, 1U, kWarps);
}

/// Number of excluded rows of all queries.
std::uint32_t excluded_rows(const DeviceQueries& queries) {
    const DeviceQuery& last = queries.host.queries[queries.count - 1];
    return last.excluded_begin + last.excluded_count;
}

PassShape shape_of(const DeviceModel& model, const DeviceQueries& queries,
                   const DeviceShape& device) {
    PassShape shape;
    shape.blocks = blocks_of(model.groups, device);
    shape.products = products_of(model.dim);
    shape.tiles = divided_up(queries.count, kQueriesOfTile);
    const std::uint32_t wanted =
        std::max(kMinCandidates, kCandidatesPerHit * queries.max_k_plus_excluded);
    shape.candidates = std::min(std::max(divided_up(wanted, shape.blocks), kMinOfBlock),
                                max_candidates(shape.blocks));
    shape.sample_rounds =
        std::clamp(kSampleRounds * queries.max_k_plus_excluded / kHitsOfSampleRound, kSampleRounds,
                   kMaxSampleRounds);
    // Vectors on the device are read as fast as their codes, whose pieces are far apart.
    if (model.vectors_on_host) {
        shape.int8_stride = model.int8_codes.rows != nullptr && model.code_tiles.codes != nullptr
                                ? model.code_tiles.width
                                : model.int8_codes.stride;
    }
    const std::size_t digits = digit_bytes(shape.products, queries.count, shape.int8_stride);
    const std::size_t vectors = std::size_t{queries.count} * model.stride * sizeof(double);
    shape.shares_vectors = vectors <= kSharedVectorBytes &&
                           kStaticShared + digits + vectors + kMinListBytes <= device.shared_bytes;
    const std::size_t before = digits + (shape.shares_vectors ? vectors : 0);
    shape.room = static_cast<std::uint32_t>((device.shared_bytes - kStaticShared - before) /
                                            (kWarps * sizeof(Listed)));
    shape.shared_bytes = before + std::size_t{shape.room} * kWarps * sizeof(Listed);
    return shape;
}

}  // namespace

cudaError_t load_plane_pass_kernels() {
    return load_and_allow(plane_pass<1>, plane_pass<2>, plane_pass<kMaxTiles>);
}

std::uint32_t plane_pass_capacity(std::size_t dim, std::uint32_t int8_stride,
                                  const DeviceShape& shape) {
    if (!shape.integer_products) return 0;
    std::uint32_t queries = kMaxPlanePass;
    while (queries > 0 &&
           kStaticShared + kMinListBytes + digit_bytes(products_of(dim), queries, int8_stride) >
               shape.shared_bytes)
        queries -= kQueriesOfTile;
    return queries;
}

bool plane_pass_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                       const DeviceShape& shape) {
    const std::uint32_t blocks = blocks_of(model.groups, shape);
    return model.plane.bytes != nullptr &&
           kCandidatesPerHit * k_plus_excluded <= blocks * max_candidates(blocks);
}

bool plane_pass_fits_parameters(const DeviceModel& model, const DeviceQueries& queries) {
    return queries.count * model.stride <= kInlineFloats &&
           excluded_rows(queries) <= kInlineExcluded;
}

cudaError_t launch_plane_pass(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& device,
                              cudaStream_t stream) {
    const PassShape shape = shape_of(model, queries, device);
    InlineQueries inlined;
    if (plane_pass_fits_parameters(model, queries)) {
        std::copy_n(queries.host.queries, queries.count, inlined.queries);
        inlined.excluded_count = excluded_rows(queries);
        std::copy_n(queries.host.excluded, inlined.excluded_count, inlined.excluded);
        std::copy_n(queries.host.raw, queries.count * model.stride, inlined.raw);
        inlined.usable = true;
    }
    const auto kernel = shape.tiles == 1   ? plane_pass<1>
                        : shape.tiles == 2 ? plane_pass<2>
                                           : plane_pass<kMaxTiles>;
    return launch_together(kernel, shape.blocks, kThreads, shape.shared_bytes, stream, model,
                           queries, inlined, shape, work);
}

}  // namespace gloved::kernels::cuda
