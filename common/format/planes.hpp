// Layout of a model's planes file: what Model (reader), PlanesWriter and the engines share.
// FORMAT.md beside this file specifies it; docs/certified-search.md says what the numbers are for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::format {

inline constexpr const char* kPlanesFile = "planes";
/// Name of a planes file in a published model until it is complete.
inline constexpr const char* kNewPlanesFile = "planes.new";

/// First bytes of a planes file, made as kMagic.
inline constexpr std::array<unsigned char, 8> kPlanesMagic = {0x8E, 'G',  'L',  'P',
                                                              '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kPlanesVersion = 1;
/// Bits of a code.
inline constexpr std::uint32_t kPlaneBits = 4;

/// Rows in a group, the unit of the layout. That is the number of 32-bit sums in a 512-bit
/// register, and of rows in a tensor core's tile.
inline constexpr std::size_t kGroupRows = 16;
/// A step is 64 bytes with eight components of each row of a group: for each row four bytes, with
/// four components in their low halves and four in their high halves.
inline constexpr std::size_t kStepDims = 8;
inline constexpr std::size_t kStepBytes = 64;

/// Shape and layout of a plane, in memory as on disk: groups of kGroupRows rows. A group is
/// `steps()` steps of 64 bytes, then the 16 projections and the 16 residuals of its rows, uint16
/// each. Byte 4 r + i of step s holds the codes of the group's row r for components 8 s + i (low
/// half) and 8 s + 4 + i (high half). Codes that fill up the last step and the last group are 0; so
/// are codes, projection and residual of a row whose norm is outside 2^±60. Nothing overflows for
/// rows <= kMaxRows and dim <= kMaxDim.
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
    std::uint64_t generation = 0;  ///< of the model to which the plane belongs
    std::uint64_t checksum = 0;    ///< XXH3-64 of the groups

    PlaneShape shape() const { return {static_cast<std::size_t>(rows), dim}; }
    /// Size of the file: header, groups and padding at the end.
    std::uint64_t file_bytes() const;
};

/// Encodes the header and adds its own checksum. The caller sets all fields to values that
/// `decode_planes_header` would accept; this is not checked.
std::array<std::byte, kHeaderBytes> encode_planes_header(const PlanesHeader& header);

/// Decodes a header and checks everything that needs no groups: magic, version, header checksum,
/// limits, and the sizes that rows and dim imply. Errors: damaged or unsupported; the caller adds
/// the path to the message.
Result<PlanesHeader> decode_planes_header(std::span<const std::byte> bytes);

}  // namespace gloved::format
