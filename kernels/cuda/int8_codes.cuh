// Rules rows out by their int8 codes, on a GPU, so that their vectors need not be read
// (docs/certified-search.md, §8; device_math.cuh says what a team is).
#pragma once

#include <cstdint>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Number of 16-byte loads that a thread has in flight.
inline constexpr unsigned kInt8Loads = 3;

/// A query's digits (kernels/planes/cutoff.hpp) for 16 codes of a row: 128 high + low each.
struct Int8Digits {
    uint4 high{0, 0, 0, 0};
    uint4 low{0, 0, 0, 0};
};

/// Adds the products of sixteen pairs of signed bytes to `sum`.
__device__ inline int dot16(uint4 a, uint4 b, int sum) {
    sum = __dp4a(static_cast<int>(a.x), static_cast<int>(b.x), sum);
    sum = __dp4a(static_cast<int>(a.y), static_cast<int>(b.y), sum);
    sum = __dp4a(static_cast<int>(a.z), static_cast<int>(b.z), sum);
    return __dp4a(static_cast<int>(a.w), static_cast<int>(b.w), sum);
}

/// Whether a local row cannot reach the cutoff. A team computes it, and each of its threads gets
/// the result; `lane` is the thread's place in its team. All threads of the warp call it.
/// digits_of(v) returns the digits for the row's codes from 16 v on; 0 beyond the codes.
template <class DigitsOf>
__device__ inline bool int8_rules_out(const DeviceInt8Codes& int8_codes, std::uint32_t row,
                                      unsigned lane, const Int8Cutoff& cutoff,
                                      const DigitsOf& digits_of) {
    static_assert(sizeof(Int8Bounds) == 8);
    const std::uint32_t count = int8_codes.stride / kInt8Step;
    const auto* const from = reinterpret_cast<const uint4*>(
        int8_codes.rows + static_cast<std::size_t>(row) * int8_codes.stride);
    int high = 0;
    int low = 0;
    Int8Bounds bounds;
    for (std::uint32_t begin = 0; begin < count; begin += kInt8Loads * kCanonicalLanes) {
        uint4 codes[kInt8Loads];
#pragma unroll
        for (unsigned j = 0; j < kInt8Loads; ++j) {
            const std::uint32_t v = begin + j * kCanonicalLanes + lane;
            codes[j] = v < count ? from[v] : uint4{0, 0, 0, 0};
        }
#pragma unroll
        for (unsigned j = 0; j < kInt8Loads; ++j) {
            const std::uint32_t v = begin + j * kCanonicalLanes + lane;
            const Int8Digits digits = digits_of(v);
            high = dot16(codes[j], digits.high, high);
            low = dot16(codes[j], digits.low, low);
            // The bounds are in the last 8 bytes, where digits are 0.
            if (v == count - 1) {
                bounds = {__int_as_float(static_cast<int>(codes[j].z)),
                          __int_as_float(static_cast<int>(codes[j].w))};
            }
        }
    }
    int sum = 128 * high + low;
    for (unsigned distance = kCanonicalLanes / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(kWholeWarp, sum, distance);
    }
    const unsigned holder = (count - 1) % kCanonicalLanes;
    bounds = {__shfl_sync(kWholeWarp, bounds.projection, holder, kCanonicalLanes),
              __shfl_sync(kWholeWarp, bounds.residual, holder, kCanonicalLanes)};
    return int8_rejects(sum, bounds, cutoff);
}

}  // namespace gloved::kernels::cuda
