// Queries whose filter leaves few rows: the canonical score of every one of these. No threshold is
// needed, and a pass over all rows would find few that it may compare.
//
// Some blocks share a query's rows. Each keeps the best of its part in shared memory, and the last
// one to end takes the best of all.
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/order_hits.cuh"
#include "kernels/cuda/radix_select.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
/// Rows that a block keeps, and rows that it scores before it looks whether it must drop some.
constexpr std::uint32_t kRoom = 1024;
constexpr std::uint32_t kChunk = 512;
static_assert(kMaxFewBlocksOfQuery * kMaxBatchHits <= kRoom && kMaxBatchHits <= kRoom - kChunk);
/// Stands for a number of rows where there was no room for all.
constexpr std::uint32_t kOverflow = ~std::uint32_t{0};

/// The best rows so far of a block. In shared memory.
struct Best {
    Found found[kRoom];
    std::uint32_t count;
    double floor;  ///< k rows reach it, or it is the query's min_score

    /// Drops rows that k others come before. The whole block calls it.
    __device__ void make_room(std::uint32_t k) {
        constexpr unsigned kOfThread = kRoom / kThreads;
        const std::uint32_t before = count;
        const float kth = kth_largest_lower_bound_of<kThreads, kOfThread>(
            before, k, [&](std::uint32_t i) { return __double2float_rd(found[i].score); });
        Found own[kOfThread];
#pragma unroll
        for (unsigned j = 0; j < kOfThread; ++j) {
            const std::uint32_t i = j * kThreads + threadIdx.x;
            own[j] = i < before ? found[i] : Found{static_cast<double>(minus_infinity()), 0, 0};
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            count = 0;
            floor = fmax(floor, static_cast<double>(kth));
        }
        __syncthreads();
#pragma unroll
        for (unsigned j = 0; j < kOfThread; ++j) {
            const std::uint32_t i = j * kThreads + threadIdx.x;
            if (i < before && own[j].score >= floor) found[atomicAdd(&count, 1U)] = own[j];
        }
        __syncthreads();
    }

    /// Writes the k best in order to `to`. The whole block calls it.
    __device__ void write(std::uint32_t k, Found* to) const {
        for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
            const Found mine = found[i];
            std::uint32_t place = 0;
            for (std::uint32_t j = 0; j < count; ++j) place += comes_before(found[j], mine) ? 1 : 0;
            if (place < k) to[place] = mine;
        }
    }
};

/// Answers query blockIdx.y by the rows that its range, its limit on ranks or a list leaves,
/// whichever are the fewest; blocks blockIdx.x share them.
__global__ __launch_bounds__(kThreads) void few_rows(DeviceModel model, DeviceQueries queries,
                                                     Workspace work) {
    __shared__ __align__(16) std::byte memory[sizeof(Best)];
    auto& best = *reinterpret_cast<Best*>(memory);
    const std::uint32_t q = blockIdx.y;
    const DeviceQuery& query = queries.queries[q];
    const float* const raw = queries.raw + static_cast<std::size_t>(q) * model.stride;
    std::uint32_t rows = query.last - query.first;
    const std::uint32_t* from = nullptr;  // where they are not neighbours
    if (query.rank_below < rows) {
        rows = query.rank_below;
        from = model.rows_by_rank;
    }
    if (query.listed < rows) {
        rows = query.listed;
        from = model.list_rows + query.list_begin;
    }
    const std::uint32_t share = (rows + gridDim.x - 1) / gridDim.x;
    const std::uint32_t end = min((blockIdx.x + 1) * share, rows);
    if (threadIdx.x == 0) {
        best.count = 0;
        best.floor = query.min_score;
    }
    __syncthreads();
    bool overflow = false;
    for (std::uint32_t begin = blockIdx.x * share; begin < end && !overflow; begin += kChunk) {
        score_rows<kThreads>(
            model, query, raw, min(kChunk, end - begin),
            [&](std::uint32_t i) {
                return from == nullptr ? query.first + begin + i : from[begin + i];
            },
            [&](std::uint32_t, std::uint32_t row, double score) {
                if (score >= best.floor && admits(query, model, row) &&
                    !is_excluded(query, queries.excluded, row))
                    best.found[atomicAdd(&best.count, 1U)] = {score, row, 0};
            });
        __syncthreads();
        const bool full = best.count > kRoom - kChunk;
        __syncthreads();  // all threads have read the count, which the next rows change
        if (!full) continue;
        best.make_room(query.k);
        overflow = best.count > kRoom - kChunk;  // so many rows of one score
        __syncthreads();
    }

    const FewWorkspace& few = work.few;
    const std::uint32_t block = q * gridDim.x + blockIdx.x;
    best.write(query.k, few.best + std::size_t{block} * kMaxBatchHits);
    if (threadIdx.x == 0) few.counts[block] = overflow ? kOverflow : min(best.count, query.k);
    if (!is_last_block(&few.done[q])) return;
    if (threadIdx.x == 0) best.count = 0;
    __syncthreads();
    for (std::uint32_t b = 0; b < gridDim.x; ++b) {
        const std::uint32_t of = q * gridDim.x + b;
        const std::uint32_t count = __ldcg(few.counts + of);
        overflow = overflow || count == kOverflow;
        for (std::uint32_t i = threadIdx.x; i < count && count != kOverflow; i += kThreads)
            best.found[atomicAdd(&best.count, 1U)] = few.best[std::size_t{of} * kMaxBatchHits + i];
    }
    __syncthreads();
    if (!overflow) best.write(query.k, work.hits + std::size_t{q} * queries.max_k);
    if (threadIdx.x > 0) return;
    work.answers[q] = {static_cast<double>(minus_infinity()),
                       overflow ? 0 : min(query.k, best.count),
                       overflow ? kFoundCapacity + 1 : best.count, rows, rows};
    few.done[q] = 0;
}

}  // namespace

cudaError_t load_few_rows_kernels() { return load_each(few_rows); }

cudaError_t launch_few_rows(const DeviceModel& model, const DeviceQueries& queries,
                            const Workspace& work, cudaStream_t stream) {
    const std::uint32_t blocks = min(max(kMaxFewBlocks / queries.count, 1U), kMaxFewBlocksOfQuery);
    few_rows<<<dim3(blocks, queries.count), kThreads, 0, stream>>>(model, queries, work);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
