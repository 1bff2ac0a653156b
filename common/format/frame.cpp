#include "common/format/frame.hpp"

#include <string>
#include <utility>

#include "common/error_with.hpp"

namespace gloved::format {
namespace {

constexpr std::size_t kAtMagic = 0;
constexpr std::size_t kAtVersion = 8;
constexpr std::size_t kAtHeaderBytes = 12;
constexpr std::size_t kAtRows = 16;
constexpr std::size_t kAtDim = 24;
constexpr std::size_t kAtGeneration = 32;
constexpr std::size_t kAtFileBytes = 56;
constexpr std::size_t kAtHeaderChecksum = kHeaderBytes - 8;

}  // namespace

HeaderBytes begin_header(const FileKind& kind, const Frame& frame) {
    HeaderBytes bytes{};
    std::memcpy(bytes.data() + kAtMagic, kind.magic.data(), kind.magic.size());
    put(bytes, kAtVersion, kind.version);
    put(bytes, kAtHeaderBytes, static_cast<std::uint32_t>(kHeaderBytes));
    put(bytes, kAtRows, frame.rows);
    put(bytes, kAtDim, frame.dim);
    put(bytes, kAtGeneration, frame.generation);
    put(bytes, kAtFileBytes, frame.file_bytes);
    return bytes;
}

void seal_header(HeaderBytes& bytes) {
    put(bytes, kAtHeaderChecksum, checksum(std::span(bytes).first(kAtHeaderChecksum)));
}

Result<Frame> open_header(const FileKind& kind, std::span<const std::byte> bytes) {
    if (bytes.size() < kHeaderBytes) {
        return damaged("{} bytes are too few for a header of {}", bytes.size(), kHeaderBytes);
    }
    bytes = bytes.first(kHeaderBytes);
    if (std::memcmp(bytes.data() + kAtMagic, kind.magic.data(), kind.magic.size()) != 0) {
        return damaged("not a gloved {} file (the first {} bytes differ)", kind.name,
                       kind.magic.size());
    }
    const auto version = get<std::uint32_t>(bytes, kAtVersion);
    if (version == __builtin_bswap32(kind.version)) {
        return Error{ErrorCode::unsupported, "written big-endian; gloved files are little-endian"};
    }
    const auto stored = get<std::uint64_t>(bytes, kAtHeaderChecksum);
    const auto computed = checksum(bytes.first(kAtHeaderChecksum));
    if (stored != computed) {
        return damaged("the header checksum is {}, the header's bytes give {}", hex(stored),
                       hex(computed));
    }
    if (version != kind.version) {
        return error_with(ErrorCode::unsupported, "{} version {}, this program reads version {}{}",
                          kind.version_name, version, kind.version, kind.version_remedy);
    }
    if (get<std::uint32_t>(bytes, kAtHeaderBytes) != kHeaderBytes)
        return damaged("wrong header size");
    const Frame frame{get<std::uint64_t>(bytes, kAtRows), get<std::uint32_t>(bytes, kAtDim),
                      get<std::uint64_t>(bytes, kAtGeneration),
                      get<std::uint64_t>(bytes, kAtFileBytes)};
    if (frame.rows == 0 || frame.rows > kMaxRows)
        return damaged("impossible row count {}", frame.rows);
    if (frame.dim == 0 || frame.dim > kMaxDim) return damaged("impossible dimension {}", frame.dim);
    return frame;
}

}  // namespace gloved::format
