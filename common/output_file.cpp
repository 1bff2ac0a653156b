#include "common/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "common/access.hpp"
#include "common/error_with.hpp"
#include "common/format/own_files.hpp"

namespace gloved {
namespace {

/// Maximum length added to a name: the affixes and two numbers of ten digits.
constexpr std::size_t kMaxAround = 1 + 8 + 10 + 1 + 10;
constexpr int kPollMs = 100;

}  // namespace

std::string describe_wrong_name(const std::string& path, char separator) {
    const bool is_csv = path.ends_with(".csv");
    if (!is_csv && (separator == '\t' || !path.ends_with(".tsv"))) return {};
    return fmt::format("{}: {} stand between its values, not {}; the man page tells how to read it",
                       path, separator == '\t' ? "TABs" : "blanks", is_csv ? "commas" : "TABs");
}

OutputFile::OutputFile(std::string target, const std::atomic<bool>& stop)
    : target_(std::move(target)),
      stop_(&stop),
      to_terminal_(target_ == "-" && ::isatty(STDOUT_FILENO) == 1) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : target_(std::move(other.target_)),
      stop_(other.stop_),
      parent_path_(std::move(other.parent_path_)),
      name_(std::move(other.name_)),
      staged_(std::exchange(other.staged_, {})),
      parent_(std::move(other.parent_)),
      fd_(std::move(other.fd_)),
      to_terminal_(other.to_terminal_),
      terminal_text_(std::move(other.terminal_text_)),
      bytes_(other.bytes_),
      mapped_(std::exchange(other.mapped_, {})) {}

OutputFile::~OutputFile() {
    if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
    if (!staged_.empty()) ::unlinkat(parent_.get(), staged_.c_str(), 0);
}

Result<OutputFile> OutputFile::create(const std::string& target, const std::atomic<bool>& stop) {
    OutputFile output(target, stop);
    if (target == "-") return output;
    const std::size_t slash = target.rfind('/');
    output.parent_path_ = slash == std::string::npos ? "."
                          : slash == 0               ? "/"
                                                     : target.substr(0, slash);
    output.name_ = slash == std::string::npos ? target : target.substr(slash + 1);
    if (output.name_.empty() || output.name_ == "." || output.name_ == "..") {
        return conflict("'{}': this path has no file name", target);
    }
    auto parent = open_directory(output.parent_path_);
    if (!parent) return parent.error();
    output.parent_ = *std::move(parent);
    if (output.name_.size() > NAME_MAX - kMaxAround) {
        return conflict("{}: the file's name has {} bytes; {} at most can be written", target,
                        output.name_.size(), NAME_MAX - kMaxAround);
    }
    const auto old = output.check_target();
    if (!old) return old.error();
    // Open to its owner alone until it has the old file's mode, which may be restrictive.
    const mode_t mode = *old ? 0600 : 0666;
    if (format::is_model(output.parent_.get())) {
        return conflict("{}: lies in a model's directory; choose another place", target);
    }
    for (int attempt = 0;; ++attempt) {
        output.staged_ = fmt::format(".{}.gloved-{}-{}", output.name_, ::getpid(), attempt);
        // Also readable: a writable mapping requires it.
        output.fd_ = UniqueFd(::openat(output.parent_.get(), output.staged_.c_str(),
                                       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
        if (output.fd_) {
            if (Status kept = output.keep_access_of_target(); !kept) return kept.error();
            return output;
        }
        if (errno != EEXIST || attempt == 100) {
            output.staged_.clear();
            return system_error(output.parent_path_, "cannot create a file in it", errno);
        }
    }
}

Status OutputFile::write(std::string_view text) {
    const int fd = fd_ ? fd_.get() : STDOUT_FILENO;
    std::string shown;
    if (to_terminal_) {
        terminal_text_.append(shown, text);
        text = shown;
    }
    while (!text.empty()) {
        if (*stop_) return Error{ErrorCode::interrupted, "interrupted"};
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) {
                // stdout was left non-blocking. The timeout lets a signal be noticed that came
                // before poll().
                pollfd ready{fd, POLLOUT, 0};
                (void)::poll(&ready, 1, kPollMs);
                continue;
            }
            return system_error(target_, "cannot write", errno);
        }
        text.remove_prefix(static_cast<std::size_t>(written));
        bytes_ += static_cast<std::uint64_t>(written);
    }
    return {};
}

Result<std::span<std::byte>> OutputFile::map(std::uint64_t bytes) {
    assert(fd_ && bytes_ == 0 && bytes != 0);
    int refused = 0;
    do {
        refused = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes));
    } while (refused == EINTR && !*stop_);
    if (refused == EINTR) return Error{ErrorCode::interrupted, "interrupted"};
    if (refused != 0) {
        struct statvfs disk {};
        const bool known = refused == ENOSPC && ::fstatvfs(fd_.get(), &disk) == 0;
        // The access copied so far is this file's own.
        struct stat status {};
        const bool taken = known && ::fstat(fd_.get(), &status) == 0;
        const double free_bytes =
            !taken ? 0.0
                   : static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) +
                         static_cast<double>(status.st_blocks) * 512.0;
        return system_error(
            target_,
            fmt::format(
                "it would take {:.3f} GB{}", static_cast<double>(bytes) / 1e9,
                taken ? fmt::format(", and its disk has {:.3f} GB free", free_bytes / 1e9) : ""),
            refused);
    }
    void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (data == MAP_FAILED) return system_error(target_, "cannot map", errno);
    mapped_ = {static_cast<std::byte*>(data), bytes};
    bytes_ = bytes;
    return mapped_;
}

void OutputFile::drop_pages(std::uint64_t offset, std::uint64_t bytes) {
    assert(offset <= mapped_.size() && bytes <= mapped_.size() - offset);
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t begin = offset / page * page;
    (void)::madvise(mapped_.data() + begin, offset + bytes - begin, MADV_DONTNEED);
}

Status OutputFile::sync() { return fd_ ? sync_to_disk(fd_.get(), target_) : Status(); }

Status OutputFile::publish() {
    if (!fd_) return {};
    // Checked again: the first check may be long ago.
    if (Status kept = keep_access_of_target(); !kept) return kept;
    if (::renameat(parent_.get(), staged_.c_str(), parent_.get(), name_.c_str()) != 0)
        return system_error(target_, "cannot publish", errno);
    staged_.clear();
    return sync_to_disk(parent_.get(), parent_path_);
}

Result<UniqueFd> OutputFile::check_target() const {
    struct stat status {};
    if (::fstatat(parent_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return UniqueFd();
        return system_error(target_, "cannot stat", errno);
    }
    if (!S_ISREG(status.st_mode)) {
        // Renaming over a device, FIFO or link would replace it, not write to it.
        const std::string what =
            S_ISDIR(status.st_mode) ? "a directory"
            : S_ISLNK(status.st_mode)
                ? fmt::format("a symbolic link to {}", read_link(parent_.get(), name_))
                : "no regular file";
        return conflict("{}: exists and is {}; choose another file", target_, what);
    }
    // Renaming needs no write permission on the file; respect a user who has removed it.
    if (::faccessat(parent_.get(), name_.c_str(), W_OK, AT_EACCESS) != 0)
        return system_error(target_, "exists and cannot be written", errno);
    UniqueFd old(::openat(parent_.get(), name_.c_str(),
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!old && errno == ENOENT) return UniqueFd();
    if (!old) return system_error(target_, "cannot open", errno);
    const auto around = file_status(parent_.get(), parent_path_);
    if (!around) return around.error();
    const auto owned = file_status(old.get(), target_);
    if (!owned) return owned.error();
    if (Status replaceable = check_replaceable(*around, *owned, target_); !replaceable)
        return replaceable.error();
    return old;
}

Status OutputFile::keep_access_of_target() const {
    const auto old = check_target();
    if (!old) return old.error();
    return *old ? keep_access(old->get(), fd_.get(), 0777, target_) : Status();
}

}  // namespace gloved
