// Files: owned descriptors, mappings, reads and writes at offsets, with errors that name the path.
#pragma once

#include <sys/stat.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.hpp"

namespace gloved {

/// Owns a file descriptor and closes it.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~UniqueFd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    /// Gives the descriptor to the caller, who has to close it.
    int release() { return std::exchange(fd_, -1); }
    /// Closes the descriptor now.
    void reset();

  private:
    int fd_ = -1;
};

/// What to do where descriptors are too few, for messages.
inline constexpr std::string_view kMoreDescriptors =
    "allow more with ulimit -n, or LimitNOFILE= of the service";

/// Makes an ErrorCode::io with the message «PATH: WHAT: REASON», the reason being the system's text
/// for `error_number`, an errno; with the remedy where descriptors are too few.
Error system_error(std::string_view path, std::string_view what, int error_number);

/// Opens the regular file `name` in `directory_fd` for reading. Refuses a FIFO, device or directory
/// without blocking. `path` names the file in messages. Error: io.
Result<UniqueFd> open_file_at(int directory_fd, const char* name, const std::string& path);

/// Opens a directory for reading. Error: io.
Result<UniqueFd> open_directory(const std::string& path);

/// What the symbolic link `name` leads to, for a message; «?» if that cannot be read.
std::string read_link(int directory_fd, const std::string& name);

/// Whether there is no file `name` in an open directory.
bool lacks_file(int directory_fd, const char* name);

/// Calls fstat. Error: io, with `path` in its message.
Result<struct stat> file_status(int fd, const std::string& path);

/// Writes all of `bytes` at `offset`; continues after short writes and EINTR. Error: io, with
/// `path` in its message.
Status write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                    const std::string& path);

/// Fills `to` with the file's bytes from `offset` on; continues after short reads and EINTR. Error:
/// io, also if the file ends early.
Status read_all_at(int fd, std::span<std::byte> to, std::uint64_t offset, const std::string& path);

/// Calls fsync for a file or directory. Error: io, with `path` in its message.
Status sync_to_disk(int fd, const std::string& path);

/// A file mapped read-only. Views into it are valid as long as it lives.
class MappedFile {
  public:
    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          file_(std::move(other.file_)),
          changed_(other.changed_) {}
    MappedFile& operator=(MappedFile&& other) noexcept {
        if (this != &other) {
            unmap();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            file_ = std::move(other.file_);
            changed_ = other.changed_;
        }
        return *this;
    }
    ~MappedFile() { unmap(); }

    /// Maps the first `size_bytes` bytes. The caller has checked with fstat that the file has as
    /// many: access to a page beyond the end of a file raises SIGBUS. If `size_bytes` is 0, the
    /// span is empty. The descriptor may be closed afterwards. Error: io.
    static Result<MappedFile> map(int fd, std::size_t size_bytes, const std::string& path);

    /// Maps all of an open regular file, which stays open, for `has_kept_its_size`. Error: io.
    static Result<MappedFile> map_whole(UniqueFd file, const std::string& path);

    /// Opens the regular file `name` in a directory as `open_file_at` does, and maps it as
    /// `map_whole` does. Error: io.
    static Result<MappedFile> open_at(int directory_fd, const char* name, const std::string& path);

    std::span<const std::byte> bytes() const {
        return {static_cast<const std::byte*>(data_), size_};
    }
    std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
    std::size_t size_bytes() const { return size_; }

    /// Whether a file mapped by `map_whole` still has the size it had then. If it was cut short,
    /// the rest of its last page reads as zeros, and access to later pages raises SIGBUS. True if
    /// the system cannot tell. Costs a system call, less than a microsecond.
    bool has_kept_its_size() const;
    /// Whether the file `name` of a directory is the one that `map_whole` mapped, and its content
    /// has not changed since: by device, number and time of the last change, which also links and
    /// modes set.
    bool is_still(int directory_fd, const char* name) const;

  private:
    MappedFile(void* data, std::size_t size) : data_(data), size_(size) {}
    void unmap();

    void* data_ = nullptr;
    std::size_t size_ = 0;
    UniqueFd file_;
    timespec changed_{};  // st_ctim of file_ when it was mapped
};

}  // namespace gloved
