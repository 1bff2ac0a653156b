// Builds the int8 codes of a shard's rows and their bounds, once after the vectors are uploaded.
#include <algorithm>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/planes/cutoff.hpp"

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
        const float* const values = row_of(model, row);
        std::int8_t* const codes =
            int8_codes.rows + static_cast<std::size_t>(row) * int8_codes.stride;
        const std::uint32_t width =
            int8_codes.stride - static_cast<std::uint32_t>(sizeof(planes::Int8Bounds));
        float longest = 0;
        for (unsigned i = lane; i < model.dim; i += kWarp)
            longest = fmaxf(longest, fabsf(values[i]));
        longest = warp_max(longest);
        // Uncovered rows are scored canonically whatever their codes are.
        const bool covered = !isnan(model.inverse_norms[row]);
        const float to_code = covered ? 127.0F / longest : 0;
        double product = 0;
        int squares = 0;
        for (unsigned i = lane; i < width; i += kWarp) {
            const float value = i < model.dim ? values[i] : 0;
            const int code = covered ? max(-127, min(127, __float2int_rn(value * to_code))) : 0;
            product += static_cast<double>(value) * code;
            squares += code * code;
            codes[i] = static_cast<std::int8_t>(code);
        }
        for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
            product += __shfl_xor_sync(kWholeWarp, product, distance);
            squares += __shfl_xor_sync(kWholeWarp, squares, distance);
        }
        if (lane == 0) {
            *reinterpret_cast<planes::Int8Bounds*>(codes + width) =
                covered ? planes::int8_bounds(product, squares, model.norms[row])
                        : planes::Int8Bounds{};
        }
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
