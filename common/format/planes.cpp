#include "common/format/planes.hpp"

#include <fmt/format.h>

#include <cstring>

#include "common/format/fields.hpp"

namespace gloved::format {
namespace {

// Offsets of the fields; FORMAT.md has the same table.
constexpr std::size_t kAtMagic = 0;
constexpr std::size_t kAtVersion = 8;
constexpr std::size_t kAtHeaderBytes = 12;
constexpr std::size_t kAtRows = 16;
constexpr std::size_t kAtDim = 24;
constexpr std::size_t kAtBits = 28;
constexpr std::size_t kAtGeneration = 32;
constexpr std::size_t kAtGroupsBytes = 40;
constexpr std::size_t kAtGroupsChecksum = 48;
constexpr std::size_t kAtFileBytes = 56;
constexpr std::size_t kAtHeaderChecksum = kHeaderBytes - 8;

Error damaged(std::string what) { return {ErrorCode::damaged, std::move(what)}; }

}  // namespace

std::uint64_t PlanesHeader::file_bytes() const {
    const std::uint64_t end = kHeaderBytes + shape().bytes();
    return (end + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

std::array<std::byte, kHeaderBytes> encode_planes_header(const PlanesHeader& header) {
    std::array<std::byte, kHeaderBytes> bytes{};
    std::memcpy(bytes.data() + kAtMagic, kPlanesMagic.data(), kPlanesMagic.size());
    put(bytes, kAtVersion, kPlanesVersion);
    put(bytes, kAtHeaderBytes, static_cast<std::uint32_t>(kHeaderBytes));
    put(bytes, kAtRows, header.rows);
    put(bytes, kAtDim, header.dim);
    put(bytes, kAtBits, kPlaneBits);
    put(bytes, kAtGeneration, header.generation);
    put(bytes, kAtGroupsBytes, static_cast<std::uint64_t>(header.shape().bytes()));
    put(bytes, kAtGroupsChecksum, header.checksum);
    put(bytes, kAtFileBytes, header.file_bytes());
    put(bytes, kAtHeaderChecksum, checksum(std::span(bytes).first(kAtHeaderChecksum)));
    return bytes;
}

Result<PlanesHeader> decode_planes_header(std::span<const std::byte> bytes) {
    if (bytes.size() < kHeaderBytes) {
        return damaged(fmt::format("{} bytes are too few for a header of {}", bytes.size(), kHeaderBytes));
    }
    bytes = bytes.first(kHeaderBytes);
    if (std::memcmp(bytes.data() + kAtMagic, kPlanesMagic.data(), kPlanesMagic.size()) != 0) {
        return damaged("not a gloved planes file (the first 8 bytes differ)");
    }
    const auto stored = get<std::uint64_t>(bytes, kAtHeaderChecksum);
    const auto computed = checksum(bytes.first(kAtHeaderChecksum));
    if (stored != computed) {
        return damaged(
            fmt::format("the header checksum is {}, the header's bytes give {}", hex(stored), hex(computed)));
    }
    const auto version = get<std::uint32_t>(bytes, kAtVersion);
    if (version != kPlanesVersion) {
        return Error{ErrorCode::unsupported,
                     fmt::format("planes version {}, this program reads version {}", version, kPlanesVersion)};
    }
    if (get<std::uint32_t>(bytes, kAtHeaderBytes) != kHeaderBytes) return damaged("wrong header size");
    PlanesHeader header;
    header.rows = get<std::uint64_t>(bytes, kAtRows);
    header.dim = get<std::uint32_t>(bytes, kAtDim);
    header.generation = get<std::uint64_t>(bytes, kAtGeneration);
    header.checksum = get<std::uint64_t>(bytes, kAtGroupsChecksum);
    if (header.rows == 0 || header.rows > kMaxRows) return damaged(fmt::format("impossible row count {}", header.rows));
    if (header.dim == 0 || header.dim > kMaxDim) return damaged(fmt::format("impossible dimension {}", header.dim));
    const auto bits = get<std::uint32_t>(bytes, kAtBits);
    if (bits != kPlaneBits) {
        return Error{ErrorCode::unsupported,
                     fmt::format("{} bits a component, this program reads {}", bits, kPlaneBits)};
    }
    const auto groups_bytes = get<std::uint64_t>(bytes, kAtGroupsBytes);
    const auto file_bytes = get<std::uint64_t>(bytes, kAtFileBytes);
    if (groups_bytes != header.shape().bytes() || file_bytes != header.file_bytes()) {
        return damaged(fmt::format("{} bytes of groups in a file of {}; {} × {} needs {} in {}", groups_bytes,
                                   file_bytes, header.rows, header.dim, header.shape().bytes(), header.file_bytes()));
    }
    return header;
}

}  // namespace gloved::format
