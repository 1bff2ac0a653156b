// The facts about a model's planes file that reader and writer share. FORMAT.md beside this file is
// the specification, and docs/certified-search.md says what the numbers are for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::format {

inline constexpr const char* kPlanesFile = "planes";
/// What a planes file is called in the model's directory until it is whole.
inline constexpr const char* kNewPlanesFile = "planes.new";

/// As kMagic, for its reasons.
inline constexpr std::array<unsigned char, 8> kPlanesMagic = {0x8E, 'G',  'L',  'P',
                                                              '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kPlanesVersion = 1;
inline constexpr std::uint32_t kPlaneBits = 4;

/// Rows that lie together: lanes of a 512-bit vector of 32-bit sums, and the rows of a tensor
/// core's tile.
inline constexpr std::size_t kGroupRows = 16;
/// Components that 64 bytes hold of a group's rows: four in the low halves of bytes, four in the
/// high ones.
inline constexpr std::size_t kStepDims = 8;
inline constexpr std::size_t kStepBytes = 64;

/// Where things lie, in memory as on disk. A group is `steps()` times 64 bytes, then the 16
/// projections and the 16 residuals of its rows, uint16 each. Byte 4 r + i of step s holds, of row
/// r, the codes of components 8 s + i (low half) and 8 s + 4 + i (high half). Codes beyond dim, and
/// those of rows beyond the last, are 0; so is all of a row whose norm lies outside 2^±60. Nothing
/// overflows for rows <= kMaxRows and dim <= kMaxDim.
struct PlaneShape {
    std::size_t rows = 0;
    std::size_t dim = 0;

    std::size_t steps() const { return (dim + kStepDims - 1) / kStepDims; }
    std::size_t group_bytes() const { return (steps() + 1) * kStepBytes; }
    std::size_t groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
    std::size_t bytes() const { return groups() * group_bytes(); }
};

/// The content of a planes file's first 4096 bytes.
struct PlanesHeader {
    std::uint64_t rows = 0;
    std::uint32_t dim = 0;
    std::uint64_t generation = 0;  ///< of the model whose plane it is
    std::uint64_t checksum = 0;    ///< of the groups

    PlaneShape shape() const { return {static_cast<std::size_t>(rows), dim}; }
    /// Header, groups and the zeros behind them.
    std::uint64_t file_bytes() const;
};

/// The header's bytes, header checksum included. `header` must be one that `decode_planes_header`
/// accepts.
std::array<std::byte, kHeaderBytes> encode_planes_header(const PlanesHeader& header);

/// Reads a header and checks all that can be checked without the groups: magic, version, header
/// checksum, limits, and that the sizes are those that rows and dim ask for. Errors: damaged or
/// unsupported, without the path (the caller knows it).
Result<PlanesHeader> decode_planes_header(std::span<const std::byte> bytes);

}  // namespace gloved::format
