// Encodes rows and queries as integers, on a GPU (docs/certified-search.md, §4 and §8).
#pragma once

#include <cstdint>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {

/// The largest absolute value of component(0) … component(dim - 1). All threads of a warp call it.
template <class Component>
__device__ float longest_component(const Component& component, std::uint32_t dim, unsigned lane) {
    float longest = 0;
    for (unsigned i = lane; i < dim; i += kWarp)
        longest = fmaxf(longest, fabsf(static_cast<float>(component(i))));
    return warp_max(longest);
}

/// Calls put(i, code) for every i below `width` with the int8 codes of a local row, and returns the
/// row's bounds. Codes from dim on are 0, and so are codes and bounds of uncovered rows, which are
/// scored canonically whatever their codes are. All threads of a warp call it, and each puts a
/// share of the codes.
template <class Put>
__device__ Int8Bounds encode_int8(const DeviceModel& model, std::uint32_t row, unsigned lane,
                                  std::uint32_t width, const Put& put) {
    constexpr int kLargest = planes::kOneByteDigit;
    const float* const values = row_of(model, row);
    const bool covered = bound_covers(model.norms[row]);
    const float longest =
        longest_component([&](std::uint32_t i) { return values[i]; }, model.dim, lane);
    const float to_code = covered ? static_cast<float>(kLargest) / longest : 0;
    double product = 0;
    int squares = 0;
    for (unsigned i = lane; i < width; i += kWarp) {
        const float value = i < model.dim ? values[i] : 0;
        const int code =
            covered ? max(-kLargest, min(kLargest, __float2int_rn(value * to_code))) : 0;
        product += static_cast<double>(value) * code;
        squares += code * code;
        put(i, code);
    }
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
        product += __shfl_xor_sync(kWholeWarp, product, distance);
        squares += __shfl_xor_sync(kWholeWarp, squares, distance);
    }
    return covered ? int8_bounds(product, squares, model.norms[row]) : Int8Bounds{};
}

/// Calls put(i, digit) for every i below `width` with digits of at most `largest` of the query
/// component(0) … component(dim - 1), and returns facts about them, much as make_plane_query does.
/// All threads of a warp call it, and each puts a share of the digits.
template <class Component, class Put>
__device__ planes::DigitFacts query_digits(const Component& component, double norm,
                                           std::uint32_t dim, int largest, unsigned lane,
                                           std::uint32_t width, const Put& put) {
    const float longest = longest_component(component, dim, lane);
    // Digits need not be the nearest integers: the remainder tells what they leave.
    const double to_component = 1 / norm;
    const double scale = static_cast<double>(longest) / norm / largest;
    const double to_digit = 1 / scale;
    double remainder = 0;
    int sum = 0;
    int size = 0;
    for (unsigned i = lane; i < width; i += kWarp) {
        int digit = 0;
        if (i < dim) {
            const double direction = static_cast<double>(component(i)) * to_component;
            digit = max(-largest, min(largest, __double2int_rn(direction * to_digit)));
            const double left = direction - scale * digit;
            remainder += left * left;
            sum += digit;
            size += abs(digit);
        }
        put(i, digit);
    }
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
        remainder += __shfl_xor_sync(kWholeWarp, remainder, distance);
        sum += __shfl_xor_sync(kWholeWarp, sum, distance);
        size += __shfl_xor_sync(kWholeWarp, size, distance);
    }
    return {scale, planes::remainder_bound(remainder), static_cast<double>(sum),
            static_cast<double>(size)};
}

}  // namespace gloved::kernels::cuda
