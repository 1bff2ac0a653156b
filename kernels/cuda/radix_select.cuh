// The value that so many of some values reach: how thresholds are found on the device.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_math.cuh"

namespace gloved::kernels::cuda {

/// A threshold is sought by its leading bits: what is left out lowers it by less than 2^-11 of
/// itself. Where it is a first guess only, 2^-5 will do.
inline constexpr int kMinBit = 12;
inline constexpr int kMinGuessBit = 18;

/// float32 as unsigned integers in the same order, -infinity at the lower end.
__device__ inline std::uint32_t ordered(float value) {
    const auto bits = static_cast<std::uint32_t>(__float_as_int(value));
    return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

__device__ inline float from_ordered(std::uint32_t key) {
    return __int_as_float(static_cast<int>((key & 0x80000000U) != 0 ? key & 0x7FFFFFFFU : ~key));
}

/// A value that `want` of `count` values reach, the largest such value or a little less; -infinity
/// where fewer than `want` are above that. The whole block of kThreads threads calls it and gets
/// it. Each thread keeps the largest values of its shares, then the want-th largest of those is
/// found bit by bit, by counting.
template <unsigned kThreads, unsigned kKept, int kLast = kMinBit>
__device__ float kth_largest_lower_bound(const float* __restrict__ values, std::uint32_t count,
                                         std::uint32_t want) {
    float best[kKept];
#pragma unroll
    for (float& value : best) value = minus_infinity();
    for (std::uint32_t begin = 0; begin < count; begin += kKept * kThreads) {
#pragma unroll
        for (unsigned j = 0; j < kKept; ++j) {
            const std::uint32_t i = begin + j * kThreads + threadIdx.x;
            if (i < count) best[j] = fmaxf(best[j], values[i]);
        }
    }

    __shared__ std::uint32_t counts[2][kWarp];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    if (warp == 0) counts[0][lane] = counts[1][lane] = 0;
    __syncthreads();
    std::uint32_t found = 0;
    for (int bit = 31; bit >= kLast; --bit) {
        const std::uint32_t candidate = found | (std::uint32_t{1} << bit);
        std::uint32_t reaching = 0;
#pragma unroll
        for (const float value : best) reaching += ordered(value) >= candidate ? 1 : 0;
        reaching = warp_sum(reaching);
        // Two sets of counts, so that one barrier a bit is enough.
        if (lane == 0) counts[bit % 2][warp] = reaching;
        __syncthreads();
        if (warp_sum(counts[bit % 2][lane]) >= want) found = candidate;
    }
    // Fewer than `want` above -infinity: then what was found is the cut key of -infinity or less.
    return found > ordered(minus_infinity()) ? from_ordered(found) : minus_infinity();
}

}  // namespace gloved::kernels::cuda
