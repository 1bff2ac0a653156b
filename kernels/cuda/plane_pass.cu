// A few queries by the 4-bit plane, in one launch: a first floor from a sample of the rows, the
// rows whose sums reach its cutoff, higher floors from the best of those, and the canonical scores
// of what is left. docs/certified-search.md has the proof (§5, §6).
//
// Expected limit: memory, 13 % of the float32 bytes, since tensor cores multiply all queries with
// codes that were read once. All blocks are on the device at once: their scouts wait for one
// another where floors come from all of them. The other warps scan meanwhile (plane_scan.cuh), so
// that a floor costs them no time.
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
#include "kernels/cuda/order_hits.cuh"
#include "kernels/cuda/plane_batch.cuh"
#include "kernels/cuda/plane_floors.cuh"
#include "kernels/cuda/plane_scan.cuh"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace plane_batch {
namespace {

/// Writes the digits of all queries, and facts about them. The whole block calls it.
__device__ void make_digits(const Context& context) {
    BlockMemory& shared = context.shared;
    const PassShape& shape = context.shape;
    const BlockQueries& queries = context.queries;
    const std::uint32_t dim = context.model.dim;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    for (unsigned q = warp; q < queries.count; q += kWarps) {
        const std::size_t begin = std::size_t{q} * queries.stride;
        const auto component = [&](std::uint32_t i) {
            return shape.vector_bytes > 0 ? queries.vectors[begin + i] : queries.raw[begin + i];
        };
        auto* const bytes = reinterpret_cast<std::int8_t*>(context.digits);
        std::int8_t* const int8_high = context.int8_digits + std::size_t{q} * 2 * shape.int8_stride;
        const unsigned of_tile = 8 / shape.digit_bytes;
        const auto put = [&](unsigned column, unsigned i, int digit) {
            constexpr unsigned kDims = planes::kStepDims;
            const unsigned product = i / (kStepsOfProduct * kDims);
            const unsigned tile = product * shape.tiles + q / of_tile;
            const unsigned of_lane = column * kStepsOfProduct + i / kDims % kStepsOfProduct;
            bytes[(tile * kWarp + of_lane) * kDims + i % kDims] = static_cast<std::int8_t>(digit);
        };
        const bool one_byte = shape.digit_bytes == 1;
        const planes::DigitFacts facts =
            query_digits(component, queries[q].norm, dim,
                         one_byte ? planes::kOneByteDigit : planes::kTwoByteDigit, lane, dim,
                         [&](unsigned i, int digit) {
                             if (one_byte) {
                                 put(q % of_tile, i, digit);
                             } else {
                                 const int high = (digit + 64) >> 7;
                                 put(q % of_tile * 2, i, high);
                                 put(q % of_tile * 2 + 1, i, digit - 128 * high);
                             }
                         });
        if (lane == 0) {
            shared.facts[q] = facts;
            shared.centre[q] = static_cast<float>(0.5 * planes::kTopLevel * facts.sum);
        }
        if (shape.int8_stride == 0) continue;
        const planes::DigitFacts int8_facts = query_digits(
            component, queries[q].norm, dim, planes::kTwoByteDigit, lane, shape.int8_stride,
            [&](unsigned i, int digit) {
                const int high = (digit + 64) >> 7;
                int8_high[i] = static_cast<std::int8_t>(high);
                int8_high[shape.int8_stride + i] = static_cast<std::int8_t>(digit - 128 * high);
            });
        if (lane == 0) shared.int8_facts[q] = int8_facts;
    }
}

/// Writes what all threads of the block read, but for digits. The whole block calls it.
__device__ void prepare(const Context& context, const DeviceQueries& on_device,
                        const InlineQueries& inlined) {
    BlockMemory& shared = context.shared;
    const PassShape& shape = context.shape;
    const BlockQueries& queries = context.queries;
    if (shape.vector_bytes > 0) {
#pragma unroll 8
        for (std::uint32_t i = threadIdx.x; i < queries.count * queries.stride; i += kThreads)
            queries.vectors[i] = queries.raw[i];
    }
    if (threadIdx.x < queries.count)
        queries.queries[threadIdx.x] =
            inlined.usable ? inlined.queries[threadIdx.x] : on_device.queries[threadIdx.x];
    for (std::uint32_t i = threadIdx.x; inlined.usable && i < inlined.excluded_count; i += kThreads)
        shared.excluded[i] = inlined.excluded[i];
    for (std::uint32_t i = threadIdx.x; i < shape.copies * shape.tiles * kWarp; i += kThreads)
        context.digits[i] = {0, 0};
    if (threadIdx.x < kMaxPlanePass) {
        // Nothing reaches the cutoff of a query that there is not.
        for (Cutoffs& cutoffs : shared.cutoffs) {
            cutoffs.of_projection[threadIdx.x] = cutoffs.of_residual[threadIdx.x] = 0;
            cutoffs.constant[threadIdx.x] = HUGE_VALF;
        }
        shared.centre[threadIdx.x] = 0;
        shared.rescored[threadIdx.x] = shared.ruled_out[threadIdx.x] = 0;
    }
    if (threadIdx.x < kScanWarps) shared.listed[threadIdx.x] = 0;
    for (unsigned i = threadIdx.x; i < kScanWarps * kMaxPlanePass; i += kThreads)
        shared.best[i / kMaxPlanePass][i % kMaxPlanePass] = 0;
    if (threadIdx.x == 0) {
        shared.overflowed = 0;
        for (Signal& signal : shared.told) signal.init(kScanWarps * kWarp);
        for (Signal& signal : shared.found) signal.init(kScoutThreads);
    }
}

/// Leaves those rows of the warp's list for which stays(row) is true. The warp calls it.
template <class Stays>
__device__ void keep(const Context& context, const Stays& stays) {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    Listed* const list = context.list_of(warp);
    const std::uint32_t count = context.shared.listed[warp];
    __syncwarp();  // all have read it
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
    if (lane == 0) context.shared.listed[warp] = left;
}

/// The number of rows in the lists of all warps.
__device__ std::uint32_t listed_in_block(const BlockMemory& shared) {
    std::uint32_t total = 0;
#pragma unroll
    for (const std::uint32_t count : shared.listed) total += count;
    return total;
}

/// Finds the i-th row of all lists, for a thread that asks in ascending order.
class ListCursor {
  public:
    __device__ explicit ListCursor(const Context& context) : context_(context) {}

    __device__ Listed* at(std::uint32_t i) {
        while (i - before_ >= context_.shared.listed[warp_])
            before_ += context_.shared.listed[warp_++];
        return context_.list_of(warp_) + (i - before_);
    }

  private:
    const Context& context_;
    unsigned warp_ = 0;
    std::uint32_t before_ = 0;  ///< rows in the lists of the warps before
};

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
__device__ __noinline__ void cut(Context context) {
    const PassShape& shape = context.shape;
    ListCursor lists(context);
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    // Rows of a team whose codes are loaded together.
    constexpr unsigned kRows = 4;
    const unsigned canonical_lane = threadIdx.x % kCanonicalLanes;
    const std::uint32_t pieces = shape.int8_stride / kInt8Step;
    const std::uint32_t total = listed_in_block(context.shared);
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
            of_row[r] = there[r] ? lists.at(base + r * kTeams) : context.list_of(0);
            query[r] = there[r] ? of_row[r]->query() : 0;
            if (!there[r]) continue;
            const RowCodes of(context.model, of_row[r]->row);
            there[r] = of.first != nullptr;
            if (!there[r]) continue;
            codes[r] = of.first;
            step = of.step;
            bounds[r] = *of.bounds;
        }
        int high[kRows] = {};
        int low[kRows] = {};
        for (std::uint32_t first = canonical_lane; first - canonical_lane < pieces;
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
                    context.int8_digits + std::size_t{query[r]} * 2 * shape.int8_stride);
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
            if (canonical_lane > 0 || !there[r] ||
                !int8_rejects(sum, bounds[r], context.shared.int8_cutoffs[query[r]]))
                continue;
            of_row[r]->row = kNone;
            atomicAdd(&context.shared.ruled_out[query[r]], 1U);
        }
    }
}

/// Orders the found rows of a query and writes its answer. One warp calls it.
__device__ __noinline__ void order_hits_by_warp(const DeviceQuery& query, double floor,
                                                std::uint32_t* counters, const Found* found,
                                                Found* hits, DeviceAnswer& answer) {
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

template <class W>
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
    auto* const digits = reinterpret_cast<uint2*>(dynamic);
    const std::uint32_t digit_count = shape.copies * shape.tiles * kWarp;
    // (queries, 2, int8_stride): the high bytes of digits for int8 codes, then the low ones
    auto* const int8_digits = reinterpret_cast<std::int8_t*>(digits + digit_count);
    auto* const vectors = reinterpret_cast<float*>(int8_digits + std::size_t{on_device.count} * 2 *
                                                                     shape.int8_stride);
    auto* const lists = reinterpret_cast<std::byte*>(vectors) + shape.vector_bytes;
    const float* const raw_of_all = inlined.usable ? inlined.raw : on_device.raw;
    const BlockQueries queries{several,
                               shape.vector_bytes > 0 ? vectors : nullptr,
                               raw_of_all,
                               inlined.usable ? shared.excluded : on_device.excluded,
                               on_device.count,
                               model.stride,
                               on_device.any_filter || !on_device.all_rows};
    const unsigned warp = threadIdx.x / kWarp;
    const Context context{model, queries, shape, work, shared, digits, int8_digits, lists};

    prepare(context, on_device, inlined);
    __syncthreads();
    make_digits(context);
    __syncthreads();
    if (warp < kScanWarps) {
        scan<W>(context);
    } else {
        find_floors(context);
    }
    const Cutoffs& cutoffs = shared.cutoffs[shape.floors - 1];
    if (warp < kScanWarps) {
        keep(context, [&](const Listed& one) {
            const unsigned q = one.query();
            const float least =
                fmaf(one.projection(), cutoffs.of_projection[q],
                     fmaf(-one.residual(), cutoffs.of_residual[q], cutoffs.constant[q]));
            return !(static_cast<float>(one.sum() << shape.listed_shift) < least);
        });
    }
    __syncthreads();
    if (shape.int8_stride > 0) {
        cut(context);
        __syncthreads();
        if (warp < kScanWarps) {
            keep(context, [&](const Listed& one) { return one.row != kNone; });
        }
        __syncthreads();
    }

    // The block's teams share what is left.
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    const unsigned canonical_lane = threadIdx.x % kCanonicalLanes;
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
        const double dot =
            dot_of(model, queries, q, row, canonical_lane, active, context.row_room());
        if (active && canonical_lane == 0) take(q, row, norm, dot);
    };
    const std::uint32_t total = listed_in_block(shared);
    ListCursor left(context);
    for (std::uint32_t base = 0; base < total; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const Listed one = i < total ? *left.at(i) : Listed{};
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
        order_hits_by_warp(queries[q], shared.floors[q], work.counters + q * kCounters,
                           work.found + std::size_t{q} * kBatchFound,
                           work.hits + std::size_t{q} * kMaxBatchHits, work.answers[q]);
    }
}

/// Shared memory of a block beside the dynamic part, rounded up.
constexpr std::size_t kStaticShared = std::size_t{18} << 10;
static_assert(sizeof(BlockMemory) + kMaxPlanePass * sizeof(DeviceQuery) + 512 <= kStaticShared);

/// For fewer listed rows a launch has no room.
constexpr std::uint32_t kMinListBytes = 64 * sizeof(Listed);

/// Least bytes of a warp's list and deferred units.
constexpr std::size_t min_list_bytes(std::uint32_t of_thread) {
    return kMinListBytes + kMinSampleRounds * deferred_bytes(of_thread);
}

std::uint32_t divided_up(std::size_t value, std::size_t by) {
    return static_cast<std::uint32_t>((value + by - 1) / by);
}

/// Loads of a unit: its bounds are in the place of one more step.
std::uint32_t copies_of(std::size_t dim) {
    return static_cast<std::uint32_t>(planes::PlaneShape{0, dim}.steps()) / kStepsOfProduct + 1;
}

/// Bytes of dynamic shared memory before the lists.
std::size_t digit_bytes(std::uint32_t copies, std::uint32_t tiles, std::uint32_t queries,
                        std::uint32_t int8_stride) {
    return kScoutWarps * kRowBytes + std::size_t{copies} * tiles * kWarp * sizeof(uint2) +
           std::size_t{queries} * 2 * int8_stride;
}

/// Calls use(Width()) with the least width for so many queries.
template <class Use>
auto with_width(std::uint32_t queries, const Use& use) {
    if (queries <= UpTo4::kQueries) return use(UpTo4());
    if (queries <= UpTo8::kQueries) return use(UpTo8());
    if (queries <= UpTo16::kQueries) return use(UpTo16());
    return use(UpTo32());
}

std::uint32_t blocks_of(std::uint32_t units, const DeviceShape& shape) {
    return std::clamp(divided_up(units, kScanWarps), 1U,
                      static_cast<std::uint32_t>(shape.processors));
}

/// Most candidates of each block for a query.
std::uint32_t max_candidates(std::uint32_t blocks) {
    return std::clamp(kScoresOfThread * kWarp / blocks, 1U, kScanWarps);
}

/// Number of excluded rows of all queries.
std::uint32_t excluded_rows(const DeviceQueries& queries) {
    const DeviceQuery& last = queries.host.queries[queries.count - 1];
    return last.excluded_begin + last.excluded_count;
}

PassShape shape_of(const DeviceModel& model, const DeviceQueries& queries,
                   const DeviceShape& device) {
    PassShape shape;
    shape.blocks = blocks_of(model.units, device);
    shape.copies = copies_of(model.dim);
    with_width(queries.count, [&](auto width) {
        shape.tiles = width.kTiles;
        shape.digit_bytes = width.kBytes;
        shape.of_thread = width.kOfThread;
    });
    const std::uint32_t wanted =
        std::max(kMinCandidates, kCandidatesPerHit * queries.max_k_plus_excluded);
    shape.candidates = std::min(std::max(divided_up(wanted, shape.blocks), kMinOfBlock),
                                max_candidates(shape.blocks));
    // Vectors on the device are read as fast as their codes, whose pieces are far apart.
    if (model.vectors_on_host) {
        shape.int8_stride = model.int8_codes.rows != nullptr && model.code_tiles.codes != nullptr
                                ? model.code_tiles.width
                                : model.int8_codes.stride;
    }
    const std::size_t digits =
        digit_bytes(shape.copies, shape.tiles, queries.count, shape.int8_stride);
    const std::size_t vectors = (queries.count * model.stride * sizeof(float) + sizeof(uint4) - 1) /
                                sizeof(uint4) * sizeof(uint4);
    const std::size_t lists = kScanWarps * min_list_bytes(shape.of_thread);
    if (vectors <= kSharedVectorBytes &&
        kStaticShared + digits + vectors + lists <= device.shared_bytes)
        shape.vector_bytes = static_cast<std::uint32_t>(vectors);
    const std::size_t before = digits + shape.vector_bytes;
    shape.list_bytes = static_cast<std::uint32_t>((device.shared_bytes - kStaticShared - before) /
                                                  kScanWarps / sizeof(uint4) * sizeof(uint4));
    shape.deferrable = std::min(
        (shape.list_bytes - kMinListBytes) / deferred_bytes(shape.of_thread), kMaxDeferred);
    shape.shared_bytes = before + kScanWarps * std::size_t{shape.list_bytes};
    const int most_digit = shape.digit_bytes == 1 ? planes::kOneByteDigit : planes::kTwoByteDigit;
    const std::uint32_t most_sum =
        static_cast<std::uint32_t>(planes::kTopLevel * most_digit) * model.dim;
    while (most_sum >> shape.deferred_shift >= (1U << (kDeferredBits - 1)) - 1)
        ++shape.deferred_shift;
    // A sum that was deferred may be greater by what rounding added.
    const std::uint32_t most_deferred = most_sum + (1U << shape.deferred_shift);
    while (most_deferred >> shape.listed_shift >= kSumMask >> 1U) ++shape.listed_shift;

    const std::uint32_t warps = shape.blocks * kScanWarps;
    const std::uint32_t sample_rounds =
        std::min(std::clamp(kMinSampleRounds * queries.max_k_plus_excluded / kHitsOfSampleRound,
                            kMinSampleRounds, kMaxSampleRounds),
                 shape.deferrable);
    shape.spread = divided_up(model.units, warps * sample_rounds);
    // Of a model that has few units beside the sample, the first floor is good enough.
    shape.floors = shape.spread < kMinSpread ? 1 : kMaxFloors;
    const std::uint32_t rounds = model.units / warps;
    shape.floor_after[1] = rounds * 5 / 16;
    shape.floor_after[2] = rounds * 3 / 4;
    return shape;
}

}  // namespace
}  // namespace plane_batch

using namespace plane_batch;  // NOLINT(google-build-using-namespace)

cudaError_t load_plane_pass_kernels() {
    return load_and_allow(plane_pass<UpTo4>, plane_pass<UpTo8>, plane_pass<UpTo16>,
                          plane_pass<UpTo32>);
}

std::uint32_t plane_pass_capacity(std::size_t dim, std::uint32_t int8_stride,
                                  const DeviceShape& shape) {
    if (!shape.integer_products) return 0;
    std::uint32_t queries = kMaxPlanePass;
    const auto fits = [&](auto width) {
        return kStaticShared + kScanWarps * min_list_bytes(width.kOfThread) +
                   digit_bytes(copies_of(dim), width.kTiles, queries, int8_stride) <=
               shape.shared_bytes;
    };
    while (queries > 0 && !with_width(queries, fits)) queries -= UpTo4::kQueries;
    return queries;
}

bool plane_pass_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                       const DeviceShape& shape) {
    const std::uint32_t blocks = blocks_of(model.units, shape);
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
    return with_width(queries.count, [&](auto width) {
        return launch_together(plane_pass<decltype(width)>, shape.blocks, kThreads,
                               shape.shared_bytes, stream, model, queries, inlined, shape, work);
    });
}

}  // namespace gloved::kernels::cuda
