// Sizes of the tiles in which plane_multiply.cu keeps a plane in shared memory. The launch
// allocates by them, and the kernel finds its data by them.
//
// A tile is consecutive groups of the plane. One tensor core instruction multiplies kDigitStep
// components, and there are kernels only for a few numbers of instructions per row. So a kernel may
// read past a group's codes, and multiplies those bytes by zeros. A tile needs room for that behind
// its last group.
#pragma once

#include <cstdint>

#include "kernels/canonical.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// Number of components of a row that one instruction multiplies.
inline constexpr std::uint32_t kDigitStep = 32;
/// Number of the plane's steps that one instruction multiplies.
inline constexpr std::uint32_t kStepsOfProduct = kDigitStep / planes::kStepDims;
/// The numbers of instructions per row for which there are kernels, ascending.
inline constexpr std::uint32_t kProductCounts[] = {1, 2, 4, 7, 10};
inline constexpr std::uint32_t kMaxProducts = 10;
/// Number of tiles in shared memory: one is multiplied while the next is loaded.
inline constexpr std::uint32_t kTileBuffers = 2;

/// Number of instructions per row of the kernel that serves rows of `steps` steps; 0: none does.
constexpr std::uint32_t products_for(std::uint32_t steps) {
    for (const std::uint32_t products : kProductCounts) {
        if (products * kStepsOfProduct >= steps) return products;
    }
    return 0;
}

/// Bytes of a group: its codes, then the projections and residuals of its rows.
GLOVED_HOST_DEVICE constexpr std::uint32_t tile_group_bytes(std::uint32_t steps) {
    return (steps + 1) * static_cast<std::uint32_t>(planes::kStepBytes);
}

/// Bytes of a tile of `groups` groups, with the room behind the last one for a kernel of `products`
/// instructions per row.
GLOVED_HOST_DEVICE constexpr std::uint32_t tile_bytes(std::uint32_t steps, std::uint32_t products,
                                                      std::uint32_t groups) {
    const std::uint32_t group = tile_group_bytes(steps);
    const std::uint32_t read =
        products * kStepsOfProduct * static_cast<std::uint32_t>(planes::kStepBytes);
    return groups * group + (read > group ? read - group : 0);
}

}  // namespace gloved::kernels::cuda
