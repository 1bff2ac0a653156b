// Encodes, decodes and checks the fields that the headers of the values and planes files share.
// FORMAT.md has their tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::format {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

/// Write and read a field at its offset in bytes. Files and this machine are little-endian
/// (layout.hpp).
template <class T>
void put(std::span<std::byte> bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// What differs between the headers of the two kinds of files.
struct FileKind {
    std::string_view name;  ///< for messages
    std::array<unsigned char, 8> magic;
    std::uint32_t version;
    std::string_view version_name;    ///< what has the version, in the message about another one
    std::string_view version_remedy;  ///< end of that message, from a semicolon on; or empty
};

/// The fields that every header has; see Header and PlanesHeader for their meaning.
struct Frame {
    std::uint64_t rows = 0;
    std::uint32_t dim = 0;
    std::uint64_t generation = 0;
    std::uint64_t file_bytes = 0;
};

/// Makes a header with the fields of `frame`; the rest is zeros. Call seal_header when the caller's
/// own fields are in it too.
HeaderBytes begin_header(const FileKind& kind, const Frame& frame);

/// Writes the header's own checksum into it.
void seal_header(HeaderBytes& bytes);

/// Checks, in this order: enough bytes, magic, byte order, own checksum, version, header size,
/// limits of rows and dim. `bytes` may continue after the header. The caller compares file_bytes
/// with the file. Errors: damaged or unsupported, without the path, which the caller adds.
Result<Frame> open_header(const FileKind& kind, std::span<const std::byte> bytes);

}  // namespace gloved::format
