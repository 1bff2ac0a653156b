#include "common/files.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved {

void UniqueFd::reset() {
    // Not retried on EINTR: on Linux the descriptor is closed either way.
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Error system_error(std::string_view path, std::string_view what, int error_number) {
    Error error = error_with(ErrorCode::io, "{}: {}: {}", path, what,
                             std::generic_category().message(error_number));
    if (error_number == EMFILE) error.message.append("; ").append(kMoreDescriptors);
    return error;
}

Result<UniqueFd> open_file_at(int directory_fd, const char* name, const std::string& path) {
    // O_NONBLOCK: opening a FIFO without a writer would block forever.
    UniqueFd fd(::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) return system_error(path, "cannot open", errno);
    auto status = file_status(fd.get(), path);
    if (!status) return status.error();
    if (!S_ISREG(status->st_mode)) {
        return error_with(ErrorCode::io, "{}: not a regular file", path);
    }
    return fd;
}

Result<UniqueFd> open_directory(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return system_error(path, "cannot open the directory", errno);
    return fd;
}

std::string read_link(int directory_fd, const std::string& name) {
    std::array<char, PATH_MAX> text{};
    const ssize_t bytes = ::readlinkat(directory_fd, name.c_str(), text.data(), text.size());
    return bytes < 0 ? "?" : printable({text.data(), static_cast<std::size_t>(bytes)}, PATH_MAX);
}

Result<struct stat> file_status(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) return system_error(path, "cannot stat", errno);
    return status;
}

Status write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                    const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t written =
            ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0) {
            if (errno == EINTR) continue;
            return system_error(path, "cannot write", errno);
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::uint64_t>(written);
    }
    return {};
}

Status read_all_at(int fd, std::span<std::byte> to, std::uint64_t offset, const std::string& path) {
    while (!to.empty()) {
        const ssize_t got = ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_error(path, "cannot read", errno);
        if (got == 0)
            return error_with(ErrorCode::io,
                              "{}: the file ends before the bytes that were written to it", path);
        to = to.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
    return {};
}

Status sync_to_disk(int fd, const std::string& path) {
    if (::fsync(fd) != 0) return system_error(path, "cannot write to disk", errno);
    return {};
}

bool lacks_file(int directory_fd, const char* name) {
    struct stat status {};
    return ::fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

Result<MappedFile> MappedFile::map(int fd, std::size_t size_bytes, const std::string& path) {
    if (size_bytes == 0) return MappedFile();
    void* data = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return system_error(path, "cannot map", errno);
    return MappedFile(data, size_bytes);
}

Result<MappedFile> MappedFile::map_whole(UniqueFd file, const std::string& path) {
    const auto status = file_status(file.get(), path);
    if (!status) return status.error();
    auto mapped = map(file.get(), static_cast<std::size_t>(status->st_size), path);
    if (!mapped) return mapped;
    mapped->file_ = std::move(file);
    mapped->changed_ = status->st_ctim;
    return mapped;
}

Result<MappedFile> MappedFile::open_at(int directory_fd, const char* name,
                                       const std::string& path) {
    auto fd = open_file_at(directory_fd, name, path);
    if (!fd) return fd.error();
    return map_whole(*std::move(fd), path);
}

bool MappedFile::has_kept_its_size() const {
    struct stat status {};
    return !file_ || ::fstat(file_.get(), &status) != 0 ||
           static_cast<std::size_t>(status.st_size) == size_;
}

bool MappedFile::is_still(int directory_fd, const char* name) const {
    struct stat mapped {};
    struct stat named {};
    return file_ && ::fstat(file_.get(), &mapped) == 0 &&
           ::fstatat(directory_fd, name, &named, 0) == 0 && mapped.st_dev == named.st_dev &&
           mapped.st_ino == named.st_ino && named.st_ctim.tv_sec == changed_.tv_sec &&
           named.st_ctim.tv_nsec == changed_.tv_nsec;
}

void MappedFile::unmap() {
    if (data_ != nullptr) ::munmap(data_, size_);
    data_ = nullptr;
    size_ = 0;
    file_.reset();
}

}  // namespace gloved
