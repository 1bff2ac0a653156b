// Builds the int8 codes of a shard's rows and their bounds, once after the vectors are uploaded.
#include <algorithm>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/encode_int8.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;

/// Writes the int8 codes and bounds of every row. One warp a row at a time.
__global__ __launch_bounds__(kThreads) void build_int8_codes(DeviceModel model) {
    const unsigned lane = threadIdx.x % kWarp;
    const DeviceInt8Codes& int8_codes = model.int8_codes;
    for (std::uint32_t row = blockIdx.x * kWarps + threadIdx.x / kWarp; row < model.rows;
         row += gridDim.x * kWarps) {
        std::int8_t* const codes =
            int8_codes.rows + static_cast<std::size_t>(row) * int8_codes.stride;
        const std::uint32_t width =
            int8_codes.stride - static_cast<std::uint32_t>(sizeof(Int8Bounds));
        const Int8Bounds bounds = encode_int8(model, row, lane, width, [&](unsigned i, int code) {
            codes[i] = static_cast<std::int8_t>(code);
        });
        if (lane == 0) *reinterpret_cast<Int8Bounds*>(codes + width) = bounds;
    }
}

}  // namespace

cudaError_t load_build_int8_codes_kernels() { return load_each(build_int8_codes); }

cudaError_t launch_build_int8_codes(const DeviceModel& model, cudaStream_t stream) {
    const unsigned blocks =
        blocks_of_rounds(min((model.rows + kWarps - 1) / kWarps, 1U << 16), kWarps);
    build_int8_codes<<<blocks, kThreads, 0, stream>>>(model);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
