// v4: v3's eight threads add up by __shfl_down_sync, and a query allocates nothing and waits once.
//
// Expected limit: one read of the model by 4-byte loads (dot_product, writing 8 bytes a row), then
// the selection's launches: one for FirstMerge and one a round, each a few microseconds for next to
// no work.
//
// Shuffles need no shared memory and no barrier: they exchange registers and are themselves the
// point where the named threads meet. The mask names the whole warp, and the whole warp arrives,
// since threads whose row does not exist take part too.
//
// Discarded: the implicit warp-synchronous reduction, that is v3's sum over `volatile` shared
// memory without __syncwarp(), or shuffles without a mask. It relied on the 32 threads of a warp
// running in lockstep, which the programming model never promised and which ended with Volta
// (compute capability 7.0): each thread has a program counter of its own. A thread may then read
// its neighbour's partial sum before it is written, or after the next step has overwritten it:
// results that are right on one compiler, block size or card and silently wrong on the next.
// `volatile` forces the accesses to memory but orders nothing between threads.
#include "museum/search.hpp"

namespace gloved::museum {
namespace {

constexpr unsigned kThreadsARow = 8;
constexpr unsigned kWholeWarp = 0xFFFFFFFFU;

__global__ void dot_product(const DotArguments arguments) {
    extern __shared__ float query[];
    for (unsigned i = threadIdx.x; i < arguments.dim; i += kBlockThreads)
        query[i] = arguments.query[i];
    __syncthreads();

    const std::size_t slot =
        (static_cast<std::size_t>(blockIdx.x) * kBlockThreads + threadIdx.x) / kThreadsARow;
    const unsigned part = threadIdx.x % kThreadsARow;
    float sum = 0;
    if (slot < arguments.rows) {
        const float* row = arguments.vectors + slot * arguments.dim;
        for (unsigned i = part; i < arguments.dim; i += kThreadsARow)
            sum = fmaf(query[i], row[i], sum);
    }
    for (unsigned offset = kThreadsARow / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(kWholeWarp, sum, offset, kThreadsARow);
    if (part != 0 || slot >= arguments.slots) return;
    if (slot >= arguments.rows) {
        arguments.entries[slot] = Entry();
        return;
    }
    const float score = float_score(sum, arguments.query_norm, arguments.norms[slot]);
    arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

}  // namespace

cudaError_t launch_v4(const DotArguments& arguments, cudaStream_t stream) {
    dot_product<<<blocks_for(arguments.slots * kThreadsARow), kBlockThreads,
                  arguments.dim * sizeof(float), stream>>>(arguments);
    return cudaGetLastError();
}

}  // namespace gloved::museum
