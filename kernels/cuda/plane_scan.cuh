// The scan of plane_pass: sums of all rows with all queries, and lists of those that reach a
// cutoff.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plane_batch.cuh"

namespace gloved::kernels::cuda::plane_batch {

/// sums += codes × digits, for two rows and two columns of each thread. The codes of row `one` are
/// `one_low` for the first components of a step and `one_high` for the others; `two` alike.
__device__ inline void multiply(int (&sums)[4], std::uint32_t one_low, std::uint32_t two_low,
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

/// Stored projections and residuals of a thread's rows.
struct Unit {
    uint2 projections{};
    uint2 residuals{};
};

/// Which of four steps in an instruction, and which four rows of a unit, are a thread's.
__device__ inline unsigned part_of_thread() { return threadIdx.x % kStepsOfProduct; }
__device__ inline unsigned quad_of_thread() { return threadIdx.x % kWarp / kStepsOfProduct; }

/// The first of the thread's rows in a unit.
__device__ inline std::uint32_t first_row(std::uint32_t unit) {
    return unit * kUnitRows + quad_of_thread() * kRowsOfThread;
}

/// What a warp loads next: units one after the other, chunk by chunk. Steps beyond the last are
/// loaded too, bounds and what comes after them: their digits are 0.
template <unsigned kLoads, class UnitAt>
class PlaneCursor {
  public:
    __device__ PlaneCursor(const DevicePlane& plane, std::uint32_t copies, const UnitAt& unit_at)
        : plane_(plane), copies_(copies), unit_at_(unit_at) {
        go_to_next();
    }
    /// The unit whose codes are loaded next, or kNone.
    __device__ std::uint32_t unit() const { return unit_; }
    /// Loads the next chunk, or as much of it as there is.
    __device__ void load(uint4 (&chunk)[kLoads]) {
        if (unit_ == kNone) return;
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            if (copy_ + j < copies_)
                chunk[j] = load_once(from_ + (copy_ + j) * kStepsOfProduct * kQuads);
        }
        copy_ += kLoads;
        if (copy_ >= copies_) go_to_next();
    }

  private:
    __device__ void go_to_next() {
        unit_ = unit_at_(round_++);
        copy_ = 0;
        const std::uint32_t group = min(2 * unit_ + quad_of_thread() / kQuads, plane_.groups - 1);
        from_ = reinterpret_cast<const uint4*>(plane_.bytes) +
                std::size_t{group} * (plane_.steps + 1) * kQuads + part_of_thread() * kQuads +
                quad_of_thread() % kQuads;
    }

    const DevicePlane& plane_;
    std::uint32_t copies_;
    const UnitAt& unit_at_;
    std::uint32_t round_ = 0;
    std::uint32_t unit_ = kNone;
    std::uint32_t copy_ = 0;
    const uint4* from_ = nullptr;  ///< the thread's bytes of the unit's first copy
};

/// Sums of the thread's rows with two columns of a tile.
struct Sums {
    int sums[kRowsOfThread / 2][4];

    __device__ int of(unsigned row, unsigned column) const {
        return sums[row / 2][2 * (row % 2) + column];
    }
};

/// Sums of the thread's rows with a query.
struct QuerySums {
    int of[kRowsOfThread];
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

/// The bounds of the thread's rows, from the copy that has them. The warp calls it.
__device__ inline Unit bounds_of(const DevicePlane& plane, std::uint32_t unit, const uint4& copy) {
    const unsigned quad = quad_of_thread();
    // Of a group, the first and the second eight rows' projections, then their residuals.
    const unsigned from = (quad / kQuads * kQuads + quad % kQuads / 2) * kStepsOfProduct +
                          plane.steps % kStepsOfProduct;
    const auto get = [&](unsigned lane) {
        const std::uint32_t x = __shfl_sync(kWholeWarp, copy.x, lane);
        const std::uint32_t y = __shfl_sync(kWholeWarp, copy.y, lane);
        const std::uint32_t z = __shfl_sync(kWholeWarp, copy.z, lane);
        const std::uint32_t w = __shfl_sync(kWholeWarp, copy.w, lane);
        return quad % 2 == 0 ? uint2{x, y} : uint2{z, w};
    };
    const Unit bounds{get(from), get(from + 2 * kStepsOfProduct)};
    // The last unit may have one group.
    return 2 * unit + quad / kQuads < plane.groups ? bounds : Unit{};
}

/// Goes through the units unit_at(0), unit_at(1) … up to the first kNone. Calls use(number, Unit,
/// QuerySums of each of the thread's queries). The whole warp calls it, unit_at and use.
template <class W, class UnitAt, class Use>
__device__ void go_through(const DevicePlane& plane, const PassShape& shape, const uint2* digits,
                           const UnitAt& unit_at, const Use& use) {
    const uint2* const of_lane = digits + threadIdx.x % kWarp;
    constexpr unsigned kLoads = W::kLoads;
    PlaneCursor<kLoads, UnitAt> cursor(plane, shape.copies, unit_at);
    uint4 even[kLoads] = {};
    uint4 odd[kLoads] = {};
    std::uint32_t number = cursor.unit();
    cursor.load(even);
    bool is_odd = false;
    while (number != kNone) {
        Sums sums[W::kTiles] = {};
        uint4 last;
        std::uint32_t loaded = kNone;
        for (std::uint32_t first = 0; first < shape.copies; first += kLoads) {
            // Multiplies a chunk while the one after it is loaded.
            const auto multiply_chunk = [&](const uint4(&chunk)[kLoads], uint4(&next)[kLoads]) {
                loaded = cursor.unit();
                cursor.load(next);
#pragma unroll
                for (unsigned j = 0; j < kLoads; ++j) {
                    if (first + j >= shape.copies) break;
                    last = chunk[j];
                    const uint2* const by = of_lane + (first + j) * W::kTiles * kWarp;
#pragma unroll
                    for (unsigned t = 0; t < W::kTiles; ++t) {
                        const uint2 of_tile = by[t * kWarp];
                        multiply(sums[t].sums[0], chunk[j].x & kCodeMask, chunk[j].y & kCodeMask,
                                 chunk[j].x >> 4 & kCodeMask, chunk[j].y >> 4 & kCodeMask, of_tile);
                        multiply(sums[t].sums[1], chunk[j].z & kCodeMask, chunk[j].w & kCodeMask,
                                 chunk[j].z >> 4 & kCodeMask, chunk[j].w >> 4 & kCodeMask, of_tile);
                    }
                }
            };
            if (is_odd) {
                multiply_chunk(odd, even);
            } else {
                multiply_chunk(even, odd);
            }
            is_odd = !is_odd;
        }
        QuerySums of_queries[W::kOfThread];
#pragma unroll
        for (unsigned i = 0; i < W::kOfThread; ++i) {
#pragma unroll
            for (unsigned r = 0; r < kRowsOfThread; ++r) {
                of_queries[i].of[r] = W::kBytes == 2 ? 128 * sums[i].of(r, 0) + sums[i].of(r, 1)
                                                     : sums[i / 2].of(r, i % 2);
            }
        }
        use(number, bounds_of(plane, number, last), of_queries);
        number = loaded;
    }
}

/// A sum without its lowest bits, rounded up.
__device__ inline int shortened(int sum, std::uint32_t shift) {
    return (sum + ((1 << shift) - 1)) >> shift;
}

/// The sums of a thread's rows with a query, shortened to kDeferredBits each.
__device__ inline uint2 pack(const QuerySums& sums, std::uint32_t shift) {
    static_assert(kRowsOfThread == 4);
    const auto low = [&](int sum) {
        return static_cast<std::uint32_t>(shortened(sum, shift)) & 0xFFFFU;
    };
    return {low(sums.of[0]) | low(sums.of[1]) << 16U, low(sums.of[2]) | low(sums.of[3]) << 16U};
}

__device__ inline int unpacked(uint2 packed, unsigned r) {
    return static_cast<std::int16_t>(half_word(packed, r));
}

/// sums[which / kRowsOfThread].of[which % kRowsOfThread], from registers.
template <unsigned kCount>
__device__ int sum_at(const QuerySums (&sums)[kCount], unsigned which) {
    int sum = sums[0].of[0];
#pragma unroll
    for (unsigned i = 1; i < kCount * kRowsOfThread; ++i)
        sum = which == i ? sums[i / kRowsOfThread].of[i % kRowsOfThread] : sum;
    return sum;
}

/// Lists the thread's rows whose sums with a query reach the cutoff, behind the `count` rows of the
/// warp's list, which has room for `room`. The warp calls it.
template <class W>
__device__ void list_rows(const Context& context, std::uint32_t room, std::uint32_t& count,
                          const Cutoffs& cutoffs, std::uint32_t first, const Unit& unit,
                          const QuerySums (&sums)[W::kOfThread]) {
    const Bounds bounds(unit);
    static_assert(W::kOfThread * kRowsOfThread <= 32);
    unsigned reaching = 0;  // a bit for each row, query by query
#pragma unroll
    for (unsigned i = 0; i < W::kOfThread; ++i) {
        const unsigned q = W::query(i);
        const float of_projection = cutoffs.of_projection[q];
        const float of_residual = cutoffs.of_residual[q];
        const float constant = cutoffs.constant[q];
#pragma unroll
        for (unsigned r = 0; r < kRowsOfThread; ++r) {
            const float least = fmaf(bounds.projections[r], of_projection,
                                     fmaf(-bounds.residuals[r], of_residual, constant));
            if (!(static_cast<float>(sums[i].of[r]) < least))
                reaching |= 1U << (i * kRowsOfThread + r);
        }
    }
    if (__all_sync(kWholeWarp, reaching == 0)) return;
#pragma unroll
    for (unsigned r = 0; r < kRowsOfThread; ++r) {
        constexpr unsigned kOfEveryQuery = 0x11111111;
        static_assert(kRowsOfThread == 4);
        if (!bounds.there(r) || first + r >= context.model.rows) reaching &= ~(kOfEveryQuery << r);
    }
    for (unsigned left = context.queries.filtered ? reaching : 0; left != 0; left &= left - 1) {
        const unsigned bit = __ffs(static_cast<int>(left)) - 1;
        if (!admits(context.queries[W::query(bit / kRowsOfThread)], context.model,
                    first + bit % kRowsOfThread))
            reaching &= ~(1U << bit);
    }
    // Few threads have any, and hardly one has several: one of each thread at a time.
    Listed* const list = context.list_of(threadIdx.x / kWarp);
    const unsigned before = (1U << threadIdx.x % kWarp) - 1;
    while (const unsigned having = __ballot_sync(kWholeWarp, reaching != 0)) {
        const std::uint32_t at = count + static_cast<std::uint32_t>(__popc(having & before));
        count = min(count + static_cast<std::uint32_t>(__popc(having)), room);
        if (reaching != 0) {
            const unsigned bit = __ffs(static_cast<int>(reaching)) - 1;
            const unsigned r = bit % kRowsOfThread;
            const unsigned q = W::query(bit / kRowsOfThread);
            const int sum = shortened(sum_at(sums, bit), context.shape.listed_shift);
            if (at < room) {
                list[at] = {first + r, (static_cast<std::uint32_t>(sum) & kSumMask) | q << kSumBits,
                            half_word(unit.projections, r) | half_word(unit.residuals, r) << 16U};
            } else {
                atomicOr(&context.shared.overflowed, 1U << q);
            }
            reaching &= reaching - 1;
        }
    }
}

/// Keeps a unit's sums until there is a floor. The warp calls it.
template <class W>
__device__ void defer(const Context& context, std::uint32_t place, std::uint32_t number,
                      const Unit& unit, const QuerySums (&sums)[W::kOfThread]) {
    const unsigned lane = threadIdx.x % kWarp;
    uint4* const kept = context.deferred_at(place);
    auto* const kept_sums = reinterpret_cast<uint2*>(kept + kWarp / kStepsOfProduct);
#pragma unroll
    for (unsigned i = 0; i < W::kOfThread; ++i)
        kept_sums[i * kWarp + lane] = pack(sums[i], context.shape.deferred_shift);
    if (part_of_thread() == 0)
        kept[quad_of_thread()] = {unit.projections.x, unit.projections.y, unit.residuals.x,
                                  unit.residuals.y};
    if (lane == 0) context.shared.deferred_units[threadIdx.x / kWarp][place] = number;
    __syncwarp();
}

/// Raises the warp's best estimates by those of a unit in the sample. The warp calls it.
template <class W>
__device__ void note_best(const Context& context, std::uint32_t first, const Unit& unit,
                          const QuerySums (&sums)[W::kOfThread]) {
    const BlockQueries& queries = context.queries;
    const Bounds bounds(unit);
#pragma unroll
    for (unsigned i = 0; i < W::kOfThread; ++i) {
        const unsigned q = W::query(i);
        Best best = 0;
#pragma unroll
        for (unsigned r = 0; r < kRowsOfThread; ++r) {
            if (!bounds.there(r) || first + r >= context.model.rows || q >= queries.count ||
                (queries.filtered && !admits(queries[q], context.model, first + r)))
                continue;
            const float weight = weight_of(bounds.projections[r], bounds.residuals[r]);
            const float estimate = estimate_of(sums[i].of[r], context.shared.centre[q], weight);
            best = max(best, make_best(estimate, first + r));
        }
        for (unsigned distance = kStepsOfProduct; distance < kWarp; distance *= 2)
            best = max(best, __shfl_xor_sync(kWholeWarp, best, distance));
        Best& of_warp = context.shared.best[threadIdx.x / kWarp][q];
        if (quad_of_thread() == 0) of_warp = max(of_warp, best);
    }
}

/// Lists the rows of the warp's `deferred` units that reach the cutoffs of the first floor. The
/// warp calls it.
template <class W>
__device__ void list_deferred(const Context& context, std::uint32_t deferred,
                              std::uint32_t& listed) {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    while (deferred > 0) {
        const uint4* const kept = context.deferred_at(--deferred);
        const auto* const kept_sums =
            reinterpret_cast<const uint2*>(kept + kWarp / kStepsOfProduct);
        const uint4 bounds = kept[quad_of_thread()];
        QuerySums sums[W::kOfThread];
#pragma unroll
        for (unsigned i = 0; i < W::kOfThread; ++i) {
            const uint2 packed = kept_sums[i * kWarp + lane];
#pragma unroll
            for (unsigned r = 0; r < kRowsOfThread; ++r)
                sums[i].of[r] = unpacked(packed, r) << context.shape.deferred_shift;
        }
        __syncwarp();  // the list may take their place
        list_rows<W>(context, context.room_beside(deferred), listed, context.shared.cutoffs[0],
                     first_row(context.shared.deferred_units[warp][deferred]),
                     {{bounds.x, bounds.y}, {bounds.z, bounds.w}}, sums);
    }
}

/// The units of a warp, in order: its share of the sample, its own among the others, then some of
/// those that are no one's own. Some multiprocessors get more of the memory's bandwidth than
/// others, so the last units are taken one by one, each a round before it is asked for.
class UnitOrder {
  public:
    __device__ explicit UnitOrder(const Context& context)
        : counter_(context.work.counters + kUnitCounter),
          spread_(context.shape.spread),
          warps_(gridDim.x * kScanWarps),
          own_(blockIdx.x * kScanWarps + threadIdx.x / kWarp) {
        const std::uint32_t units = context.model.units;
        const std::uint32_t sample = (units + spread_ - 1) / spread_;
        own_sample_ = sample > own_ ? (sample - own_ - 1) / warps_ + 1 : 0;
        others_ = units - sample;
        fixed_rounds_ = others_ / warps_ * 3 / 4;
        if (fixed_rounds_ == 0) take();
    }
    /// How many of the first rounds are of the sample.
    __device__ std::uint32_t own_sample() const { return own_sample_; }
    /// The unit of a round, or kNone. The warp asks for one round after the other.
    __device__ std::uint32_t unit_at(std::uint32_t round) {
        if (round < own_sample_) return (round * warps_ + own_) * spread_;
        const std::uint32_t later = round - own_sample_;
        std::uint32_t number = later * warps_ + own_;
        if (later >= fixed_rounds_)
            number = fixed_rounds_ * warps_ + __shfl_sync(kWholeWarp, taken_, 0);
        if (later + 1 >= fixed_rounds_) take();
        return number < others_ ? number + number / (spread_ - 1) + 1 : kNone;
    }

  private:
    __device__ void take() {
        if (threadIdx.x % kWarp == 0) taken_ = atomicAdd(counter_, 1U);
    }

    std::uint32_t* counter_;
    std::uint32_t spread_;
    std::uint32_t warps_;
    std::uint32_t own_;
    std::uint32_t own_sample_ = 0;
    std::uint32_t others_ = 0;
    std::uint32_t fixed_rounds_ = 0;
    std::uint32_t taken_ = 0;  ///< the warp's first thread has it
};

/// Scans the warp's units: lists the rows whose sums reach the cutoffs of the last floor that there
/// is, and tells the scouts when there is enough for the next. Until the first floor it keeps sums.
/// The block's other warps call it.
template <class W>
__device__ void scan(const Context& context) {
    const DeviceModel& model = context.model;
    const PassShape& shape = context.shape;
    BlockMemory& shared = context.shared;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    std::uint32_t deferred = 0;
    std::uint32_t listed = 0;
    unsigned told = 0;
    unsigned floors = 0;
    std::uint32_t done = 0;

    const auto tell = [&] {
        if (lane == 0) shared.told_listed[told][warp] = listed;
        shared.told[told].arrive();
        ++told;
    };
    const auto use_first_floor = [&] {
        floors = 1;
        list_deferred<W>(context, deferred, listed);
        deferred = 0;
    };
    const auto next_floor_is_there = [&] {
        return floors < shape.floors && __all_sync(kWholeWarp, shared.found[floors].is_complete());
    };

    UnitOrder order(context);
    const std::uint32_t own_sample = order.own_sample();
    const auto unit_at = [&](std::uint32_t round) { return order.unit_at(round); };
    const std::uint32_t room = context.room_beside(0);
    if (own_sample == 0) tell();
    go_through<W>(
        model.plane, shape, context.digits, unit_at,
        [&](std::uint32_t number, const Unit& unit, const QuerySums(&sums)[W::kOfThread]) {
            const std::uint32_t first = first_row(number);
            if (next_floor_is_there()) {
                if (floors == 0) {
                    use_first_floor();
                } else {
                    ++floors;
                }
            }
            if (floors > 0) {
                list_rows<W>(context, room, listed, shared.cutoffs[floors - 1], first, unit, sums);
            } else {
                if (done < own_sample) note_best<W>(context, first, unit, sums);
                defer<W>(context, deferred++, number, unit, sums);
            }
            ++done;
            if (told == 0 && done == own_sample) tell();
            while (told > 0 && told < shape.floors && done >= shape.floor_after[told]) tell();
            if (floors == 0 && deferred == shape.deferrable) {
                shared.found[0].wait();
                __syncwarp();
                use_first_floor();
            }
        });
    while (told < shape.floors) tell();
    shared.found[shape.floors - 1].wait();
    __syncwarp();
    if (floors == 0) use_first_floor();
    if (lane == 0) shared.listed[warp] = listed;
    __syncwarp();
}

}  // namespace gloved::kernels::cuda::plane_batch
