// What libarchive packs, for tests: tar archives, and bzip2, xz and zstd data.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <clocale>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace gloved::tests {

struct TarEntry {
    std::string name;
    std::string text;
    unsigned type = AE_IFREG;  ///< of libarchive; a link's target is its text
};

namespace detail {

/// `entries` as libarchive writes them in a format, through a filter.
inline std::string packed(const std::vector<TarEntry>& entries, int format, int filter) {
    const auto check = [](int state, const char* what) {
        if (state != ARCHIVE_OK) throw std::runtime_error(what);
    };
    std::string out;
    const auto append = [](archive* /*writer*/, void* to, const void* bytes,
                           std::size_t size) -> la_ssize_t {
        static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
        return static_cast<la_ssize_t>(size);
    };
    const std::unique_ptr<archive, int (*)(archive*)> writer(::archive_write_new(),
                                                             ::archive_write_free);
    check(::archive_write_set_format(writer.get(), format), "archive_write_set_format");
    check(::archive_write_add_filter(writer.get(), filter), "archive_write_add_filter");
    ::archive_write_set_bytes_in_last_block(writer.get(), 1);
    check(::archive_write_open(writer.get(), &out, nullptr, append, nullptr), "archive_write_open");
    const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    const locale_t before = ::uselocale(utf8);  // for names in pax headers
    for (const TarEntry& entry : entries) {
        const std::unique_ptr<archive_entry, void (*)(archive_entry*)> header(::archive_entry_new(),
                                                                              ::archive_entry_free);
        ::archive_entry_set_pathname(header.get(), entry.name.c_str());
        ::archive_entry_set_filetype(header.get(), entry.type);
        ::archive_entry_set_perm(header.get(), 0644);
        const bool regular = entry.type == AE_IFREG;
        ::archive_entry_set_size(header.get(),
                                 regular ? static_cast<la_int64_t>(entry.text.size()) : 0);
        if (entry.type == AE_IFLNK) ::archive_entry_set_symlink(header.get(), entry.text.c_str());
        check(::archive_write_header(writer.get(), header.get()), "archive_write_header");
        if (regular && ::archive_write_data(writer.get(), entry.text.data(), entry.text.size()) < 0)
            throw std::runtime_error("archive_write_data");
    }
    check(::archive_write_close(writer.get()), "archive_write_close");
    ::uselocale(before);
    ::freelocale(utf8);
    return out;
}

}  // namespace detail

inline std::string tar_archive(const std::vector<TarEntry>& entries) {
    return detail::packed(entries, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, ARCHIVE_FILTER_NONE);
}

/// The header of a member in the format ustar, also for types that libarchive does not write.
inline std::string tar_header(const std::string& name, std::size_t bytes, char type) {
    std::string header(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
        header.replace(at, text.size(), text);
    };
    put(0, name);
    put(100, "0000644");
    put(124, fmt::format("{:011o}", bytes));
    put(148, "        ");
    put(156, std::string(1, type));
    put(257, std::string("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum) + '\0');
    return header;
}

inline std::string bzip2(const std::string& text) {
    return detail::packed({{"text", text}}, ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_BZIP2);
}
inline std::string xz(const std::string& text) {
    return detail::packed({{"text", text}}, ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_XZ);
}
inline std::string zstd(const std::string& text) {
    return detail::packed({{"text", text}}, ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_ZSTD);
}

}  // namespace gloved::tests
