// Fields that the headers of the values and planes files share. FORMAT.md has the tables.
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

/// Reads and writes a field at its offset. Files and this machine are little-endian (layout.hpp).
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

/// A kind of file that begins with a header.
struct FileKind {
    std::string_view name;
    std::array<unsigned char, 8> magic;
    std::uint32_t version;
    std::string_view version_name;    ///< subject of the message about another version
    std::string_view version_remedy;  ///< end of that message: "" or from the semicolon on
};

/// The fields that every header has.
struct Frame {
    std::uint64_t rows = 0;
    std::uint32_t dim = 0;
    std::uint64_t generation = 0;
    std::uint64_t file_bytes = 0;
};

/// Makes a header with these fields; the rest is zeros. Call seal_header when it is complete.
HeaderBytes begin_header(const FileKind& kind, const Frame& frame);

/// Writes the header's own checksum into it.
void seal_header(HeaderBytes& bytes);

/// Checks what all headers must fulfil, in this order: size, magic, byte order, own checksum,
/// version, file size, limits of rows and dim. `bytes` may continue after the header. Errors:
/// damaged or unsupported, without the path, which the caller adds.
Result<Frame> open_header(const FileKind& kind, std::span<const std::byte> bytes);

}  // namespace gloved::format
