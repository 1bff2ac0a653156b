// The grid of plane_query: its blocks, how many units of rows a warp takes, and where a block keeps
// their upper bounds. The launch, the kernel and the memory of a shard go by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launches.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// Warps of a block. There is one block a multiprocessor, since all blocks wait for one another.
inline constexpr std::uint32_t kPlaneWarps = 12;
static_assert(kUnitRows == 2 * planes::kGroupRows);
/// Shared memory of plane_query beside what PlaneGrid::dynamic_bytes says, rounded up.
inline constexpr std::size_t kPlaneStaticShared = std::size_t{20} << 10;

/// How plane_query divides units among warps. Some multiprocessors get more of the memory's
/// bandwidth than others. So the first `fixed_rounds` units of each warp are its own; the rest are
/// taken one by one, by warps that are done with theirs.
struct PlaneGrid {
    std::uint32_t blocks = 0;
    std::uint32_t fixed_rounds = 0;
    std::uint32_t max_rounds = 0;  ///< units that a warp has room for
    bool shares_bounds = false;    ///< whether a block keeps bounds in shared memory, in place of
                                   ///< Workspace::uppers

    /// For a query over `units` units of a plane with that many steps.
    PlaneGrid(std::size_t units, std::size_t steps, const DeviceShape& shape) {
        const auto divided_up = [](std::size_t value, std::size_t by) {
            return (value + by - 1) / by;
        };
        const std::size_t wanted = std::max(divided_up(units, kPlaneWarps), std::size_t{1});
        const std::size_t warps =
            std::min(wanted, static_cast<std::size_t>(shape.processors)) * kPlaneWarps;
        // Fewer units never need more room, so that memory for all rows serves every range.
        const std::size_t rounds = divided_up(units, warps);
        const std::size_t fixed = rounds * 3 / 4;
        blocks = static_cast<std::uint32_t>(warps / kPlaneWarps);
        fixed_rounds = static_cast<std::uint32_t>(fixed);
        max_rounds = static_cast<std::uint32_t>(fixed + 2 * (rounds - fixed));
        shares_bounds = true;
        shares_bounds = kPlaneStaticShared + dynamic_bytes(steps) <= shape.shared_bytes;
    }

    /// Bytes of the query's digits, the lists of units and, where they are there, bounds in shared
    /// memory.
    std::size_t dynamic_bytes(std::size_t steps) const {
        const std::size_t digits = steps * 2 * planes::kStepDims;
        const std::size_t units = std::size_t{max_rounds} * kPlaneWarps * sizeof(std::uint32_t);
        return digits + units + (shares_bounds ? block_bounds() * sizeof(float) : 0);
    }
    /// Upper bounds that the blocks write to Workspace::uppers.
    std::size_t uppers() const { return shares_bounds ? 0 : blocks * block_bounds(); }
    /// Upper bounds that a block has room for.
    GLOVED_HOST_DEVICE std::size_t block_bounds() const {
        return std::size_t{max_rounds} * kPlaneWarps * kUnitRows;
    }
};

}  // namespace gloved::kernels::cuda
