// One thread a distance; a block copies tiles of both operands to shared memory and works on them
// there, as textbooks do for the product of matrices.
//
// Expected limit: shared memory. Two words are read for two instructions of arithmetic, and one of
// the two reads hits few banks: in it, threads of neighbouring columns are a row of the tile apart,
// which is 8, 16 or 32 words, so that 2, 8 or 32 of a warp's reads wait for each other. So it is
// the small tiles that are fast, although the large ones read global memory less often: the tile's
// edge is the distance between banks. A word of padding behind each row would cure that; the rung
// above does it otherwise.
#include "kernels/cuda/distance/finish.cuh"
#include "kernels/cuda/distance/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

template <unsigned kTile>
__global__ void __launch_bounds__(kTile* kTile) distances(DistanceTask task) {
    static_assert(kPointPadding % kTile == 0 && distance::kBlock % kTile == 0);
    __shared__ float rows[kTile][kTile];
    __shared__ float columns[kTile][kTile];
    const std::size_t i = std::size_t{blockIdx.y} * kTile + threadIdx.y;
    const std::size_t j = std::size_t{blockIdx.x} * kTile + threadIdx.x;
    // Threads beyond the rectangle load its last points, and write nothing.
    const std::size_t row = task.rectangle.first_row + min(i, task.rectangle.rows - 1);
    const std::size_t column =
        task.rectangle.first_column +
        min(std::size_t{blockIdx.x} * kTile + threadIdx.y, task.rectangle.columns - 1);
    const float* const x = task.points + row * task.point_stride + threadIdx.x;
    const float* const y = task.points + column * task.point_stride + threadIdx.x;
    float sum = 0;
    float acc = 0;
    for (std::size_t begin = 0; begin < task.dim; begin += kTile) {
        if (begin > 0 && begin % distance::kBlock == 0) {
            sum = begin == distance::kBlock ? acc : __fadd_rn(sum, acc);
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
    if (i >= task.rectangle.rows || j >= task.rectangle.columns) return;
    sum = task.dim <= distance::kBlock ? acc : __fadd_rn(sum, acc);
    const float result = finish(task.metric, sum);
    task.out[i * task.stride + j] = result;
    if (task.mirror != nullptr) task.mirror[j * task.mirror_stride + i] = result;
}

template <unsigned kTile>
cudaError_t launch(const DistanceTask& task, cudaStream_t stream) {
    const dim3 blocks(static_cast<unsigned>((task.rectangle.columns + kTile - 1) / kTile),
                      static_cast<unsigned>((task.rectangle.rows + kTile - 1) / kTile));
    distances<kTile><<<blocks, dim3(kTile, kTile), 0, stream>>>(task);
    return cudaGetLastError();
}

}  // namespace

cudaError_t launch_shared(const DistanceTask& task, unsigned tile, cudaStream_t stream) {
    switch (tile) {
        case 8:
            return launch<8>(task, stream);
        case 16:
            return launch<16>(task, stream);
        default:
            return launch<32>(task, stream);
    }
}

}  // namespace gloved::kernels::cuda
