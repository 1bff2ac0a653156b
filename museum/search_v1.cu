// v1: every query copies the whole model to the device, where one thread scores one row against a
// query in shared memory.
//
// Expected limit: the copy. 2.64 GB from pageable memory take 266 ms at the 9.9 GB/s of a staged
// copy over PCIe 5, a hundred times the search itself.
//
// Neighbouring threads read addresses a row apart: each of a warp's loads touches 32 sectors of 32
// bytes, of which it uses 4 bytes each. The other 28 are used by the thread's next seven loads if
// the L1 cache still holds them: 256 threads keep 32 KB of such sectors each block, so a cache of
// 64 KB (2018) loses many of them before use, and one of 256 KB (H100) few.
#include "museum/search.hpp"

namespace gloved::museum {
namespace {

__global__ void dot_product(const DotArguments arguments) {
    extern __shared__ float query[];
    for (unsigned i = threadIdx.x; i < arguments.dim; i += blockDim.x)
        query[i] = arguments.query[i];
    __syncthreads();

    const std::size_t slot = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot >= arguments.slots) return;
    if (slot >= arguments.rows) {
        arguments.entries[slot] = Entry();
        return;
    }
    const float* row = arguments.vectors + slot * arguments.dim;
    float dot = 0;
    for (unsigned i = 0; i < arguments.dim; ++i) dot = fmaf(query[i], row[i], dot);
    const float score = float_score(dot, arguments.query_norm, arguments.norms[slot]);
    arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

}  // namespace

cudaError_t launch_v1(const DotArguments& arguments, cudaStream_t stream) {
    dot_product<<<blocks_for(arguments.slots), kBlockThreads, arguments.dim * sizeof(float),
                  stream>>>(arguments);
    return cudaGetLastError();
}

}  // namespace gloved::museum
