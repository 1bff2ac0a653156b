// Multiplies code tiles with the digits of many queries on the tensor cores of compute capability
// 9.0 (wgmma), and compares every sum with its query's cutoff.
//
// The queries are the rows of an instruction's result, and the tile's rows its columns. So a thread
// has all its sums of two queries, keeps their cutoffs in registers, and knows the smallest sum
// that matters for a whole tile after a few instructions. One warp copies codes to shared memory;
// four warpgroups multiply them. While one compares its sums, the others keep the tensor cores
// busy. Rows of up to kMaxWholeWidth bytes are copied tile by tile, and the digits of a block's
// queries stay in shared memory. Wider ones are copied in pieces, with the digits for each piece.
//
// Compiled for sm_90a alone: these instructions are in no other target.
#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_sums.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kConsumers = CodeGrid::kWarpgroups * kWarpgroup;
constexpr unsigned kThreads = kConsumers + kWarpgroup;  // the last copies
/// Registers of a thread that copies, and of one that multiplies: what the first gives up, the
/// others get.
constexpr unsigned kCopierRegisters = 24;
constexpr unsigned kConsumerRegisters = 112;
constexpr unsigned kMaxStages = 8;
/// Products per block of queries and whole tile.
constexpr unsigned kMaxWholeSteps = kMaxWholeWidth / kCodeStep;
/// Stands for tiles in pieces in place of a number of products.
constexpr unsigned kInPieces = 0;
/// Products per block of queries and piece; the last piece of a tile may have fewer.
constexpr unsigned kPieceSteps = 4;
/// Bytes of a piece of a tile, and of the digits of a block of queries for it.
constexpr unsigned kPieceBytes = kPieceSteps * kCodeStep * kCodeTileRows;
constexpr unsigned kPieceDigits = kPieceSteps * kCodeStep * kCodeBlockQueries;

/// Bytes of a stage.
template <unsigned kSteps>
__host__ __device__ constexpr unsigned stage_bytes(unsigned columns) {
    return kSteps == kInPieces ? kPieceBytes + columns * kPieceDigits
                               : kSteps * kCodeStep * kCodeTileRows;
}

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

/// Multiplies a block of queries with kSteps * kCodeStep components of a tile, and adds the
/// products to the sums if `more`.
template <unsigned kSteps>
__device__ void multiply_steps(int (&sums)[kSums], const std::int8_t* digits,
                               const std::int8_t* codes, bool more) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (unsigned step = 0; step < kSteps; ++step) {
        start_products(
            sums,
            describe_operand(digits + step * kCodeStep * kCodeBlockQueries, kCodeBlockQueries),
            describe_operand(codes + step * kCodeStep * kCodeTileRows, kCodeTileRows),
            more || step > 0);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    // The sums are written only now, which the compiler cannot know.
#pragma unroll
    for (int& sum : sums) asm volatile("" : "+r"(sum)::"memory");
}

/// What a block has in shared memory.
struct Shared {
    std::int8_t* digits;    ///< of the panel; none with tiles in pieces
    std::int8_t* ring;      ///< job.stages stages: tiles, or pieces of tiles and of digits
    std::uint64_t* loaded;  ///< the digits are there
    std::uint64_t* full;    ///< (stages)
    std::uint64_t* empty;   ///< (stages)
};

/// A stage, and the parity of the phase for which a barrier of it is awaited.
struct Cursor {
    unsigned stage;
    unsigned parity;

    __device__ void advance(unsigned by, unsigned stages) {
        stage += by;
        if (stage < stages) return;
        stage -= stages;
        parity ^= 1;
    }
};

/// Multiplies the block of queries of an assignment with the tiles that come through the ring.
template <unsigned kSteps>
struct Products {
    const Shared& shared;
    const Job& job;
    const Assignment& assignment;
    unsigned steps;  ///< products per tile
    Cursor at;

    __device__ Products(const Shared& in, const Job& of, const Assignment& by, unsigned width)
        : shared(in), job(of), assignment(by), steps(width / kCodeStep), at{by.turn, 0} {}

    /// Sets the sums for the assignment's next tile.
    __device__ void multiply(int (&sums)[kSums]) {
        if constexpr (kSteps != kInPieces) {
            const std::int8_t* const codes = wait_for_stage();
            multiply_steps<kSteps>(
                sums, shared.digits + assignment.column * kCodeBlockQueries * kSteps * kCodeStep,
                codes, false);
            give_back();
        } else {
            for (unsigned step = 0; step < steps; step += kPieceSteps) {
                const std::int8_t* const codes = wait_for_stage();
                multiply_piece(sums, codes + kPieceBytes + assignment.column * kPieceDigits, codes,
                               step);
                give_back();
            }
        }
    }

  private:
    __device__ const std::int8_t* wait_for_stage() const {
        wait(&shared.full[at.stage], at.parity);
        return shared.ring + at.stage * stage_bytes<kSteps>(job.grid.columns);
    }
    __device__ void give_back() {
        if (assignment.lane == 0) arrive(&shared.empty[at.stage]);
        at.advance(job.grid.turns(), job.stages);
    }
    __device__ void multiply_piece(int (&sums)[kSums], const std::int8_t* digits,
                                   const std::int8_t* codes, unsigned step) const {
        static_assert(kPieceSteps == 4);
        switch (min(steps - step, kPieceSteps)) {
            case 1:
                return multiply_steps<1>(sums, digits, codes, step > 0);
            case 2:
                return multiply_steps<2>(sums, digits, codes, step > 0);
            case 3:
                return multiply_steps<3>(sums, digits, codes, step > 0);
            default:
                return multiply_steps<4>(sums, digits, codes, step > 0);
        }
    }
};

/// Copies the panel's digits and then one tile after the other. One thread.
template <unsigned kSteps>
__device__ void copy_tiles(const DeviceCodeTiles& tiles, const Job& job, const CodeWorkspace& work,
                           const Shared& shared) {
    const unsigned columns = job.grid.columns;
    const unsigned block_digits = kCodeBlockQueries * tiles.width;
    const unsigned tile_bytes = kCodeTileRows * tiles.width;
    const std::int8_t* const digits =
        work.digits + std::size_t{blockIdx.y} * columns * block_digits;
    if (kSteps != kInPieces)
        copy_bulk(shared.digits, digits, columns * block_digits, shared.loaded);
    Cursor at{0, 1};  // the phase before the first counts as over: every stage is empty
    for (std::uint32_t n = blockIdx.x; n < job.part.tiles; n += gridDim.x) {
        const std::int8_t* const tile =
            tiles.codes + std::size_t{tile_of(job.part, n)} * tile_bytes;
        const auto fill = [&](auto copy) {
            wait(&shared.empty[at.stage], at.parity);
            copy(shared.ring + at.stage * stage_bytes<kSteps>(columns), &shared.full[at.stage]);
            at.advance(1, job.stages);
        };
        if constexpr (kSteps != kInPieces) {
            fill([&](std::int8_t* stage, std::uint64_t* full) {
                copy_bulk(stage, tile, tile_bytes, full);
            });
        } else {
            for (unsigned begin = 0; begin < tiles.width; begin += kPieceSteps * kCodeStep) {
                const unsigned bytes = min(tiles.width - begin, kPieceSteps * kCodeStep);
                fill([&](std::int8_t* stage, std::uint64_t* full) {
                    copy_bulk(stage, tile + begin * kCodeTileRows, bytes * kCodeTileRows, full);
                    for (unsigned c = 0; c < columns; ++c)
                        copy_bulk(stage + kPieceBytes + c * kPieceDigits,
                                  digits + c * block_digits + begin * kCodeBlockQueries,
                                  bytes * kCodeBlockQueries, full);
                });
            }
        }
    }
}
#endif

/// Multiplies a part's tiles with the queries of panel blockIdx.y. kSteps: products per tile and
/// block of queries, or kInPieces. kSample: writes keys, otherwise appends to lists.
template <unsigned kSteps, bool kSample>
__global__ __launch_bounds__(kThreads, 1) void code_multiply(DeviceModel model,
                                                             DeviceQueries queries, Job job,
                                                             CodeWorkspace work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(128) std::int8_t memory[];  // digits, then the ring
    __shared__ std::uint64_t loaded;
    __shared__ std::uint64_t full[kMaxStages];
    __shared__ std::uint64_t empty[kMaxStages];
    const unsigned columns = job.grid.columns;
    const unsigned digit_bytes = columns * kCodeBlockQueries * kSteps * kCodeStep;
    const Shared shared{memory, memory + digit_bytes, &loaded, full, empty};

    if (threadIdx.x == 0) {
        init_barrier(&loaded, 1);
        for (unsigned s = 0; s < job.stages; ++s) {
            init_barrier(&full[s], kSteps == kInPieces ? 1 + columns : 1);
            init_barrier(&empty[s], columns * (kWarpgroup / kWarp));
        }
        publish_barriers();
    }
    __syncthreads();
    let_next_start();
    wait_for_previous();
    if (threadIdx.x >= kConsumers) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCopierRegisters));
        if (threadIdx.x == kConsumers) copy_tiles<kSteps>(model.code_tiles, job, work, shared);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kConsumerRegisters));
        const Assignment assignment(job.grid);
        const Context context{model, queries, job, work, assignment};
        Products<kSteps> products(shared, job, assignment, model.code_tiles.width);
        if (kSteps != kInPieces) wait(&loaded, 0);
        use_sums<kSample>(context, products);
    }
#endif
}

template <unsigned kSteps, bool kSample>
cudaError_t run(const DeviceModel& model, const DeviceQueries& queries, Job job,
                const CodeWorkspace& work, const DeviceShape& shape, cudaStream_t stream) {
    constexpr std::size_t kStatic = 1024;
    const auto kernel = code_multiply<kSteps, kSample>;
    const std::size_t stage = stage_bytes<kSteps>(job.grid.columns);
    const std::size_t digit_bytes = job.grid.columns * kCodeBlockQueries * kSteps * kCodeStep;
    const std::size_t room = shape.shared_bytes - kStatic - digit_bytes;
    job.stages = static_cast<std::uint32_t>(min(room / stage, std::size_t{kMaxStages}));
    // Warpgroups that take turns have stages of their own. A phase of a barrier is told from the
    // one before it by a bit, so nobody may wait for a phase before the one before it is over.
    job.stages -= job.stages % job.grid.turns();
    const std::size_t shared = digit_bytes + job.stages * stage;
    return launch_early(shape, kernel, dim3(job.grid.ranges, job.grid.panels), kThreads, shared,
                        stream, model, queries, job, work);
}

/// Calls `use` with `steps` as a constant, or with kInPieces.
template <unsigned kSteps = 1, class Use>
cudaError_t with_steps(unsigned steps, const Use& use) {
    if constexpr (kSteps > kMaxWholeSteps) {
        return use(std::integral_constant<unsigned, kInPieces>{});
    } else {
        if (steps == kSteps) return use(std::integral_constant<unsigned, kSteps>{});
        return with_steps<kSteps + 1>(steps, use);
    }
}

}  // namespace

bool wgmma_is_built() {
    for (unsigned steps = 1; steps <= kMaxWholeSteps + 1; ++steps) {
        const cudaError_t error = with_steps(steps, [](auto constant) {
            return load_and_allow(code_multiply<constant, true>, code_multiply<constant, false>);
        });
        if (error == cudaSuccess) continue;
        (void)cudaGetLastError();
        return false;
    }
    return true;
}

cudaError_t multiply_by_wgmma(const DeviceModel& model, const DeviceQueries& queries,
                              const Job& job, const CodeWorkspace& work, const DeviceShape& shape,
                              cudaStream_t stream) {
    return with_steps(model.code_tiles.width / kCodeStep, [&](auto steps) {
        return job.sample ? run<steps, true>(model, queries, job, work, shape, stream)
                          : run<steps, false>(model, queries, job, work, shape, stream);
    });
}

}  // namespace gloved::kernels::cuda
