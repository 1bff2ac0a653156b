// The inner loop of the cpu engine for distances, one per instruction set, chosen at run time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gloved::kernels::distance {

/// The loop of one instruction set. It reads points from panels of `columns` points each, shape
/// (dim, columns): component k of all points of a panel is contiguous. The last panel is padded
/// with zeros.
struct TileKernel {
    std::string_view name;
    std::size_t columns;  ///< points in a panel
    std::size_t rows;     ///< points that are compared with a panel at once; divides `columns`
    /// Whether this processor and operating system can run it.
    bool (*supported)();

    /// For r < rows and c < columns, adds to sums[r * stride + c] the squared differences of point
    /// r of `a` and point c of `b` over `depth` components, as canonical.hpp does within a block.
    /// `begin`: starts from 0 instead of the old sums. `a` points into a panel, to the first of
    /// `rows` points' first component to add; `b` points to the same component of the first point
    /// of another panel.
    void (*add)(const float* a, const float* b, std::size_t depth, float* sums, std::size_t stride,
                bool begin);
};

/// The loops of all instruction sets of this build, best first. The last, «baseline», runs
/// everywhere.
std::span<const TileKernel* const> all_tile_kernels();

}  // namespace gloved::kernels::distance
