// v3: eight threads share a row, so that each load of theirs is one whole 32-byte sector; their
// sums meet in shared memory.
//
// Expected limit: reading the model once, as far as 4-byte loads keep enough of it in flight; then
// allocation and waiting.
//
// Eight is the smallest group that wastes no sector. With four threads a row each load uses half a
// sector and leaves the other half to the cache; 16 and 32 load no fewer sectors, but more threads
// idle where a row ends, and a sum has one or two more steps (docs/performance-history.md).
//
// Every step of the sum ends with __syncwarp(), which also orders the shared memory of the warp's
// threads. All threads of a warp take part in it, those of rows that do not exist too. The score is
// valid in the first thread of a group.
#include "museum/search.hpp"

namespace gloved::museum {
namespace {

constexpr unsigned kThreadsARow = 8;

__global__ void dot_product(const DotArguments arguments) {
    extern __shared__ float query[];
    __shared__ float sums[kBlockThreads];
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
    sums[threadIdx.x] = sum;
    __syncwarp();
    for (unsigned offset = kThreadsARow / 2; offset > 0; offset /= 2) {
        if (part < offset) sums[threadIdx.x] += sums[threadIdx.x + offset];
        __syncwarp();
    }
    if (part != 0 || slot >= arguments.slots) return;
    if (slot >= arguments.rows) {
        arguments.entries[slot] = Entry();
        return;
    }
    const float score = float_score(sums[threadIdx.x], arguments.query_norm, arguments.norms[slot]);
    arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

}  // namespace

cudaError_t launch_v3(const DotArguments& arguments, cudaStream_t stream) {
    dot_product<<<blocks_for(arguments.slots * kThreadsARow), kBlockThreads,
                  arguments.dim * sizeof(float), stream>>>(arguments);
    return cudaGetLastError();
}

}  // namespace gloved::museum
