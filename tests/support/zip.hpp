// zip archives, made for tests.
#pragma once

#include <zip.h>
#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gloved::tests {

struct ZipEntry {
    std::string name;  ///< with a slash at the end: a directory
    std::string text;
    int method = ZIP_CM_DEFLATE;
    std::string password = {};  ///< encrypted with it, unless empty
};

/// An archive of `entries`, written by libzip.
inline std::string zip_archive(const std::vector<ZipEntry>& entries) {
    const auto check = [](bool done, const char* what) {
        if (!done) throw std::runtime_error(what);
    };
    zip_error_t error;
    ::zip_error_init(&error);
    zip_source_t* const bytes = ::zip_source_buffer_create(nullptr, 0, 0, &error);
    check(bytes != nullptr, "zip_source_buffer_create");
    ::zip_source_keep(bytes);
    zip_t* const archive = ::zip_open_from_source(bytes, ZIP_TRUNCATE, &error);
    check(archive != nullptr, "zip_open_from_source");
    for (const ZipEntry& entry : entries) {
        if (entry.name.ends_with('/')) {
            check(::zip_dir_add(archive, entry.name.c_str(), 0) >= 0, "zip_dir_add");
            continue;
        }
        zip_source_t* const text =
            ::zip_source_buffer(archive, entry.text.data(), entry.text.size(), 0);
        const zip_int64_t index = ::zip_file_add(archive, entry.name.c_str(), text, 0);
        check(index >= 0, "zip_file_add");
        const auto added = static_cast<zip_uint64_t>(index);
        check(::zip_set_file_compression(archive, added, entry.method, 0) == 0,
              "zip_set_file_compression");
        if (entry.password.empty()) continue;
        check(::zip_file_set_encryption(archive, added, ZIP_EM_TRAD_PKWARE,
                                        entry.password.c_str()) == 0,
              "zip_file_set_encryption");
    }
    check(::zip_close(archive) == 0, "zip_close");
    zip_stat_t status;
    check(::zip_source_stat(bytes, &status) == 0, "zip_source_stat");
    std::string packed(status.size, '\0');
    check(::zip_source_open(bytes) == 0, "zip_source_open");
    check(::zip_source_read(bytes, packed.data(), packed.size()) ==
              static_cast<zip_int64_t>(packed.size()),
          "zip_source_read");
    ::zip_source_close(bytes);
    ::zip_source_free(bytes);
    ::zip_error_fini(&error);
    return packed;
}

/// An archive of one stored member with all its sizes and offsets in ZIP64 fields, which libzip
/// writes beyond 4 GiB only (APPNOTE.TXT 6.3.9, 4.3.14, 4.3.15 and 4.5.3).
inline std::string zip64_archive(const std::string& name, const std::string& text) {
    std::string out;
    const auto put = [&](std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
    };
    constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;
    const std::uint64_t crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
    const auto put_common = [&](std::uint64_t extra_bytes) {
        put(45, 2), put(0, 2), put(0, 2);  // version needed, flags, method: stored
        put(0, 4), put(crc, 4), put(kElsewhere, 4), put(kElsewhere, 4);
        put(name.size(), 2), put(extra_bytes, 2);
    };
    put(0x04034B50, 4);
    put_common(20);
    out += name;
    put(1, 2), put(16, 2), put(text.size(), 8), put(text.size(), 8);
    out += text;
    const std::uint64_t directory = out.size();
    put(0x02014B50, 4), put(45, 2);
    put_common(28);
    put(0, 2), put(0, 2), put(0, 2), put(0, 4), put(kElsewhere, 4);
    out += name;
    put(1, 2), put(24, 2), put(text.size(), 8), put(text.size(), 8), put(0, 8);
    const std::uint64_t end = out.size();
    put(0x06064B50, 4), put(44, 8), put(45, 2), put(45, 2), put(0, 4), put(0, 4);
    put(1, 8), put(1, 8), put(end - directory, 8), put(directory, 8);
    put(0x07064B50, 4), put(0, 4), put(end, 8), put(1, 4);
    put(0x06054B50, 4), put(0, 2), put(0, 2), put(0xFFFF, 2), put(0xFFFF, 2), put(kElsewhere, 4),
        put(kElsewhere, 4);
    put(0, 2);
    return out;
}

/// An archive of empty members called 000000, 000001, …, whose directory takes 52 bytes each.
/// Without ZIP64 the end record keeps the lower 16 bits of their number, as Info-ZIP writes it.
/// `stated_bytes`: the directory's size in the end record, unless it is 0.
inline std::string zip_of_empty_members(std::uint64_t members, bool zip64,
                                        std::uint64_t stated_bytes = 0) {
    std::string out;
    const auto put = [&](std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
    };
    const auto put_common = [&] {
        put(45, 2), put(0, 2), put(0, 2);            // version needed, flags, method: stored
        put(0, 4), put(0, 4), put(0, 4), put(0, 4);  // time, CRC-32, sizes
        put(6, 2), put(0, 2);
    };
    const auto put_name = [&](std::uint64_t i) {
        const std::string digits = std::to_string(i);
        out += std::string(6 - digits.size(), '0') + digits;
    };
    for (std::uint64_t i = 0; i < members; ++i) put(0x04034B50, 4), put_common(), put_name(i);
    const std::uint64_t directory = out.size();
    for (std::uint64_t i = 0; i < members; ++i) {
        put(0x02014B50, 4), put(45, 2), put_common();
        put(0, 2), put(0, 2), put(0, 2), put(0, 4), put(36 * i, 4);
        put_name(i);
    }
    const std::uint64_t end = out.size();
    const std::uint64_t bytes = stated_bytes == 0 ? end - directory : stated_bytes;
    if (zip64) {
        put(0x06064B50, 4), put(44, 8), put(45, 2), put(45, 2), put(0, 4), put(0, 4);
        put(members, 8), put(members, 8), put(bytes, 8), put(directory, 8);
        put(0x07064B50, 4), put(0, 4), put(end, 8), put(1, 4);
    }
    put(0x06054B50, 4), put(0, 2), put(0, 2);
    put(zip64 ? 0xFFFF : members, 2), put(zip64 ? 0xFFFF : members, 2);
    put(zip64 ? 0xFFFFFFFF : bytes, 4), put(zip64 ? 0xFFFFFFFF : directory, 4), put(0, 2);
    return out;
}

}  // namespace gloved::tests
