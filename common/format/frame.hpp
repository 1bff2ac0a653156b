// What the headers of values and of planes have in the same places. FORMAT.md has the tables.
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

/// Fields at their offsets. Files are little-endian, and so are we (layout.hpp).
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

/// A file that begins with a header.
struct FileKind {
    std::string_view name;
    std::array<unsigned char, 8> magic;
    std::uint32_t version;
    std::string_view version_name;    ///< what it is the version of
    std::string_view version_remedy;  ///< what helps against another one: "" or from the semicolon
                                      ///< on
};

/// The fields that every header has.
struct Frame {
    std::uint64_t rows = 0;
    std::uint32_t dim = 0;
    std::uint64_t generation = 0;
    std::uint64_t file_bytes = 0;
};

/// A header with these fields and zeros, to be sealed when the others are in it.
HeaderBytes begin_header(const FileKind& kind, const Frame& frame);

/// Gives a header its own checksum.
void seal_header(HeaderBytes& bytes);

/// Checks what every header must fulfil, in this order: room, magic, byte order, its own checksum,
/// version, size, limits of rows and dim. `bytes` may go on behind the header. Errors: damaged or
/// unsupported, without the path (the caller knows it).
Result<Frame> open_header(const FileKind& kind, std::span<const std::byte> bytes);

}  // namespace gloved::format
