// Multiplies code tiles with the digits of many queries on tensor cores that take their operands
// from registers (mma.sync), for every device without wgmma, and compares every sum with its
// query's cutoff.
//
// The warps of a block work in crews: one for each block of queries of the panel, or, if the panel
// has fewer of them, crews that take tiles in turn. A crew copies the next kCodeStep components
// of its tile and of its queries to shared memory while it multiplies those before. Each warp has
// 16 queries, whose sums with all rows of a tile stay in registers, as in code_multiply_wgmma.cu.
#include <cuda_pipeline.h>

#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_sums.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = CodeGrid::kWarpgroups * kWarpgroup;
/// Stages of a crew: kMinStages where there is no memory for kMaxStages.
constexpr unsigned kMinStages = 2;
constexpr unsigned kMaxStages = 4;
/// Bytes of one step of a tile, and of the digits of a block of queries for it.
constexpr unsigned kStepBytes = kCodeStep * kCodeTileRows;
constexpr unsigned kStepDigits = kCodeStep * kCodeBlockQueries;
constexpr unsigned kCopyBytes = 16;
/// Rows of an instruction's second operand.
constexpr unsigned kProductRows = 8;

/// Bytes of a stage of a crew that has `columns` blocks of queries.
__host__ __device__ constexpr unsigned stage_bytes(unsigned columns) {
    return kStepBytes + columns * kStepDigits;
}

/// Waits for all threads of a crew. Crews are numbered by their turn.
__device__ void wait_for_crew(unsigned turn, unsigned threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(turn + 1), "r"(threads) : "memory");
}

/// Loads four core matrices, of which each thread gives the address of a row: thread 8 m + i that
/// of row i of matrix m. A thread gets bytes 4 (lane % 4) and on of row lane / 4 of each.
__device__ void load_cores(std::uint32_t (&to)[4], const std::int8_t* row) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    // Volatile, so that it stays behind the barrier before it.
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

/// sums += A B for 16 queries of kCodeStep digits and kProductRows rows of kCodeStep codes. `a`:
/// queries 0 to 7, then 8 to 15, of the first half of the step, and the same of the second half;
/// `low`, `high`: rows, of the two halves.
__device__ void add_products(int* sums, const std::uint32_t (&a)[4], std::uint32_t low,
                             std::uint32_t high) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
#else
    const auto add = [](int* to, std::uint32_t eight, std::uint32_t rows) {
        asm volatile(
            "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(to[0]), "+r"(to[1])
            : "r"(eight), "r"(rows));
    };
    add(sums, a[0], low);
    add(sums, a[2], high);
    add(sums + 2, a[1], low);
    add(sums + 2, a[3], high);
#endif
}

/// Multiplies the queries of a warp with the tiles that its crew takes.
class Products {
  public:
    /// `memory`: the stages of all crews.
    __device__ Products(const DeviceCodeTiles& tiles, const Job& job, const CodeWorkspace& work,
                        const Assignment& assignment, std::int8_t* memory)
        : tiles_(tiles),
          job_(job),
          assignment_(assignment),
          threads_(job.grid.columns * kWarpgroup),
          steps_(tiles.width / kCodeStep),
          stage_bytes_(stage_bytes(job.grid.columns)),
          stages_(memory + assignment.turn * job.stages * stage_bytes_),
          digits_(work.digits + (std::size_t{blockIdx.y} * job.grid.columns + assignment.column) *
                                    kCodeBlockQueries * tiles.width),
          copied_n_(blockIdx.x + assignment.turn * gridDim.x) {
        begin_tile();
        for (unsigned stage = 0; stage + 1 < job.stages; ++stage) copy_next(stage);
    }

    /// Sets the sums for the crew's next tile.
    __device__ void multiply(int (&sums)[kSums]) {
#pragma unroll
        for (int& sum : sums) sum = 0;
        for (unsigned step = 0; step < steps_; ++step) {
            wait_for_copies();
            wait_for_crew(assignment_.turn, threads_);
            // Into the stage before this one: the crew is done with that.
            copy_next(stage_ == 0 ? job_.stages - 1 : stage_ - 1);
            multiply_step(sums, stages_ + stage_ * stage_bytes_);
            if (++stage_ == job_.stages) stage_ = 0;
        }
    }

  private:
    /// Waits until this thread's part of the oldest stage is there.
    __device__ void wait_for_copies() const {
        if (job_.stages == kMaxStages) {
            __pipeline_wait_prior(kMaxStages - 2);
        } else {
            __pipeline_wait_prior(kMinStages - 2);
        }
    }

    /// Points to the tile that is copied next, if there is one.
    __device__ void begin_tile() {
        copied_step_ = 0;
        if (copied_n_ < job_.part.tiles)
            codes_ =
                tiles_.codes + std::size_t{tile_of(job_.part, copied_n_)} * steps_ * kStepBytes;
    }

    /// Starts to copy the next step of a tile and of the queries, if there is one.
    __device__ void copy_next(unsigned to_stage) {
        if (copied_n_ < job_.part.tiles) {
            std::int8_t* const to = stages_ + to_stage * stage_bytes_;
            const std::int8_t* const codes = codes_ + copied_step_ * kStepBytes;
            const unsigned thread = assignment_.column * kWarpgroup + threadIdx.x % kWarpgroup;
            for (unsigned at = thread * kCopyBytes; at < kStepBytes; at += threads_ * kCopyBytes)
                __pipeline_memcpy_async(to + at, codes + at, kCopyBytes);
            // The warps of each block of queries copy its digits.
            static_assert(kStepDigits == kWarpgroup * kCopyBytes);
            const unsigned at = threadIdx.x % kWarpgroup * kCopyBytes;
            __pipeline_memcpy_async(to + kStepBytes + assignment_.column * kStepDigits + at,
                                    digits_ + copied_step_ * kStepDigits + at, kCopyBytes);
            if (++copied_step_ == steps_) {
                copied_n_ += job_.grid.turns() * gridDim.x;
                begin_tile();
            }
        }
        __pipeline_commit();
    }

    __device__ void multiply_step(int (&sums)[kSums], const std::int8_t* stage) const {
        constexpr unsigned kHalfDigits = kStepDigits / 2;
        constexpr unsigned kHalfRows = kStepBytes / 2;
        const unsigned matrix = assignment_.lane / 8;
        const unsigned row = assignment_.lane % 8;
        const unsigned warp = threadIdx.x % kWarpgroup / kWarp;
        std::uint32_t a[4];
        load_cores(a, stage + kStepBytes + assignment_.column * kStepDigits +
                          matrix / 2 * kHalfDigits +
                          (warp * 16 + matrix % 2 * 8 + row) * kCoreWidth);
        const std::int8_t* const rows =
            stage + matrix % 2 * kHalfRows + (matrix / 2 * kProductRows + row) * kCoreWidth;
#pragma unroll
        for (unsigned j = 0; j < kCodeTileRows / kProductRows; j += 2) {
            std::uint32_t b[4];
            load_cores(b, rows + j * kCoreBytes);
            add_products(sums + j * 4, a, b[0], b[1]);
            add_products(sums + (j + 1) * 4, a, b[2], b[3]);
        }
    }

    const DeviceCodeTiles& tiles_;
    const Job& job_;
    const Assignment& assignment_;
    unsigned threads_;  // of the crew
    unsigned steps_;    // of a tile
    unsigned stage_bytes_;
    std::int8_t* stages_;        // of the crew
    const std::int8_t* digits_;  // of the warp's block of queries
    unsigned stage_ = 0;         // the next to multiply
    // What is copied next:
    std::uint32_t copied_n_;  // the number of the tile in the part
    const std::int8_t* codes_ = nullptr;
    unsigned copied_step_ = 0;
};

/// Multiplies a part's tiles with the queries of panel blockIdx.y. kSample: writes keys, otherwise
/// appends to lists.
template <bool kSample>
__global__ __launch_bounds__(kThreads, 1) void code_multiply(DeviceModel model,
                                                             DeviceQueries queries, Job job,
                                                             CodeWorkspace work) {
    extern __shared__ __align__(128) std::int8_t memory[];
    let_next_start();
    wait_for_previous();
    const Assignment assignment(job.grid);
    const Context context{model, queries, job, work, assignment};
    Products products(model.code_tiles, job, work, assignment, memory);
    use_sums<kSample>(context, products);
}

template <bool kSample>
cudaError_t run(const DeviceModel& model, const DeviceQueries& queries, Job job,
                const CodeWorkspace& work, const DeviceShape& shape, cudaStream_t stream) {
    constexpr std::size_t kStatic = 1024;
    const auto kernel = code_multiply<kSample>;
    const std::size_t stage = stage_bytes(job.grid.columns) * job.grid.turns();
    const std::size_t room = shape.shared_bytes - kStatic;
    job.stages = room >= kMaxStages * stage ? kMaxStages : kMinStages;
    return launch_early(shape, kernel, dim3(job.grid.ranges, job.grid.panels), kThreads,
                        job.stages * stage, stream, model, queries, job, work);
}

}  // namespace

cudaError_t load_code_multiply_mma_kernels() {
    return load_and_allow(code_multiply<true>, code_multiply<false>);
}

cudaError_t multiply_by_mma(const DeviceModel& model, const DeviceQueries& queries, const Job& job,
                            const CodeWorkspace& work, const DeviceShape& shape,
                            cudaStream_t stream) {
    return job.sample ? run<true>(model, queries, job, work, shape, stream)
                      : run<false>(model, queries, job, work, shape, stream);
}

}  // namespace gloved::kernels::cuda
