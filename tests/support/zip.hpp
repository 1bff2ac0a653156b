// zip archives, made for tests, byte by byte (APPNOTE.TXT 6.3.9): also those that no program
// writes.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gzip.hpp"

namespace gloved::tests {

inline constexpr unsigned kZipStored = 0;
inline constexpr unsigned kZipDeflated = 8;
// Flags.
inline constexpr unsigned kZipEncrypted = 1;
inline constexpr unsigned kZipSizesBehindData = 8;  ///< as a program writes them to a pipe
inline constexpr unsigned kZipUtf8Name = 0x800;

struct ZipEntry {
    std::string name;  ///< with a slash at the end: a directory
    std::string text;
    unsigned method = kZipDeflated;  ///< another one: the text is stored, only called so
    unsigned flags = 0;
};

/// An archive of `entries`. `zip64`: all sizes and offsets are in ZIP64 fields, which other
/// programs write beyond 4 GiB only. Without them the end record keeps the lower 16 bits of their
/// number, as Info-ZIP writes it. `stated_bytes`: the directory's size in the end record, unless it
/// is 0.
inline std::string zip_archive(const std::vector<ZipEntry>& entries, bool zip64 = false,
                               std::uint64_t stated_bytes = 0) {
    std::string out;
    std::string directory;
    const auto put = [](std::string& to, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
    };
    for (const ZipEntry& entry : entries) {
        const std::uint64_t at = out.size();
        std::string data = entry.text;
        if (entry.method == kZipDeflated) {
            const std::string packed = gzip(entry.text);
            data = packed.substr(10, packed.size() - 18);  // without gzip's head and checksums
        }
        const std::uint64_t crc =
            ::crc32_z(0, reinterpret_cast<const Bytef*>(entry.text.data()), entry.text.size());
        const bool behind = (entry.flags & kZipSizesBehindData) != 0;
        const auto put_common = [&](std::string& to, bool known, std::uint64_t extra_bytes) {
            put(to, 45, 2), put(to, entry.flags, 2), put(to, entry.method, 2), put(to, 0, 4);
            put(to, known ? crc : 0, 4);
            put(to, zip64 ? 0xFFFFFFFF : known ? data.size() : 0, 4);
            put(to, zip64 ? 0xFFFFFFFF : known ? entry.text.size() : 0, 4);
            put(to, entry.name.size(), 2), put(to, extra_bytes, 2);
        };
        const auto put_sizes = [&](std::string& to, int bytes) {
            put(to, entry.text.size(), bytes), put(to, data.size(), bytes);
        };
        put(out, 0x04034B50, 4), put_common(out, !behind, zip64 ? 20 : 0);
        out += entry.name;
        if (zip64) put(out, 1, 2), put(out, 16, 2), put_sizes(out, 8);
        out += data;
        if (behind) {
            put(out, 0x08074B50, 4), put(out, crc, 4);
            put(out, data.size(), 4), put(out, entry.text.size(), 4);
        }
        put(directory, 0x02014B50, 4), put(directory, 45, 2);
        put_common(directory, true, zip64 ? 28 : 0);
        put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4);
        put(directory, zip64 ? 0xFFFFFFFF : at, 4);
        directory += entry.name;
        if (zip64) {
            put(directory, 1, 2), put(directory, 24, 2), put_sizes(directory, 8);
            put(directory, at, 8);
        }
    }
    const std::uint64_t begin = out.size();
    const std::uint64_t end = begin + directory.size();
    const std::uint64_t bytes = stated_bytes == 0 ? directory.size() : stated_bytes;
    out += directory;
    if (zip64) {
        put(out, 0x06064B50, 4), put(out, 44, 8), put(out, 45, 2), put(out, 45, 2), put(out, 0, 8);
        put(out, entries.size(), 8), put(out, entries.size(), 8), put(out, bytes, 8);
        put(out, begin, 8);
        put(out, 0x07064B50, 4), put(out, 0, 4), put(out, end, 8), put(out, 1, 4);
    }
    put(out, 0x06054B50, 4), put(out, 0, 4);
    put(out, zip64 ? 0xFFFF : entries.size(), 2), put(out, zip64 ? 0xFFFF : entries.size(), 2);
    put(out, zip64 ? 0xFFFFFFFF : bytes, 4), put(out, zip64 ? 0xFFFFFFFF : begin, 4);
    put(out, 0, 2);
    return out;
}

/// An archive of one stored member, in ZIP64 fields.
inline std::string zip64_archive(const std::string& name, const std::string& text) {
    return zip_archive({{name, text, kZipStored}}, true);
}

/// An archive of empty members called 000000, 000001, …, whose directory takes 52 bytes each, or 80
/// with ZIP64.
inline std::string zip_of_empty_members(std::uint64_t members, bool zip64,
                                        std::uint64_t stated_bytes = 0) {
    std::vector<ZipEntry> entries;
    for (std::uint64_t i = 0; i < members; ++i) {
        const std::string digits = std::to_string(i);
        entries.push_back({std::string(6 - digits.size(), '0') + digits, "", kZipStored});
    }
    return zip_archive(entries, zip64, stated_bytes);
}

}  // namespace gloved::tests
