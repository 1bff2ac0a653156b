// One thread a distance, and both rows from global memory, component by component.
//
// Expected limit: the load units. Neighbouring threads share the row and read components of
// neighbouring rows, a whole row apart: each load of a warp touches 32 lines. What saves it is the
// L1 cache, from which a line's other components come.
#include "kernels/distance/canonical.hpp"
#include "museum/distances.hpp"

namespace gloved::museum {
namespace {

using kernels::distance::kBlock;

constexpr unsigned kAcross = 32;
constexpr unsigned kDown = 8;

__global__ void __launch_bounds__(kAcross* kDown) distances(DistanceTask task) {
    const std::size_t i = std::size_t{blockIdx.y} * kDown + threadIdx.y;
    const std::size_t j = std::size_t{blockIdx.x} * kAcross + threadIdx.x;
    if (i >= task.rows || j >= task.rows) return;
    const float* const x = task.points + i * task.stride;
    const float* const y = task.points + j * task.stride;
    float sum = 0;
    for (std::size_t block = 0; block < task.dim; block += kBlock) {
        const std::size_t end = min(task.dim, block + kBlock);
        float acc = 0;
        for (std::size_t k = block; k < end; ++k) {
            const float d = __fsub_rn(x[k], y[k]);
            acc = __fmaf_rn(d, d, acc);
        }
        sum = block == 0 ? acc : __fadd_rn(sum, acc);
    }
    task.out[i * task.rows + j] = sum;
}

}  // namespace

cudaError_t launch_global(const DistanceTask& task, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>((task.rows + kAcross - 1) / kAcross),
                      static_cast<unsigned>((task.rows + kDown - 1) / kDown));
    distances<<<blocks, dim3(kAcross, kDown), 0, stream>>>(task);
    return cudaGetLastError();
}

}  // namespace gloved::museum
