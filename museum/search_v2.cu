// v2: the model stays on the device; the kernel finds its pointers in constant memory, and lists
// are merged in private memory.
//
// Expected limit: the same strided reads as v1's, now all that is left beside allocation and
// waiting.
//
// Constant memory for pointers gains nothing by itself: a kernel's parameters already lie in a
// constant bank. What the version shows is the resident model. The constant block is one for the
// whole process; so every search writes it anew, which its stream orders before the kernel.
#include "museum/search.hpp"

namespace gloved::museum {
namespace {

/// DotArguments without its initialisers, which a __constant__ variable must not have.
struct ConstantArguments {
    const float* vectors;
    const float* norms;
    const float* query;
    Entry* entries;
    std::size_t rows;
    std::size_t slots;
    std::uint32_t dim;
    float query_norm;
};

__constant__ ConstantArguments constant_arguments;

__global__ void dot_product() {
    extern __shared__ float query[];
    for (unsigned i = threadIdx.x; i < constant_arguments.dim; i += blockDim.x)
        query[i] = constant_arguments.query[i];
    __syncthreads();

    const std::size_t slot = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot >= constant_arguments.slots) return;
    if (slot >= constant_arguments.rows) {
        constant_arguments.entries[slot] = Entry();
        return;
    }
    const float* row = constant_arguments.vectors + slot * constant_arguments.dim;
    float dot = 0;
    for (unsigned i = 0; i < constant_arguments.dim; ++i) dot = fmaf(query[i], row[i], dot);
    const float score =
        float_score(dot, constant_arguments.query_norm, constant_arguments.norms[slot]);
    constant_arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

}  // namespace

cudaError_t launch_v2(const DotArguments& arguments, cudaStream_t stream) {
    const ConstantArguments constant{arguments.vectors, arguments.norms,     arguments.query,
                                     arguments.entries, arguments.rows,      arguments.slots,
                                     arguments.dim,     arguments.query_norm};
    // From pageable memory: has left `constant` when the call returns.
    const cudaError_t copied = cudaMemcpyToSymbolAsync(
        constant_arguments, &constant, sizeof(constant), 0, cudaMemcpyHostToDevice, stream);
    if (copied != cudaSuccess) return copied;
    dot_product<<<blocks_for(arguments.slots), kBlockThreads, arguments.dim * sizeof(float),
                  stream>>>();
    return cudaGetLastError();
}

}  // namespace gloved::museum
