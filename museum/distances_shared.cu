// One thread a distance; a block copies tiles of both operands to shared memory and works on them
// there, as textbooks do for the product of matrices.
//
// Expected limit: shared memory. Two words are read for two instructions of arithmetic, and one of
// the two reads hits few banks: in it, threads of neighbouring columns are a row of the tile apart,
// which is 8, 16 or 32 words, so that 2, 8 or 32 of a warp's reads wait for each other. So it is
// the small tiles that are fast, although the large ones read global memory less often: the tile's
// edge is the distance between banks. A word of padding behind each row would cure that.
#include "kernels/distance/canonical.hpp"
#include "museum/distances.hpp"

namespace gloved::museum {
namespace {

using kernels::distance::kBlock;

template <unsigned kTile>
__global__ void __launch_bounds__(kTile* kTile) distances(DistanceTask task) {
    static_assert(kPointPadding % kTile == 0 && kBlock % kTile == 0);
    __shared__ float rows[kTile][kTile];
    __shared__ float columns[kTile][kTile];
    const std::size_t i = std::size_t{blockIdx.y} * kTile + threadIdx.y;
    const std::size_t j = std::size_t{blockIdx.x} * kTile + threadIdx.x;
    // Threads beyond the last point load that point, and write nothing.
    const std::size_t row = min(i, task.rows - 1);
    const std::size_t column = min(std::size_t{blockIdx.x} * kTile + threadIdx.y, task.rows - 1);
    const float* const x = task.points + row * task.stride + threadIdx.x;
    const float* const y = task.points + column * task.stride + threadIdx.x;
    float sum = 0;
    float acc = 0;
    for (std::size_t begin = 0; begin < task.dim; begin += kTile) {
        if (begin > 0 && begin % kBlock == 0) {
            sum = begin == kBlock ? acc : __fadd_rn(sum, acc);
            acc = 0;
        }
        rows[threadIdx.y][threadIdx.x] = x[begin];
        columns[threadIdx.y][threadIdx.x] = y[begin];
        __syncthreads();
#pragma unroll
        for (unsigned k = 0; k < kTile; ++k) {
            const float d = __fsub_rn(rows[threadIdx.y][k], columns[threadIdx.x][k]);
            acc = __fmaf_rn(d, d, acc);
        }
        __syncthreads();
    }
    if (i >= task.rows || j >= task.rows) return;
    task.out[i * task.rows + j] = task.dim <= kBlock ? acc : __fadd_rn(sum, acc);
}

}  // namespace

template <unsigned kTile>
cudaError_t launch_shared(const DistanceTask& task, cudaStream_t stream) {
    const auto edge = static_cast<unsigned>((task.rows + kTile - 1) / kTile);
    distances<kTile><<<dim3(edge, edge), dim3(kTile, kTile), 0, stream>>>(task);
    return cudaGetLastError();
}
template cudaError_t launch_shared<8>(const DistanceTask&, cudaStream_t);
template cudaError_t launch_shared<16>(const DistanceTask&, cudaStream_t);
template cudaError_t launch_shared<32>(const DistanceTask&, cudaStream_t);

}  // namespace gloved::museum
