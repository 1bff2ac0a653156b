// Multiplies code tiles with the digits of many queries on the tensor cores of compute capability
// 9.0 (wgmma), and compares every sum with its query's cutoff.
//
// The queries are the rows of an instruction's result, and the tile's rows its columns. So a thread
// has all its sums of two queries, keeps their cutoffs in registers, and knows the smallest sum
// that matters for a whole tile after a few instructions. One warp copies tiles to shared memory;
// four warpgroups multiply them. While one compares its sums, the others keep the tensor cores
// busy.
//
// Compiled for sm_90a alone: these instructions are in no other target.
#include <climits>
#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kWarpgroup = 128;
constexpr unsigned kConsumers = CodeGrid::kWarpgroups * kWarpgroup;
constexpr unsigned kThreads = kConsumers + kWarpgroup;  // the last copies tiles
/// Registers of a thread that copies, and of one that multiplies: what the first gives up, the
/// others get.
constexpr unsigned kCopierRegisters = 24;
constexpr unsigned kConsumerRegisters = 112;
constexpr unsigned kMaxStages = 8;
/// Sums of a thread: those of kQueries queries with kRows rows of a tile.
constexpr unsigned kSums = kCodeTileRows * kCodeBlockQueries / kWarpgroup;
constexpr unsigned kQueries = 2;
constexpr unsigned kRows = kSums / kQueries;
static_assert(kKeysOfTile == CodeGrid::kThreadsOfQuery);
static_assert(kKeysOfTile * kRows == kCodeTileRows);

/// What a launch does, beside its model and queries.
struct Job {
    CodePart part;
    CodeGrid grid;
    std::uint32_t stages = 0;  ///< tiles in shared memory
    bool filtered = false;     ///< whether any query's filter excludes rows
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// Describes an operand in shared memory, of `rows` rows in the layout of code_tiles.hpp.
__device__ std::uint64_t describe_operand(const void* operand, unsigned rows) {
    constexpr unsigned kUnit = 16;  // addresses and distances are in units of 16 bytes
    constexpr std::uint64_t kAddressBits = 0x3FFFF;
    const std::uint64_t address = (shared_address(operand) & kAddressBits) / kUnit;
    const std::uint64_t next_components = rows * kCoreWidth / kUnit;
    const std::uint64_t next_rows = kCoreBytes / kUnit;
    return address | next_components << 16 | next_rows << 32;
}

/// Starts sums = A B, or sums += A B if `more`: kCodeBlockQueries queries of kCodeStep digits by
/// kCodeTileRows rows of kCodeStep codes. Both operands are in shared memory.
__device__ void start_products(int (&sums)[kSums], std::uint64_t queries, std::uint64_t rows,
                               bool more) {
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        "setp.ne.b32 more, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
        "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
        "%62, %63"
        "}, %64, %65, more;\n"
        "}\n"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]),
          "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]),
          "+r"(sums[11]), "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]),
          "+r"(sums[16]), "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]),
          "+r"(sums[21]), "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]),
          "+r"(sums[26]), "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]),
          "+r"(sums[31]), "+r"(sums[32]), "+r"(sums[33]), "+r"(sums[34]), "+r"(sums[35]),
          "+r"(sums[36]), "+r"(sums[37]), "+r"(sums[38]), "+r"(sums[39]), "+r"(sums[40]),
          "+r"(sums[41]), "+r"(sums[42]), "+r"(sums[43]), "+r"(sums[44]), "+r"(sums[45]),
          "+r"(sums[46]), "+r"(sums[47]), "+r"(sums[48]), "+r"(sums[49]), "+r"(sums[50]),
          "+r"(sums[51]), "+r"(sums[52]), "+r"(sums[53]), "+r"(sums[54]), "+r"(sums[55]),
          "+r"(sums[56]), "+r"(sums[57]), "+r"(sums[58]), "+r"(sums[59]), "+r"(sums[60]),
          "+r"(sums[61]), "+r"(sums[62]), "+r"(sums[63])
        : "l"(queries), "l"(rows), "r"(more ? 1 : 0));
}

/// Multiplies a block of queries with a tile.
template <unsigned kSteps>
__device__ void multiply_tile(int (&sums)[kSums], const std::int8_t* digits,
                              const std::int8_t* codes) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (unsigned step = 0; step < kSteps; ++step) {
        start_products(
            sums,
            describe_operand(digits + step * kCodeStep * kCodeBlockQueries, kCodeBlockQueries),
            describe_operand(codes + step * kCodeStep * kCodeTileRows, kCodeTileRows), step > 0);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    // The sums are written only now, which the compiler cannot know.
#pragma unroll
    for (int& sum : sums) asm volatile("" : "+r"(sum)::"memory");
}

/// The index in a thread's sums of row `r` of its rows and its query `h`.
__device__ constexpr unsigned sum_at(unsigned h, unsigned r) { return r / 2 * 4 + h * 2 + r % 2; }

/// The place of row `r` of a thread's rows in a tile.
__device__ std::uint32_t place_of(std::uint32_t tile, unsigned r, unsigned lane) {
    return tile * kCodeTileRows + r / 2 * 8 + lane % CodeGrid::kThreadsOfQuery * 2 + r % 2;
}

/// The part's tile number `n`.
__device__ std::uint32_t tile_of(const CodePart& part, std::uint32_t n) {
    if (!part.rest) return n << part.shift;
    return n + n / ((1U << part.shift) - 1) + 1;
}

/// The part of a block that a thread of a warpgroup works on.
struct Share {
    std::uint32_t queries[kQueries];
    unsigned lane;
    unsigned column;  ///< which block of the panel's queries
    unsigned turn;    ///< which of the warpgroups that take these queries

    __device__ explicit Share(const CodeGrid& grid) {
        // From one lane, so that the compiler knows it is the same in the whole warp.
        const unsigned group = __shfl_sync(kWholeWarp, threadIdx.x / kWarpgroup, 0);
        lane = threadIdx.x % kWarp;
        column = group % grid.columns;
        turn = group / grid.columns;
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

/// For every tile, number `n` of the part, that the share takes: calls use.load(tile) while the
/// tile before it is multiplied, use.prepare() when that is done, and then use.take(sums, tile, n).
template <unsigned kSteps, class Use>
__device__ void for_each_tile(const Job& job, const Share& share, const std::int8_t* digits,
                              const std::int8_t* ring, std::uint64_t* full, std::uint64_t* empty,
                              Use& use) {
    constexpr unsigned kTileBytes = kSteps * kCodeStep * kCodeTileRows;
    const unsigned turns = job.grid.turns();
    const std::uint32_t step = turns * gridDim.x;
    unsigned stage = share.turn;
    unsigned parity = 0;
    std::uint32_t n = blockIdx.x + share.turn * gridDim.x;
    if (n < job.part.tiles) use.load(tile_of(job.part, n));
    for (; n < job.part.tiles; n += step) {
        use.prepare();
        if (n + step < job.part.tiles) use.load(tile_of(job.part, n + step));
        wait(&full[stage], parity);
        int sums[kSums];
        multiply_tile<kSteps>(sums, digits, ring + stage * kTileBytes);
        if (share.lane == 0) arrive(&empty[stage]);
        use.take(sums, tile_of(job.part, n), n);
        stage += turns;
        if (stage >= job.stages) {
            stage -= job.stages;
            parity ^= 1;
        }
    }
}

/// Copies the panel's digits and then one tile after the other. One thread.
template <unsigned kSteps>
__device__ void copy_tiles(const DeviceCodeTiles& tiles, const Job& job, const CodeWorkspace& work,
                           std::int8_t* digits, std::int8_t* ring, std::uint64_t* loaded,
                           std::uint64_t* full, std::uint64_t* empty) {
    constexpr unsigned kTileBytes = kSteps * kCodeStep * kCodeTileRows;
    const unsigned digit_bytes = job.grid.columns * kCodeBlockQueries * kSteps * kCodeStep;
    copy_bulk(digits, work.digits + std::size_t{blockIdx.y} * digit_bytes, digit_bytes, loaded);
    unsigned stage = 0;
    unsigned parity = 1;  // the phase before the first counts as over: every stage is empty
    for (std::uint32_t n = blockIdx.x; n < job.part.tiles; n += gridDim.x) {
        wait(&empty[stage], parity);
        copy_bulk(ring + stage * kTileBytes,
                  tiles.codes + std::size_t{tile_of(job.part, n)} * kTileBytes, kTileBytes,
                  &full[stage]);
        if (++stage == job.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
}

/// What a thread that multiplies needs, beside its share.
struct Context {
    const DeviceModel& model;
    const DeviceQueries& queries;
    const Job& job;
    const CodeWorkspace& work;
    const Share& share;

    /// The filter of query `h`; nullptr if no query of the pass has one.
    __device__ const DeviceQuery* filter(unsigned h) const {
        return job.filtered ? queries.queries + share.queries[h] : nullptr;
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
    planes::Int8Range next;
    planes::Int8Range range;

    __device__ explicit Keys(const Context& of) : context(of) {}
    __device__ void load(std::uint32_t tile) { next = context.model.code_tiles.ranges[tile]; }
    __device__ void prepare() { range = next; }

    __device__ void take(const int (&sums)[kSums], std::uint32_t tile, std::uint32_t n) const {
        const CodeWorkspace& work = context.work;
        const Share& share = context.share;
#pragma unroll
        for (unsigned h = 0; h < kQueries; ++h) {
            const std::uint32_t q = share.queries[h];
            if (q >= context.queries.count) continue;
            const double lower = planes::int8_lower(largest_sum(sums, h, tile), range,
                                                    work.facts[q], context.model.dim);
            const std::size_t key = (std::size_t{q} * context.job.part.tiles + n) * kKeysOfTile;
            work.keys[key + share.lane % kKeysOfTile] = __double2float_rd(lower);
        }
    }

    /// The largest sum of an eligible row; INT_MIN if there is none. (Beyond the last place all
    /// sums are 0, which proves nothing.)
    __device__ int largest_sum(const int (&sums)[kSums], unsigned h, std::uint32_t tile) const {
        const DeviceQuery* const filter = context.filter(h);
        int largest = INT_MIN;
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            const std::uint32_t place = place_of(tile, r, context.share.lane);
            if (filter != nullptr && !context.is_admitted(filter, place)) continue;
            largest = max(largest, sums[sum_at(h, r)]);
        }
        return largest;
    }
};

/// Appends the rows that reach a query's cutoff to the thread's list, for each of its queries.
struct Lists {
    const Context& context;
    planes::Int8SumCutoff cutoffs[kQueries];
    std::uint32_t counts[kQueries];
    planes::Int8Range next;
    int min_sums[kQueries];

    __device__ explicit Lists(const Context& of) : context(of) {
        for (unsigned h = 0; h < kQueries; ++h) {
            const std::uint32_t q = of.share.queries[h];
            const bool is_query = q < of.queries.count;
            // What fills the panel reaches no cutoff.
            cutoffs[h] = is_query ? of.work.cutoffs[q]
                                  : planes::Int8SumCutoff{0, 0, -planes::kBeyondInt8Sums};
            counts[h] = 0;
        }
    }
    __device__ void load(std::uint32_t tile) { next = context.model.code_tiles.ranges[tile]; }
    __device__ void prepare() {
#pragma unroll
        for (unsigned h = 0; h < kQueries; ++h)
            min_sums[h] = planes::int8_min_sum(cutoffs[h], next);
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
            context.work.lists + context.share.list(context.job.grid, h) * kCodeListRoom;
        const bool is_full = (tile + 1) * kCodeTileRows <= context.model.code_tiles.places;
        if (!is_full || context.job.filtered || counts[h] + kRows > kCodeListRoom) {
            append_tested(sums, h, tile, list);
            return;
        }
#pragma unroll
        for (unsigned r = 0; r < kRows; ++r) {
            const int sum = sums[sum_at(h, r)];
            if (sum >= min_sums[h])
                list[counts[h]++] = {place_of(tile, r, context.share.lane), sum};
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
        for (; reached != 0; reached &= reached - 1) {
            const auto r = static_cast<unsigned>(__ffs(static_cast<int>(reached)) - 1);
            const std::uint32_t place = place_of(tile, r, context.share.lane);
            if (!context.is_admitted(filter, place)) continue;
            if (counts[h] < kCodeListRoom) list[counts[h]] = {place, own[r]};
            ++counts[h];
        }
    }

    __device__ void write_counts() const {
        for (unsigned h = 0; h < kQueries; ++h) {
            if (context.share.queries[h] < context.queries.count)
                context.work.counts[context.share.list(context.job.grid, h)] = counts[h];
        }
    }
};
#endif

/// Multiplies a part's tiles with the queries of panel blockIdx.y. kSteps: instructions per tile
/// and block of queries. kSample: writes keys, otherwise appends to lists.
template <unsigned kSteps, bool kSample>
__global__ __launch_bounds__(kThreads, 1) void code_multiply(DeviceModel model,
                                                             DeviceQueries queries, Job job,
                                                             CodeWorkspace work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr unsigned kWidth = kSteps * kCodeStep;
    extern __shared__ __align__(128) std::int8_t memory[];  // digits, then the ring of tiles
    __shared__ std::uint64_t loaded;
    __shared__ std::uint64_t full[kMaxStages];
    __shared__ std::uint64_t empty[kMaxStages];
    std::int8_t* const ring = memory + job.grid.columns * kCodeBlockQueries * kWidth;

    if (threadIdx.x == 0) {
        init_barrier(&loaded, 1);
        for (unsigned s = 0; s < job.stages; ++s) {
            init_barrier(&full[s], 1);
            init_barrier(&empty[s], job.grid.columns * (kWarpgroup / kWarp));
        }
        publish_barriers();
    }
    __syncthreads();
    let_next_start();
    wait_for_previous();
    if (threadIdx.x >= kConsumers) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCopierRegisters));
        if (threadIdx.x == kConsumers)
            copy_tiles<kSteps>(model.code_tiles, job, work, memory, ring, &loaded, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kConsumerRegisters));
        const Share share(job.grid);
        const std::int8_t* const digits = memory + share.column * kCodeBlockQueries * kWidth;
        wait(&loaded, 0);
        const Context context{model, queries, job, work, share};
        if constexpr (kSample) {
            Keys keys(context);
            for_each_tile<kSteps>(job, share, digits, ring, full, empty, keys);
        } else {
            Lists lists(context);
            for_each_tile<kSteps>(job, share, digits, ring, full, empty, lists);
            lists.write_counts();
        }
    }
#endif
}

template <unsigned kSteps, bool kSample>
cudaError_t run(const DeviceModel& model, const DeviceQueries& queries, Job job,
                const CodeWorkspace& work, const DeviceShape& shape, cudaStream_t stream) {
    constexpr std::size_t kStatic = 1024;
    constexpr std::size_t kWidth = kSteps * kCodeStep;
    constexpr std::size_t kTileBytes = kWidth * kCodeTileRows;
    const auto kernel = code_multiply<kSteps, kSample>;
    const std::size_t digit_bytes = job.grid.columns * kCodeBlockQueries * kWidth;
    const std::size_t room = shape.shared_bytes - kStatic - digit_bytes;
    job.stages = static_cast<std::uint32_t>(min(room / kTileBytes, std::size_t{kMaxStages}));
    // Warpgroups that take turns have stages of their own. A phase of a barrier is told from the
    // one before it by a bit, so nobody may wait for a phase before the one before it is over.
    job.stages -= job.stages % job.grid.turns();
    const std::size_t shared = digit_bytes + job.stages * kTileBytes;
    // An attribute per device; setting it each time costs little. Always the same, since launches
    // of other engines may come between this and the next line.
    if (const auto error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(shape.shared_bytes - kStatic));
        error != cudaSuccess) {
        return error;
    }
    return launch_early(kernel, dim3(job.grid.ranges, job.grid.panels), kThreads, shared, stream,
                        model, queries, job, work);
}

constexpr unsigned kMaxSteps = kMaxCodeWidth / kCodeStep;

/// Calls `use` with `steps` as a constant.
template <unsigned kSteps = 1, class Use>
cudaError_t with_steps(unsigned steps, const Use& use) {
    if constexpr (kSteps > kMaxSteps) {
        return cudaErrorInvalidValue;
    } else {
        if (steps == kSteps) return use(std::integral_constant<unsigned, kSteps>{});
        return with_steps<kSteps + 1>(steps, use);
    }
}

template <bool kSample>
cudaError_t multiply(const DeviceModel& model, const DeviceQueries& queries, Job job,
                     const CodeWorkspace& work, const DeviceShape& shape, cudaStream_t stream) {
    job.filtered = queries.any_rank || !queries.all_rows;
    return with_steps(model.code_tiles.width / kCodeStep, [&](auto steps) {
        return run<steps, kSample>(model, queries, job, work, shape, stream);
    });
}

}  // namespace

bool wgmma_is_built() {
    for (unsigned steps = 1; steps <= kMaxSteps; ++steps) {
        const cudaError_t error = with_steps(steps, [](auto constant) {
            return load_each(code_multiply<constant, true>, code_multiply<constant, false>);
        });
        if (error == cudaSuccess) continue;
        (void)cudaGetLastError();
        return false;
    }
    return true;
}

cudaError_t multiply_sample(const DeviceModel& model, const DeviceQueries& queries,
                            const CodePart& part, const CodeGrid& grid, const CodeWorkspace& work,
                            const DeviceShape& shape, cudaStream_t stream) {
    return multiply<true>(model, queries, {part, grid, 0, false}, work, shape, stream);
}

cudaError_t multiply_to_lists(const DeviceModel& model, const DeviceQueries& queries,
                              const CodePart& part, const CodeGrid& grid, const CodeWorkspace& work,
                              const DeviceShape& shape, cudaStream_t stream) {
    return multiply<false>(model, queries, {part, grid, 0, false}, work, shape, stream);
}

}  // namespace gloved::kernels::cuda
