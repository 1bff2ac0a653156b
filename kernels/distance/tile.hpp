// Inner loop of the cpu engine for distances, one per instruction set, chosen at run time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gloved::kernels::distance {

/// Points are packed into panels of `columns` points, shape (dim, columns): component k of all
/// points is contiguous. The last panel is padded with zeros.
struct TileKernel {
    std::string_view name;
    std::size_t columns;  ///< points in a panel
    std::size_t rows;     ///< points that are compared with a panel at once; divides `columns`
    /// Whether this processor and operating system can run it.
    bool (*supported)();

    /// Continues the canonical accumulator (canonical.hpp), in sums[r * stride + c] for r < rows
    /// and c < columns, of point r of `a` and point c of `b` over `depth` components of one block;
    /// from 0 if `begin`. `a` is a component of the first of `rows` points in their panel, `b` that
    /// of a panel's first point.
    void (*add)(const float* a, const float* b, std::size_t depth, float* sums, std::size_t stride,
                bool begin);
};

/// All instruction sets of this build, best first. The last, «baseline», runs on every x86-64.
std::span<const TileKernel* const> all_tile_kernels();

}  // namespace gloved::kernels::distance
