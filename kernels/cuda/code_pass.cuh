// What the two halves of a pass over code tiles share: code_pass.cu finds thresholds and answers;
// code_multiply_wgmma.cu and code_multiply_mma.cu multiply codes, each for some devices.
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

    /// `width`: bytes of a row's codes.
    CodeGrid(std::uint32_t count, std::uint32_t width, const DeviceShape& shape) {
        const std::uint32_t blocks = (count + kCodeBlockQueries - 1) / kCodeBlockQueries;
        // Tiles in pieces come with the digits for each piece, which warpgroups that take turns
        // would each have to copy.
        columns = blocks > 2 || width > kMaxWholeWidth ? kWarpgroups : blocks;
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

/// What a launch multiplies, beside its model and queries, and what becomes of the sums.
struct Job {
    CodePart part;
    CodeGrid grid;
    bool sample = false;       ///< writes keys; otherwise appends the rows that reach a query's
                               ///< cutoff to its lists, which begin empty
    bool filtered = false;     ///< whether any query's filter excludes rows
    std::uint32_t stages = 0;  ///< parts of a block's shared memory that are filled in turn; set
                               ///< by the functions below
};

/// Multiplies the tiles of a part with all queries.
cudaError_t multiply_by_wgmma(const DeviceModel& model, const DeviceQueries& queries,
                              const Job& job, const CodeWorkspace& work, const DeviceShape& shape,
                              cudaStream_t stream);
/// As multiply_by_wgmma, on every device.
cudaError_t multiply_by_mma(const DeviceModel& model, const DeviceQueries& queries, const Job& job,
                            const CodeWorkspace& work, const DeviceShape& shape,
                            cudaStream_t stream);

}  // namespace gloved::kernels::cuda
