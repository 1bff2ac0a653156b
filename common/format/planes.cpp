#include "common/format/planes.hpp"

#include <string>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/frame.hpp"

namespace gloved::format {
namespace {

constexpr FileKind kPlanes = {"planes", kPlanesMagic, kPlanesVersion, "planes", ""};

// Offsets of the fields that only planes headers have; FORMAT.md has the same table.
constexpr std::size_t kAtBits = 28;
constexpr std::size_t kAtGroupsBytes = 40;
constexpr std::size_t kAtGroupsChecksum = 48;

}  // namespace

std::uint64_t PlanesHeader::file_bytes() const { return aligned(kHeaderBytes + shape().bytes()); }

std::array<std::byte, kHeaderBytes> encode_planes_header(const PlanesHeader& header) {
    HeaderBytes bytes =
        begin_header(kPlanes, {header.rows, header.dim, header.generation, header.file_bytes()});
    put(bytes, kAtBits, kPlaneBits);
    put(bytes, kAtGroupsBytes, static_cast<std::uint64_t>(header.shape().bytes()));
    put(bytes, kAtGroupsChecksum, header.checksum);
    seal_header(bytes);
    return bytes;
}

Result<PlanesHeader> decode_planes_header(std::span<const std::byte> bytes) {
    const auto frame = open_header(kPlanes, bytes);
    if (!frame) return frame.error();
    const PlanesHeader header{frame->rows, frame->dim, frame->generation,
                              get<std::uint64_t>(bytes, kAtGroupsChecksum)};
    const auto bits = get<std::uint32_t>(bytes, kAtBits);
    if (bits != kPlaneBits) {
        return error_with(ErrorCode::unsupported, "{} bits a component, this program reads {}",
                          bits, kPlaneBits);
    }
    const auto groups_bytes = get<std::uint64_t>(bytes, kAtGroupsBytes);
    if (groups_bytes != header.shape().bytes() || frame->file_bytes != header.file_bytes()) {
        return damaged("{} bytes of groups in a file of {}; {} × {} needs {} in {}", groups_bytes,
                       frame->file_bytes, header.rows, header.dim, header.shape().bytes(),
                       header.file_bytes());
    }
    return header;
}

}  // namespace gloved::format
