// What code_pass.cu and code_multiply.cu share: the two halves of a pass over code tiles.
// code_pass.cu finds thresholds and answers; code_multiply.cu multiplies codes.
#pragma once

#include <cstdint>

#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Some of a shard's code tiles.
struct CodePart {
    /// rest: all tiles but every 2^shift-th; otherwise every 2^shift-th.
    bool rest = false;
    std::uint32_t shift = 0;
    std::uint32_t tiles = 0;  ///< number of tiles in the part
};

/// How a pass of `count` queries is spread over blocks. A block keeps the digits of its queries, a
/// panel, and multiplies them with every ranges-th tile of a part. Its warpgroups take a block of
/// kCodeBlockQueries queries each. If the panel has fewer of these, some take the same queries, and
/// take tiles in turn.
struct CodeGrid {
    static constexpr std::uint32_t kWarpgroups = 4;
    /// Threads of a warp that share a row of sums, a query's.
    static constexpr std::uint32_t kThreadsOfQuery = 4;

    std::uint32_t columns = 0;  ///< blocks of queries in a panel: 1, 2 or 4
    std::uint32_t panels = 0;
    std::uint32_t ranges = 0;

    CodeGrid(std::uint32_t count, const DeviceShape& shape) {
        const std::uint32_t blocks = (count + kCodeBlockQueries - 1) / kCodeBlockQueries;
        columns = blocks > 2 ? kWarpgroups : blocks;
        panels = (blocks + columns - 1) / columns;
        const auto processors = static_cast<std::uint32_t>(shape.processors);
        ranges = processors > panels ? processors / panels : 1;
    }
    /// Number of queries, with those that fill the last panel.
    GLOVED_HOST_DEVICE std::uint32_t padded() const { return panels * columns * kCodeBlockQueries; }
    /// Warpgroups that take the same queries.
    GLOVED_HOST_DEVICE std::uint32_t turns() const { return kWarpgroups / columns; }
    /// Lists of a query, which are neighbours in CodeWorkspace.
    GLOVED_HOST_DEVICE std::uint32_t lists() const { return ranges * turns() * kThreadsOfQuery; }
};

/// Multiplies the tiles of a sample with all queries, and writes keys.
cudaError_t multiply_sample(const DeviceModel& model, const DeviceQueries& queries,
                            const CodePart& part, const CodeGrid& grid, const CodeWorkspace& work,
                            const DeviceShape& shape, cudaStream_t stream);
/// Multiplies the tiles of a part with all queries, and appends the rows that reach a query's
/// cutoff to its lists, which begin empty.
cudaError_t multiply_to_lists(const DeviceModel& model, const DeviceQueries& queries,
                              const CodePart& part, const CodeGrid& grid, const CodeWorkspace& work,
                              const DeviceShape& shape, cudaStream_t stream);

}  // namespace gloved::kernels::cuda
