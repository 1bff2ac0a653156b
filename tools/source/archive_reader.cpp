#include "tools/source/archive_reader.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <limits>
#include <new>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved::source {
namespace {

using namespace std::string_view_literals;
using Kind = Packing::Kind;

constexpr std::size_t kListedFiles = 20;
/// What libarchive may read for a header. It keeps a zip archive's directory in memory, 200 bytes
/// for 46, and the holes that a header of tar lists, 80 bytes for 4: 20 MiB at most, less than the
/// part of --memory that conversions do not plan for.
constexpr std::uint64_t kMaxZipHeaderBytes = (4 << 20) + (1 << 18);  ///< with what is around it
constexpr std::uint64_t kMaxTarHeaderBytes = 1 << 20;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kTarBlockBytes = 512;
constexpr std::size_t kZipEndBytes = 22;        ///< of a zip archive's end record
constexpr std::size_t kTailBytes = 22 + 65535;  ///< with the longest comment

constexpr Packing kPackings[] = {
    {Kind::gzip, "gzip", ".gz", "zcat FILE", 0, "\x1F\x8B"sv},
    {Kind::filter, "bzip2", ".bz2", "bzcat FILE", 0, "BZh"sv, ARCHIVE_FILTER_BZIP2},
    {Kind::filter, "xz", ".xz", "xzcat FILE", 0, "\3757zXZ\0"sv, ARCHIVE_FILTER_XZ},
    {Kind::filter, "zstd", ".zst", "zstdcat FILE", 0, "\x28\xB5\x2F\xFD"sv, ARCHIVE_FILTER_ZSTD},
    // A frame to skip, with which pzstd begins.
    {Kind::filter, "zstd", ".zst", "zstdcat FILE", 1, "\x2A\x4D\x18"sv, ARCHIVE_FILTER_ZSTD},
    // A file, the end of an archive without files, the beginning of a split archive.
    {Kind::zip, "zip", ".zip", "unzip -p FILE MEMBER", 0, "PK\x03\x04"sv},
    {Kind::zip, "zip", ".zip", "unzip -p FILE MEMBER", 0, "PK\x05\x06"sv},
    {Kind::zip, "zip", ".zip", "unzip -p FILE MEMBER", 0, "PK\x07\x08"sv},
    {Kind::tar, "tar", ".tar", "tar -xOf FILE MEMBER", 257, "ustar"sv},
};

/// Whether an entry is a file as users see it.
bool is_file(archive_entry* entry, std::string_view name) {
    return ::archive_entry_filetype(entry) == AE_IFREG &&
           ::archive_entry_hardlink(entry) == nullptr && !name.ends_with('/') &&
           !name.starts_with("__MACOSX/") && !name.substr(name.rfind('/') + 1).starts_with("._");
}

/// Whether the last bytes of a zip archive are an end record and its comment (APPNOTE.TXT 6.3.9,
/// 4.3.16).
bool ends_zip(std::string_view tail) {
    for (std::size_t at = 0; (at = tail.find("PK\x05\x06"sv, at)) != tail.npos; ++at) {
        const auto byte = [&](std::size_t i) -> std::size_t {
            return static_cast<unsigned char>(tail[at + i]);
        };
        if (tail.size() < at + kZipEndBytes) return false;
        if (tail.size() == at + kZipEndBytes + byte(20) + 256 * byte(21)) return true;
    }
    return false;
}

}  // namespace

const Packing* packing_of(std::string_view head) {
    for (const Packing& packing : kPackings) {
        if (head.size() > packing.magic_at &&
            head.substr(packing.magic_at).starts_with(packing.magic))
            return &packing;
    }
    return nullptr;
}

std::string_view unpacker_of(std::string_view compression) {
    const auto* const packing = std::ranges::find_if(
        kPackings, [&](std::string_view name) { return compression.starts_with(name); },
        &Packing::name);
    return packing == std::end(kPackings) ? "" : packing->unpacker;
}

void ArchiveReader::Free::operator()(archive* handle) const { ::archive_read_free(handle); }

ArchiveReader::ArchiveReader(ByteReader& below, FileReader* file, const Packing& packing,
                             const std::string& member, std::size_t block_bytes)
    : ByteReader(&below),
      below_(below),
      file_(file),
      packing_(packing),
      wanted_(member),
      block_(block_bytes) {}

Result<std::unique_ptr<ArchiveReader>> ArchiveReader::open(ByteReader& below, FileReader* file,
                                                           const Packing& packing,
                                                           const std::string& member,
                                                           std::size_t block_bytes) {
    std::unique_ptr<ArchiveReader> reader(
        new ArchiveReader(below, file, packing, member, block_bytes));
    if (file != nullptr && member.empty()) {
        if (Status begun = reader->begin(true); !begun) return begun.error();
        if (Status one = reader->read_headers(); !one) return one.error();
    }
    // A tar archive is read whole, so that its checksum can be told.
    if (Status begun = reader->begin(packing.kind == Kind::zip); !begun) return begun.error();
    for (bool found = false; !found;) {
        const auto more = reader->next_file();
        if (!more) return more.error();
        if (!*more) {  // the end: of an archive an error, of compressed data an empty text
            reader->ended_ = true;
            Status end = packing.is_archive() ? reader->check_choice(false) : reader->check_end();
            return end ? Result<std::unique_ptr<ArchiveReader>>(std::move(reader)) : end.error();
        }
        found = member.empty() || reader->entry_name_ == member;
    }
    reader->member_ = reader->entry_name_;
    if (packing.kind == Kind::zip) reader->crc32_ = 0;
    reader->text_bytes_ = static_cast<std::uint64_t>(::archive_entry_size(reader->entry_));
    if (Status readable = reader->check_readable(); !readable) return readable.error();
    return reader;
}

/// Opens the archive at its beginning. `seeks`: libarchive may seek, if there is a file.
Status ArchiveReader::begin(bool seeks) {
    seeks = seeks && file_ != nullptr;
    if (file_ != nullptr) {
        if (Status sought = file_->seek(0); !sought) return sought;
    }
    read_bytes_ = 0;
    max_read_bytes_ = max_header_bytes();
    entry_ = nullptr;
    entry_name_.clear();
    file_count_ = 0;
    file_list_.clear();
    handle_.reset(::archive_read_new());
    archive* const handle = handle_.get();
    if (handle == nullptr) throw std::bad_alloc();
    int state = ARCHIVE_OK;
    if (packing_.kind == Kind::zip) {
        state = seeks ? ::archive_read_support_format_zip_seekable(handle)
                      : ::archive_read_support_format_zip_streamable(handle);
    } else if (packing_.kind == Kind::tar) {
        state = ::archive_read_support_format_tar(handle);
    } else {
        ::archive_read_support_format_raw(handle);
        ::archive_read_support_format_empty(handle);
        // Appended, not looked for: one layer is unpacked, and detect() refuses a second.
        state = ::archive_read_append_filter(handle, packing_.filter);
    }
    if (seeks) ::archive_read_set_seek_callback(handle, seek);
    if (state == ARCHIVE_OK)
        state = ::archive_read_open2(handle, this, nullptr, read_block, nullptr, nullptr);
    // Data that is damaged at its beginning is taken for empty: only the error number tells.
    const bool damaged = packing_.kind == Kind::filter && ::archive_errno(handle) != 0;
    return state == ARCHIVE_OK && !damaged ? Status() : fault(false);
}

ssize_t ArchiveReader::read_block(archive* /*handle*/, void* self, const void** block) {
    auto& reader = *static_cast<ArchiveReader*>(self);
    if (reader.read_bytes_ >= reader.max_read_bytes_) {
        const bool tar = reader.packing_.kind == Kind::tar;
        reader.fault_ = bad_source(
            "{}: the {} archive takes more than {} MiB, which is not read; unpack the one file, "
            "for stdin (-): {} | ...",
            reader.name(), tar ? "header of a file in the tar" : "directory of the zip",
            reader.max_header_bytes() >> 20, reader.packing_.unpacker);
        return ARCHIVE_FATAL;
    }
    const auto got = reader.below_.read(reader.block_);
    if (!got) {
        reader.fault_ = got.error();
        return ARCHIVE_FATAL;
    }
    reader.read_bytes_ += *got;
    if (reader.packing_.kind == Kind::zip) {
        reader.tail_.append(reader.block_.data(), *got);
        reader.tail_.erase(0, reader.tail_.size() - std::min(reader.tail_.size(), kTailBytes));
    }
    *block = reader.block_.data();
    return static_cast<ssize_t>(*got);
}

std::int64_t ArchiveReader::seek(archive* /*handle*/, void* self, std::int64_t offset, int whence) {
    auto& reader = *static_cast<ArchiveReader*>(self);
    const std::uint64_t size = reader.file_->size_bytes();
    const std::uint64_t from = whence == SEEK_END   ? size
                               : whence == SEEK_CUR ? reader.file_->position()
                                                    : 0;
    const std::uint64_t to = from + static_cast<std::uint64_t>(offset);
    if (to > size) return ARCHIVE_FATAL;
    if (Status sought = reader.file_->seek(to); !sought) {
        reader.fault_ = sought.error();
        return ARCHIVE_FATAL;
    }
    return static_cast<std::int64_t>(to);
}

std::uint64_t ArchiveReader::max_header_bytes() const {
    return packing_.kind == Kind::tar ? kMaxTarHeaderBytes : kMaxZipHeaderBytes;
}

/// Reads headers up to that of the next file; returns whether there is one.
Result<bool> ArchiveReader::next_file() {
    // libarchive converts names from UTF-8 to the locale's encoding, which may lack their letters.
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    archive* const handle = handle_.get();
    for (;;) {
        max_read_bytes_ = kNoLimit;
        if (entry_ != nullptr && ::archive_read_data_skip(handle) != ARCHIVE_OK)
            return fault(false);
        header_at_ = used_bytes();
        max_read_bytes_ = read_bytes_ + max_header_bytes();
        const locale_t before = ::uselocale(utf8);
        const int state = ::archive_read_next_header(handle, &entry_);
        const char* const path = ::archive_entry_pathname(entry_);
        ::uselocale(before);
        max_read_bytes_ = kNoLimit;
        if (state == ARCHIVE_EOF && !fault_) return false;
        // A warning too: a zip archive's directory contradicts the header, for example.
        if (state != ARCHIVE_OK) return fault(false);
        entry_name_ = path == nullptr ? "" : path;
        if (!is_file(entry_, entry_name_)) continue;
        if (file_count_ < kListedFiles) {
            file_list_ += fmt::format("{}{} ({} bytes)", file_count_ == 0 ? "" : ", ",
                                      printable(entry_name_, 255), ::archive_entry_size(entry_));
        }
        ++file_count_;
        if (!entry_name_.ends_with("/data.pkl")) return true;
        return bad_source(
            "{}: this is a PyTorch file (.pt); it is not unpickled, which could run any program; "
            "write text in Python first, a word and its numbers a line, separated by blanks",
            name());
    }
}

/// Reads all headers that are left.
Status ArchiveReader::read_headers() {
    for (;;) {
        const auto more = next_file();
        if (!more) return more.error();
        if (!*more) return check_choice(true);
    }
}

/// Checks, at the archive's end, that it holds the wanted file, or only one if none was named.
Status ArchiveReader::check_choice(bool found) const {
    if (!packing_.is_archive()) return {};
    const auto holds = [&](const std::string& what) {
        return bad_source("{}: the {} archive holds {}", name(), packing_.name, what);
    };
    if (file_count_ == 0) return holds("no files; fetch the download again");
    std::string list = file_list_;
    if (file_count_ > kListedFiles)
        list += fmt::format(", and {} more", file_count_ - kListedFiles);
    if (wanted_.empty() && file_count_ > 1)
        return holds(
            fmt::format("{} files; --member NAME takes one of them: {}", file_count_, list));
    if (found || wanted_.empty()) return {};
    return holds(fmt::format("no member {}; it holds {}", printable(wanted_, 255), list));
}

Status ArchiveReader::check_readable() const {
    const auto refused = [&](const std::string& why) {
        return bad_source("{}: the member {} is {}", name(), printable(member_, 255), why);
    };
    if (::archive_entry_is_encrypted(entry_) != 0) {
        return refused(
            "encrypted; unpack it with its password first, for stdin (-): unzip -p FILE "
            "MEMBER");
    }
    if (::archive_entry_sparse_count(entry_) != 0)
        return refused("a sparse file; unpack it first, for stdin (-): tar -xOf FILE MEMBER");
    // Others need memory without bounds.
    const std::string_view method = ::archive_format_name(handle_.get());
    if (packing_.kind != Kind::zip || method.ends_with("(deflation)") ||
        method.ends_with("(uncompressed)"))
        return {};
    return refused(
        fmt::format("packed as {}, and only stored and deflated ones are taken; unpack "
                    "it first, for stdin (-): 7z e -so FILE MEMBER",
                    method));
}

Result<std::size_t> ArchiveReader::fill(std::span<char> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size() && !ended_) {
        if (piece_.empty()) {
            if (Status next = next_piece(); !next) return next.error();
        }
        const std::size_t taken = std::min(buffer.size() - filled, piece_.size());
        std::copy_n(piece_.data(), taken, buffer.data() + filled);
        piece_ = piece_.subspan(taken);
        filled += taken;
    }
    return filled;
}

/// Unpacks the next piece of the text, or checks its end.
Status ArchiveReader::next_piece() {
    const void* data = nullptr;
    std::size_t bytes = 0;
    la_int64_t offset = 0;
    const int state = ::archive_read_data_block(handle_.get(), &data, &bytes, &offset);
    if (state == ARCHIVE_EOF && !fault_) {
        ended_ = true;
        return check_rest();
    }
    // A warning too: a checksum is wrong, for example. Data elsewhere: holes are before it.
    if (state != ARCHIVE_OK || static_cast<std::uint64_t>(offset) != position_) return fault(true);
    piece_ = {static_cast<const char*>(data), bytes};
    position_ += bytes;
    if (crc32_ && bytes != 0) {
        crc32_ =
            static_cast<std::uint32_t>(::crc32_z(*crc32_, static_cast<const Bytef*>(data), bytes));
    }
    return {};
}

/// Checks what stands behind the text: whether there are other files, and the end. Of a zip archive
/// in a file all headers are known.
Status ArchiveReader::check_rest() {
    const bool sized = ::archive_entry_size_is_set(entry_) != 0;
    if (sized && position_ != text_bytes_) return fault(true);
    const bool known = packing_.kind == Kind::zip && file_ != nullptr;
    // libarchive has jumped in the file: what was read before is not in front of the end.
    if (known) tail_.clear();
    // Not from its first byte: only bytes that are all read have a checksum.
    const std::uint64_t size = known ? file_->size_bytes() : 0;
    Status passed =
        known ? file_->seek(size - std::min<std::uint64_t>(size - 1, kTailBytes)) : read_headers();
    return passed ? check_end() : passed;
}

/// Reads the source to its end, where the packed data must end too. libarchive takes a zip archive
/// that ends before its directory, if it does not seek that, or within the comment, a tar archive
/// that ends between two members, and any data behind that of bzip2.
Status ArchiveReader::check_end() {
    const std::uint64_t used = used_bytes();
    const void* block = nullptr;
    while (read_block(handle_.get(), this, &block) > 0) {
    }
    if (fault_) return *fault_;
    if (packing_.kind == Kind::filter && read_bytes_ != used) {
        return bad_source(
            "{0}: other data follows the {1} data at byte {2}; fetch the download "
            "again, or take what is before it: head -c {2} FILE",
            name(), packing_.name, used);
    }
    const bool cut_zip = !ends_zip(tail_);
    const bool cut_tar = read_bytes_ < header_at_ + kTarBlockBytes;
    if ((packing_.kind == Kind::zip && cut_zip) || (packing_.kind == Kind::tar && cut_tar))
        return fault(false);
    return {};
}

/// How many bytes of the source libarchive has used up; in a file, where it stands.
std::uint64_t ArchiveReader::used_bytes() const {
    return static_cast<std::uint64_t>(::archive_filter_bytes(handle_.get(), -1));
}

/// What is wrong with the text, or with all else that libarchive reads.
Error ArchiveReader::fault(bool in_data) const {
    if (fault_) return *fault_;
    if (::archive_errno(handle_.get()) == ENOMEM) throw std::bad_alloc();
    std::string what = fmt::format("the {} {} is damaged or cut near byte {}", packing_.name,
                                   packing_.is_archive() ? "archive" : "data", used_bytes());
    if (packing_.is_archive() && in_data) {
        what = fmt::format(
            "the member {} of the {} archive is damaged or cut, found at byte {} of its text",
            printable(member_, 255), packing_.name, position_);
    } else if (packing_.kind == Kind::zip && file_ != nullptr && entry_name_.empty()) {
        what =
            "this begins like a zip archive, but its directory, which stands at its end, is "
            "missing or damaged: the download is not complete";
    }
    const char* const text = ::archive_error_string(handle_.get());
    const std::string_view reason = text == nullptr ? "it ends too early" : text;
    return bad_source("{}: {} ({}); fetch the download again", name(), what,
                      reason.substr(0, reason.find('\n')));
}

}  // namespace gloved::source
