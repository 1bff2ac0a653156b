// The inner loop of the cpu's distances, one for each instruction set, chosen at run time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace gloved::kernels::distance {

/// Points lie in panels: `columns` points each, shape (dim, columns), so that component k of all of
/// them stands side by side. Of a last panel that is not full the rest is zeros.
struct TileKernel {
    std::string_view name;
    std::size_t columns;  ///< points in a panel
    std::size_t rows;     ///< points that meet a panel at once, as many sums are held in registers;
                          ///< divides `columns`
    /// Whether this processor and operating system can run it.
    bool (*supported)();

    /// sums[r * stride + c] for r < rows, c < columns: goes on with the canonical acc
    /// (canonical.hpp) of point r of `a` and point c of `b` over `depth` components, all of one
    /// block; from 0 where `begin`. `a` is the component of the first of `rows` points in their
    /// panel, `b` that of a panel's first point.
    void (*add)(const float* a, const float* b, std::size_t depth, float* sums, std::size_t stride,
                bool begin);
};

/// All instruction sets of this build, best first. The last one, «baseline», runs on every x86-64.
std::span<const TileKernel* const> all_tile_kernels();

}  // namespace gloved::kernels::distance
