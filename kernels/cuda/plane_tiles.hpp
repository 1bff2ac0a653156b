// Sizes of plane_multiply's tiles in shared memory, for the launch that allocates it and the kernel
// that divides it.
//
// A tile is consecutive groups of the plane. A kernel multiplies whole instructions, and there are
// kernels for a few numbers of instructions only. So a kernel reads past a group's codes and
// multiplies those bytes by zeros. There must be room for that behind the last group.
#pragma once

#include <cstdint>

#include "kernels/canonical.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// Components of a row that one instruction multiplies.
inline constexpr std::uint32_t kDigitStep = 32;
/// Steps of the plane that one instruction multiplies.
inline constexpr std::uint32_t kStepsOfProduct = kDigitStep / planes::kStepDims;
/// Instructions along a row for which there are kernels, ascending.
inline constexpr std::uint32_t kProductCounts[] = {1, 2, 4, 7, 10};
inline constexpr std::uint32_t kMaxProducts = 10;
/// Tiles in shared memory: one is multiplied while the next one is loaded.
inline constexpr std::uint32_t kTileBuffers = 2;

/// Instructions of the kernel for rows of `steps` steps; 0: there is no such kernel.
constexpr std::uint32_t products_for(std::uint32_t steps) {
    for (const std::uint32_t products : kProductCounts) {
        if (products * kStepsOfProduct >= steps) return products;
    }
    return 0;
}

/// Bytes of one group: its codes, then its rows' bounds.
GLOVED_HOST_DEVICE constexpr std::uint32_t tile_group_bytes(std::uint32_t steps) {
    return (steps + 1) * static_cast<std::uint32_t>(planes::kStepBytes);
}

/// Bytes of a tile of `groups` groups, and of what `products` instructions read behind the last.
GLOVED_HOST_DEVICE constexpr std::uint32_t tile_bytes(std::uint32_t steps, std::uint32_t products,
                                                      std::uint32_t groups) {
    const std::uint32_t group = tile_group_bytes(steps);
    const std::uint32_t read =
        products * kStepsOfProduct * static_cast<std::uint32_t>(planes::kStepBytes);
    return groups * group + (read > group ? read - group : 0);
}

}  // namespace gloved::kernels::cuda
