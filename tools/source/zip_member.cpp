#include "tools/source/zip_member.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <zip.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/quoting.hpp"

namespace gloved::source {
namespace {

constexpr std::size_t kListedMembers = 20;
constexpr std::uint64_t kMinMemberBytes = 46;  ///< of a member's entry in the directory
/// libzip keeps an archive's whole directory in memory, about 400 bytes a member: with this limit
/// 36 MB at most, less than the part of --memory that conversions do not plan for.
constexpr std::uint64_t kMaxZipDirectoryBytes = 4 << 20;
/// If several places look like the directory's end, libzip reads a directory for each.
constexpr std::uint64_t kMaxReadBytesAtOpen = 2 * kMaxZipDirectoryBytes;

/// Makes an Error of libzip's. `what` is its text where the archive is at fault, not the system.
Error zip_fault(const std::string& path, zip_error_t* error, const std::string& what) {
    // Only reads fail by the system. Other errno values come from bad archives, e.g. from
    // impossible offsets.
    const bool of_system =
        ::zip_error_code_zip(error) == ZIP_ER_READ && ::zip_error_code_system(error) != 0;
    if (of_system)
        return system_error(path, "cannot read the zip archive", ::zip_error_code_system(error));
    return error_with(ErrorCode::bad_source, "{}: {} ({}); fetch the download again", path, what,
                      ::zip_error_strerror(error));
}

/// A libzip source that reads the archive. libzip's own reads 4 KiB at a time and fails at EINTR.
class ArchiveReader {
  public:
    /// Opens the archive, which owns the descriptor; null with `error` set.
    static zip_t* open(UniqueFd fd, std::uint64_t size, zip_error_t* error) {
        auto owned = std::unique_ptr<ArchiveReader>(new ArchiveReader(std::move(fd), size));
        zip_source_t* const source =
            ::zip_source_function_create(handle_command, owned.get(), error);
        if (source == nullptr) return nullptr;
        ArchiveReader* const bytes = owned.release();  // freed by ZIP_SOURCE_FREE
        zip_t* const archive = ::zip_open_from_source(source, ZIP_RDONLY, error);
        if (archive == nullptr) {
            ::zip_source_free(source);
        } else {
            bytes->readable_ = std::numeric_limits<std::uint64_t>::max();
        }
        return archive;
    }

  private:
    static constexpr std::size_t kBufferBytes = 1 << 18;

    ArchiveReader(UniqueFd fd, std::uint64_t size) : fd_(std::move(fd)), size_(size) {
        ::zip_error_init(&error_);
    }
    ~ArchiveReader() { ::zip_error_fini(&error_); }
    friend std::default_delete<ArchiveReader>;

    static zip_int64_t handle_command(void* self, void* data, zip_uint64_t length,
                                      zip_source_cmd_t command) {
        auto& bytes = *static_cast<ArchiveReader*>(self);
        switch (command) {
            case ZIP_SOURCE_OPEN:
                bytes.position_ = 0;
                return 0;
            case ZIP_SOURCE_READ:
                return bytes.read(static_cast<char*>(data), length);
            case ZIP_SOURCE_SEEK: {
                const zip_int64_t to = ::zip_source_seek_compute_offset(
                    bytes.position_, bytes.size_, data, length, &bytes.error_);
                if (to < 0) return -1;
                bytes.position_ = static_cast<std::uint64_t>(to);
                return 0;
            }
            case ZIP_SOURCE_TELL:
                return static_cast<zip_int64_t>(bytes.position_);
            case ZIP_SOURCE_STAT: {
                auto* const status = ZIP_SOURCE_GET_ARGS(zip_stat_t, data, length, &bytes.error_);
                if (status == nullptr) return -1;
                ::zip_stat_init(status);
                status->size = bytes.size_;
                status->valid |= ZIP_STAT_SIZE;
                return sizeof *status;
            }
            case ZIP_SOURCE_ERROR:
                return ::zip_error_to_data(&bytes.error_, data, length);
            case ZIP_SOURCE_CLOSE:
                return 0;
            case ZIP_SOURCE_FREE:
                delete &bytes;
                return 0;
            case ZIP_SOURCE_SUPPORTS:
                return ::zip_source_make_command_bitmap(
                    ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
                    ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_CLOSE, ZIP_SOURCE_FREE, -1);
            default:
                ::zip_error_set(&bytes.error_, ZIP_ER_OPNOTSUPP, 0);
                return -1;
        }
    }

    zip_int64_t read(char* to, zip_uint64_t wanted) {
        if (position_ < buffer_at_ || position_ >= buffer_at_ + buffer_.size()) {
            buffer_.resize(kBufferBytes);
            ssize_t got = 0;
            do {
                got = ::pread(fd_.get(), buffer_.data(), buffer_.size(),
                              static_cast<off_t>(position_));
            } while (got < 0 && errno == EINTR);
            if (got < 0) {
                ::zip_error_set(&error_, ZIP_ER_READ, errno);
                buffer_.clear();
                return -1;
            }
            buffer_.resize(static_cast<std::size_t>(got));
            buffer_at_ = position_;
        }
        // A short read is not the end: libzip reads on until there are 0 bytes.
        const std::uint64_t at = position_ - buffer_at_;
        const std::uint64_t bytes = std::min<std::uint64_t>(wanted, buffer_.size() - at);
        std::memcpy(to, buffer_.data() + at, bytes);
        if (bytes > readable_) {
            // The directory is longer than its end record says; libzip would keep all of it in
            // memory.
            ::zip_error_set(&error_, ZIP_ER_INCONS, 0);
            return -1;
        }
        readable_ -= bytes;
        position_ += bytes;
        return static_cast<zip_int64_t>(bytes);
    }

    UniqueFd fd_;
    std::uint64_t size_;
    std::uint64_t position_ = 0;
    std::uint64_t readable_ = kMaxReadBytesAtOpen;
    std::vector<char> buffer_;
    std::uint64_t buffer_at_ = 0;
    zip_error_t error_;
};

/// Refuses an archive whose directory exceeds kMaxZipDirectoryBytes. Checks every place that libzip
/// may take for a directory's end; libzip finds other damage (APPNOTE.TXT 6.3.9, 4.3.14 to 4.3.16).
Status check_directory(int fd, std::uint64_t size, const std::string& path) {
    constexpr std::size_t kEndBytes = 22;
    constexpr std::size_t kLocatorBytes = 20;
    constexpr std::size_t kEnd64Bytes = 56;
    constexpr std::size_t kMaxComment = 65536;
    const auto number = [](std::string_view bytes, std::size_t at, std::size_t width) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + at, width);
        return value;
    };
    std::string tail(std::min<std::uint64_t>(size, kMaxComment + kEndBytes + kLocatorBytes), '\0');
    const std::uint64_t tail_at = size - tail.size();
    Status read = read_all_at(fd, std::as_writable_bytes(std::span(tail)), tail_at, path);
    if (!read) return read;
    for (std::size_t at = 0; (at = tail.find("PK\5\6", at)) != std::string::npos; ++at) {
        if (tail.size() - at < kEndBytes) break;
        std::uint64_t members = number(tail, at + 10, 2);
        std::uint64_t bytes = number(tail, at + 12, 4);
        if (at >= kLocatorBytes && tail.compare(at - kLocatorBytes, 4, "PK\6\7") == 0) {
            const std::uint64_t end64_at = number(tail, at - kLocatorBytes + 8, 8);
            if (size < kEnd64Bytes || end64_at > size - kEnd64Bytes) continue;
            std::string end64(kEnd64Bytes, '\0');
            Status read64 =
                read_all_at(fd, std::as_writable_bytes(std::span(end64)), end64_at, path);
            if (!read64) return read64;
            members = number(end64, 32, 8);
            bytes = number(end64, 40, 8);
        }
        if (bytes <= kMaxZipDirectoryBytes || bytes > tail_at + at) continue;
        // Some programs write only the lower 16 bits of the number of members: hence «or more».
        return error_with(ErrorCode::bad_source,
                          "{}: the zip archive holds {} members or more, and their directory takes "
                          "{} bytes; at most {} bytes, {} members, are read; unpack the one file, "
                          "for stdin (-): unzip -p ARCHIVE MEMBER | ...",
                          path, members, bytes, kMaxZipDirectoryBytes,
                          kMaxZipDirectoryBytes / kMinMemberBytes);
    }
    return {};
}

struct Member {
    zip_uint64_t index;
    std::string name;
    zip_stat_t status;
};

/// Lists the files of an archive, without directories and without the entries that macOS adds.
Result<std::vector<Member>> files_of(zip_t* archive, const std::string& path) {
    std::vector<Member> files;
    const zip_int64_t entries = ::zip_get_num_entries(archive, 0);
    for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(entries); ++i) {
        Member member{i, {}, {}};
        if (::zip_stat_index(archive, i, ZIP_FL_ENC_RAW, &member.status) != 0) {
            return zip_fault(path, ::zip_get_error(archive),
                             "the zip archive's directory is damaged");
        }
        if (member.status.name != nullptr) member.name = member.status.name;
        if (member.name.ends_with('/') || member.name.starts_with("__MACOSX/")) continue;
        files.push_back(std::move(member));
    }
    return files;
}

/// «"a.txt" (12 bytes), "b.txt" (7 bytes)», and how many more there are.
std::string list_of(const std::vector<Member>& files) {
    std::string list;
    for (std::size_t i = 0; i < std::min(files.size(), kListedMembers); ++i) {
        list += fmt::format("{}{} ({} bytes)", i == 0 ? "" : ", ", printable(files[i].name, 255),
                            files[i].status.size);
    }
    if (files.size() > kListedMembers)
        list += fmt::format(", and {} more", files.size() - kListedMembers);
    return list;
}

Result<const Member*> choose_member(const std::vector<Member>& files, const std::string& path,
                                    const std::string& wanted) {
    const auto bad_source = [&](const std::string& what) {
        return error_with(ErrorCode::bad_source, "{}: {}", path, what);
    };
    if (files.empty())
        return bad_source("the zip archive holds no files; fetch the download again");
    const auto named = [](const char* end) {
        return [end](const Member& file) { return file.name.ends_with(end); };
    };
    if (std::ranges::all_of(files, named(".npy"))) {
        return bad_source(fmt::format(
            "this is NumPy's .npz, with the arrays {}; write text in Python first, a word and its "
            "numbers a line, separated by blanks",
            list_of(files)));
    }
    if (std::ranges::any_of(files, named("/data.pkl"))) {
        return bad_source(
            "this is a PyTorch file (.pt); it is not unpickled, which could run any program; write "
            "text in Python first, a word and its numbers a line, separated by blanks");
    }
    if (wanted.empty()) {
        if (files.size() == 1) return &files.front();
        return bad_source(
            fmt::format("the zip archive holds {} files; --member NAME takes one of them: {}",
                        files.size(), list_of(files)));
    }
    const auto found = std::ranges::find(files, wanted, &Member::name);
    if (found != files.end()) return &*found;
    return bad_source(fmt::format("the zip archive holds no member {}; it holds {}",
                                  printable(wanted, 255), list_of(files)));
}

/// Why we cannot read a member although it is not damaged.
std::optional<std::string> unsupported_reason(const zip_stat_t& status) {
    if (status.encryption_method != ZIP_EM_NONE) {
        return "is encrypted; unpack it with its password first, for stdin (-): unzip -p FILE "
               "MEMBER";
    }
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE) {
        return fmt::format(
            "is packed by method {}, and only stored and deflated ones are taken; unpack it first, "
            "for stdin (-): 7z e -so FILE MEMBER",
            status.comp_method);
    }
    return std::nullopt;
}

}  // namespace

void ZipMember::Discard::operator()(zip* archive) const { ::zip_discard(archive); }
void ZipMember::Close::operator()(zip_file* file) const { ::zip_fclose(file); }

Result<ZipMember> ZipMember::open(int fd, const std::string& path, const std::string& member) {
    UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own) return system_error(path, "cannot open the zip archive", errno);
    const auto status_of_file = file_status(own.get(), path);
    if (!status_of_file) return status_of_file.error();
    const auto size = static_cast<std::uint64_t>(status_of_file->st_size);
    if (Status checked = check_directory(own.get(), size, path); !checked) return checked.error();
    ZipMember opened;
    opened.path_ = path;
    zip_error_t error;
    ::zip_error_init(&error);
    opened.archive_.reset(ArchiveReader::open(std::move(own), size, &error));
    if (opened.archive_ == nullptr) {
        const Error fault =
            zip_fault(path, &error,
                      "this begins like a zip archive, but its directory, which stands at its end, "
                      "is missing or damaged: the download is not complete");
        ::zip_error_fini(&error);
        return fault;
    }
    ::zip_error_fini(&error);

    auto files = files_of(opened.archive_.get(), path);
    if (!files) return files.error();
    const auto chosen = choose_member(*files, path, member);
    if (!chosen) return chosen.error();
    const auto& [index, name, status] = **chosen;
    if (const auto refusal = unsupported_reason(status)) {
        return error_with(ErrorCode::bad_source, "{}: the member {} {}", path, printable(name, 255),
                          *refusal);
    }
    opened.name_ = name;
    opened.packed_bytes_ = status.comp_size;
    opened.text_bytes_ = status.size;
    opened.crc32_ = status.crc;
    opened.file_.reset(::zip_fopen_index(opened.archive_.get(), index, 0));
    if (opened.file_ == nullptr) {
        return zip_fault(
            path, ::zip_get_error(opened.archive_.get()),
            fmt::format("the member {} of the zip archive is damaged", printable(name, 255)));
    }
    return opened;
}

Result<std::size_t> ZipMember::read(std::span<char> buffer) {
    const zip_int64_t got = ::zip_fread(file_.get(), buffer.data(), buffer.size());
    if (got < 0) {
        return zip_fault(
            path_, ::zip_file_get_error(file_.get()),
            fmt::format(
                "the member {} of the zip archive is damaged or cut, found at byte {} of its text",
                printable(name_, 255), position_));
    }
    position_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
}

std::uint64_t ZipMember::packed_position() const {
    if (position_ >= text_bytes_) return packed_bytes_;
    return static_cast<std::uint64_t>(static_cast<double>(packed_bytes_) *
                                      static_cast<double>(position_) /
                                      static_cast<double>(text_bytes_));
}

}  // namespace gloved::source
