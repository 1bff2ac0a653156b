// Radix select on a GPU: the k-th largest of many values, rounded down. The cuda engine finds
// thresholds by it.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_math.cuh"

namespace gloved::kernels::cuda {

/// The lowest bit of the result that is searched: the bits below it are 0, which lowers the result
/// by less than 2^-11 of itself.
inline constexpr int kMinBit = 12;

/// Maps a float32 to an unsigned integer, so that the order stays the same; from_ordered is the
/// inverse.
__device__ inline std::uint32_t ordered(float value) {
    const auto bits = static_cast<std::uint32_t>(__float_as_int(value));
    return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

__device__ inline float from_ordered(std::uint32_t key) {
    return __int_as_float(static_cast<int>((key & 0x80000000U) != 0 ? key & 0x7FFFFFFFU : ~key));
}

/// Radix select: the k-th largest of the values value_at(0) … value_at(count - 1), or less;
/// -infinity if fewer than k of them are above -infinity. All kThreads threads of the block call it
/// and get the result; value_at is called once for each value. Each thread splits its values into
/// kKept shares and keeps the largest of each. The k-th largest of what all threads keep is found
/// bit by bit, down to bit kMinBit, by counting.
template <unsigned kThreads, unsigned kKept, class ValueAt>
__device__ float kth_largest_lower_bound_of(std::uint32_t count, std::uint32_t k,
                                            const ValueAt& value_at) {
    float best[kKept];
#pragma unroll
    for (float& value : best) value = minus_infinity();
    for (std::uint32_t begin = 0; begin < count; begin += kKept * kThreads) {
#pragma unroll
        for (unsigned j = 0; j < kKept; ++j) {
            const std::uint32_t i = begin + j * kThreads + threadIdx.x;
            if (i < count) best[j] = fmaxf(best[j], value_at(i));
        }
    }

    __shared__ std::uint32_t counts[2][kWarp];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    if (warp == 0) counts[0][lane] = counts[1][lane] = 0;
    __syncthreads();
    std::uint32_t found = 0;
    for (int bit = 31; bit >= kMinBit; --bit) {
        const std::uint32_t candidate = found | (std::uint32_t{1} << bit);
        std::uint32_t reaching = 0;
#pragma unroll
        for (const float value : best) reaching += ordered(value) >= candidate ? 1 : 0;
        reaching = warp_sum(reaching);
        // Two sets of counts need one barrier a bit only.
        if (lane == 0) counts[bit % 2][warp] = reaching;
        __syncthreads();
        if (warp_sum(counts[bit % 2][lane]) >= k) found = candidate;
    }
    // With fewer than k values above -infinity, `found` is at most the bits of -infinity.
    return found > ordered(minus_infinity()) ? from_ordered(found) : minus_infinity();
}

/// The same of an array.
template <unsigned kThreads, unsigned kKept>
__device__ float kth_largest_lower_bound(const float* __restrict__ values, std::uint32_t count,
                                         std::uint32_t k) {
    return kth_largest_lower_bound_of<kThreads, kKept>(count, k,
                                                       [&](std::uint32_t i) { return values[i]; });
}

}  // namespace gloved::kernels::cuda
