// Layout of a model's planes file, shared by reader and writer. FORMAT.md beside this file
// specifies it; docs/certified-search.md says what the numbers are for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::format {

inline constexpr const char* kPlanesFile = "planes";
/// Name of a planes file until it is complete.
inline constexpr const char* kNewPlanesFile = "planes.new";

/// Like kMagic.
inline constexpr std::array<unsigned char, 8> kPlanesMagic = {0x8E, 'G',  'L',  'P',
                                                              '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kPlanesVersion = 1;
inline constexpr std::uint32_t kPlaneBits = 4;

/// Rows of a group: the lanes of a 512-bit vector of 32-bit sums, and the rows of a tensor core's
/// tile.
inline constexpr std::size_t kGroupRows = 16;
/// Components per row in the 64 bytes of a step: four in the low halves of bytes, four in the high
/// halves.
inline constexpr std::size_t kStepDims = 8;
inline constexpr std::size_t kStepBytes = 64;

/// Layout of a plane, in memory as on disk. A group is `steps()` times 64 bytes, then the 16
/// projections and the 16 residuals of its rows, uint16 each. Byte 4 r + i of step s holds the
/// codes of row r for components 8 s + i (low half) and 8 s + 4 + i (high half). Padding codes, in
/// components and in rows, are 0; so is all of a row whose norm is outside 2^±60. Nothing overflows
/// for rows <= kMaxRows and dim <= kMaxDim.
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
    /// Size of header, groups and final padding.
    std::uint64_t file_bytes() const;
};

/// Encodes the header, including its checksum. `header` must be one that `decode_planes_header`
/// accepts.
std::array<std::byte, kHeaderBytes> encode_planes_header(const PlanesHeader& header);

/// Decodes a header and checks it as far as possible without the groups: magic, version, header
/// checksum, limits, and the sizes that rows and dim imply. Errors: damaged or unsupported, without
/// the path, which the caller adds.
Result<PlanesHeader> decode_planes_header(std::span<const std::byte> bytes);

}  // namespace gloved::format
