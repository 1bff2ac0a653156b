// The layout of code tiles, which launch_build_code_tiles writes and launch_code_pass reads.
//
// Tensor cores read an operand from shared memory as core matrices: 8 rows of 16 bytes each, one
// after the other. A tile of n rows is stored so that one bulk copy of it is ready for them: first
// bytes 0 to 15 of all n rows, then bytes 16 to 31 of all rows, and so on. So core matrices that
// are neighbours along the rows are kCoreBytes apart, and neighbours along the components n * 16.
// The queries' digits lie in the same way, in blocks of kCodeBlockQueries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/canonical.hpp"

namespace gloved::kernels::cuda {

/// Rows of a tile.
inline constexpr std::uint32_t kCodeTileRows = 128;
/// Queries of a block.
inline constexpr std::uint32_t kCodeBlockQueries = 64;
/// Neighbouring bytes of a row in a tile.
inline constexpr std::uint32_t kCoreWidth = 16;
/// Bytes of a core matrix.
inline constexpr std::uint32_t kCoreBytes = 8 * kCoreWidth;
/// Components that one instruction multiplies.
inline constexpr std::uint32_t kCodeStep = 32;
/// Largest width for which a block copies whole tiles, and keeps the digits of its queries.
inline constexpr std::uint32_t kMaxWholeWidth = 320;

/// Bytes of a row's codes in a tile: dim, padded with zeros.
constexpr std::uint32_t code_width(std::uint32_t dim) {
    return (dim + kCodeStep - 1) / kCodeStep * kCodeStep;
}

/// Number of tiles for that many places.
constexpr std::uint32_t code_tiles(std::size_t places) {
    return static_cast<std::uint32_t>((places + kCodeTileRows - 1) / kCodeTileRows);
}

/// Offset of byte `i` of row `row` in a tile of `rows` rows.
GLOVED_HOST_DEVICE constexpr std::uint32_t code_offset(std::uint32_t rows, std::uint32_t row,
                                                       std::uint32_t i) {
    return (i / kCoreWidth * rows + row) * kCoreWidth + i % kCoreWidth;
}

/// The sample from which a pass takes its first thresholds is every n-th tile: n is the largest
/// power of two that leaves kMinSampleTiles tiles, or 1.
inline constexpr std::uint32_t kMinSampleTiles = 256;
constexpr std::uint32_t code_sample_step(std::uint32_t tiles) {
    std::uint32_t step = 1;
    while (tiles / (2 * step) >= kMinSampleTiles) step *= 2;
    return step;
}
/// Number of tiles of the sample.
constexpr std::uint32_t code_sample_tiles(std::uint32_t tiles) {
    const std::uint32_t step = code_sample_step(tiles);
    return (tiles + step - 1) / step;
}
/// Keys that each tile of the sample gives for a query: one per thread that holds its sums.
inline constexpr std::uint32_t kKeysOfTile = 4;
/// The place of row `r` of the rows of a tile whose sums a thread holds. Of neighbouring threads,
/// each of kKeysOfTile has other rows.
GLOVED_HOST_DEVICE constexpr std::uint32_t place_of(std::uint32_t tile, unsigned r,
                                                    unsigned thread) {
    return tile * kCodeTileRows + r / 2 * 8 + thread % kKeysOfTile * 2 + r % 2;
}
/// Number of keys of a query.
constexpr std::uint32_t code_sample_keys(std::uint32_t tiles) {
    return code_sample_tiles(tiles) * kKeysOfTile;
}
/// The largest number of keys of a query for that many tiles or fewer.
constexpr std::uint32_t max_code_sample_keys(std::uint32_t tiles) {
    return (tiles < 2 * kMinSampleTiles ? tiles : 2 * kMinSampleTiles) * kKeysOfTile;
}

}  // namespace gloved::kernels::cuda
