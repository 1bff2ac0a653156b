// Loads all kernels onto a device, and pads the vectors that come there.
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

/// launch_pad_rows, one float a thread.
__global__ void pad_rows(const float* __restrict__ packed, std::size_t count, std::uint32_t dim,
                         std::uint32_t stride, float* __restrict__ padded) {
    const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += threads) {
        const std::size_t row = i / stride;
        const auto column = static_cast<std::uint32_t>(i - row * stride);
        padded[i] = column < dim ? packed[row * dim + column] : 0.0F;
    }
}

}  // namespace

cudaError_t load_kernels() {
    for (const auto load :
         {load_build_code_tiles_kernels, load_build_int8_codes_kernels,
          load_code_multiply_mma_kernels, load_code_pass_kernels, load_few_rows_kernels,
          load_plane_pass_kernels, load_plane_query_kernels, load_score_kernels}) {
        if (const auto error = load(); error != cudaSuccess) return error;
    }
    return load_each(pad_rows);
}

bool early_launch_is_built() {
    // Code for an older architecture, compiled for this one at load, does not wait.
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, pad_rows) == cudaSuccess &&
           attributes.ptxVersion >= 90;
}

cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim,
                            std::uint32_t stride, float* padded, cudaStream_t stream) {
    const std::size_t count = static_cast<std::size_t>(rows) * stride;
    const auto blocks = static_cast<unsigned>(min((count + 255) / 256, std::size_t{4096}));
    pad_rows<<<blocks, 256, 0, stream>>>(packed, count, dim, stride, padded);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
