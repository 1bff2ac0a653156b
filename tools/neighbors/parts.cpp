#include "tools/neighbors/parts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/access.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/own_files.hpp"

namespace gloved::neighbors {
namespace {

using format::RowRange;

constexpr mode_t kDirectoryMode = 0700;
constexpr const char* kLockFile = ".lock";
/// Names tried before giving up.
constexpr int kMaxAttempts = 100;

/// What the names of all parts of a generation have in common.
std::string generation_prefix(std::uint64_t generation) {
    return fmt::format("neighbors-{}-k", format::hex(generation));
}

/// The k of a part of the generation whose names begin with `prefix`; 0 for any other name.
std::size_t k_of(std::string_view name, std::string_view prefix) {
    std::size_t k = 0;
    if (name.starts_with(prefix))
        (void)std::from_chars(name.data() + prefix.size(), name.data() + name.size(), k);
    return k;
}

/// A part's name without the dot of an unfinished one, .NAME.gloved-PID-N.
std::string_view without_dot(std::string_view name) {
    return name.starts_with('.') ? name.substr(1) : name;
}

/// Whether `name` is that of a part of any generation.
bool is_part_name(std::string_view name) {
    constexpr std::size_t kGenerationEnd = 10 + 16;  // «neighbors-», and digits
    return name.starts_with("neighbors-") && name.size() > kGenerationEnd &&
           name.substr(kGenerationEnd).starts_with("-k");
}

/// The parts' directory: `directory`, or that beside the model.
std::string directory_of(const format::Model& model, const std::string& directory) {
    std::string path = directory.empty() ? model.path() : directory;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (!directory.empty()) return path;
    // Beside the model, also if it is called «.».
    const std::filesystem::path name = std::filesystem::path(path).filename();
    std::error_code ignored;
    if (name == "." || name == "..") path = std::filesystem::canonical(path, ignored).string();
    return path + ".neighbors-parts";
}

}  // namespace

Result<Parts> Parts::open(const format::Model& model, std::size_t k, std::size_t part_rows,
                          const std::string& directory, Access access) {
    Parts parts(model, k, part_rows);
    parts.has_default_name_ = directory.empty();
    parts.path_ = directory_of(model, directory);
    for (;;) {
        if (access != Access::shared_existing &&
            ::mkdir(parts.path_.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
            Error error =
                system_error(parts.path_, "cannot create the directory of the parts", errno);
            if (directory.empty()) error.message += "; name another one with --parts";
            return error;
        }
        if (Status opened = parts.open_directory(); !opened) return opened.error();
        const auto locked = parts.lock(access);
        if (!locked) return locked.error();
        if (*locked) break;
    }
    if (access == Access::alone && parts.has_default_name_) {
        const std::string ours = generation_prefix(model.generation());
        parts.remove_files(
            [&](std::string_view name) { return is_part_name(name) && !name.starts_with(ours); });
    }
    return parts;
}

Status Parts::open_directory() {
    // A link of the default name is somebody else's idea; one that the user names is the user's.
    const int links = has_default_name_ ? O_NOFOLLOW : 0;
    directory_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | links));
    if (!directory_) return system_error(path_, "cannot open the directory", errno);
    const auto status = file_status(directory_.get(), path_);
    if (!status) return status.error();
    if (const std::string distrust = describe_distrust(*status); !distrust.empty()) {
        return conflict(
            "{}: {}, so parts there may be anybody's; remove it, or choose another "
            "directory with --parts",
            path_, distrust);
    }
    if (format::is_model(directory_.get())) {
        return conflict("{}: is a model's directory; choose another directory with --parts", path_);
    }
    is_group_trusted_ = is_shared(*status);
    return {};
}

Result<bool> Parts::lock(Access access) {
    const std::string path = path_ + "/" + kLockFile;
    lock_ = UniqueFd(::openat(directory_.get(), kLockFile,
                              O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                              is_group_trusted_ ? 0660 : 0600));
    // Whoever had the lock before may have removed the directory.
    if (!lock_ && errno == ENOENT) return false;
    if (!lock_) return system_error(path, "cannot open", errno);
    const auto ours = file_status(lock_.get(), path);
    if (!ours) return ours.error();
    if (ours->st_uid == ::geteuid()) (void)::fchmod(lock_.get(), is_group_trusted_ ? 0660 : 0600);
    const int how = access == Access::alone ? LOCK_EX : LOCK_SH;
    if (::flock(lock_.get(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return conflict(
            "{}: another gloved-neighbors works there (lsof tells which); wait for "
            "it, or choose another directory with --parts",
            path_);
    }
    // Or the file alone.
    struct stat named {};
    return ::fstatat(directory_.get(), kLockFile, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours->st_dev == named.st_dev && ours->st_ino == named.st_ino;
}

RowRange Parts::range(std::size_t number) const {
    return {number * part_rows_, std::min((number + 1) * part_rows_, model_->rows())};
}

std::string Parts::name_of(std::size_t number) const {
    const RowRange rows = range(number);
    return fmt::format("{}{}-{}-{}", generation_prefix(model_->generation()), k_, rows.first,
                       rows.last);
}

std::string Parts::path_of(std::size_t number) const { return path_ + "/" + name_of(number); }

Result<std::optional<format::Neighbors>> Parts::read(std::size_t number) const {
    const std::string path = path_of(number);
    UniqueFd file(::openat(directory_.get(), name_of(number).c_str(),
                           O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!file && errno == ENOENT) return std::optional<format::Neighbors>();
    if (!file && errno == ELOOP) {
        return error_with(ErrorCode::io, "{}: is a symbolic link to {}; remove it", path,
                          read_link(directory_.get(), name_of(number)));
    }
    if (!file) return system_error(path, "cannot open", errno);
    const auto status = file_status(file.get(), path);
    if (!status) return status.error();
    if (!S_ISREG(status->st_mode)) return error_with(ErrorCode::io, "{}: not a regular file", path);
    std::string distrust;
    if (!is_group_trusted_) {
        distrust = describe_distrust(*status);
    } else if ((status->st_mode & 0002) != 0) {
        distrust =
            fmt::format("can be written by everybody (mode {:04o})", status->st_mode & 07777);
    }
    if (!distrust.empty()) {
        return conflict("{}: {}, so it is not used; remove it", path, distrust);
    }
    auto part = format::Neighbors::read(std::move(file), path, *model_);
    if (!part) return part.error();
    if (part->range() != range(number) || part->k() != k_) {
        return error_with(ErrorCode::mismatch,
                          "{}: holds {} neighbours of rows {} to {}, which is another part's "
                          "content; remove it",
                          path, part->k(), part->range().first, part->range().last - 1);
    }
    if (Status sound = part->verify(); !sound) return sound.error();
    return std::optional(*std::move(part));
}

Status Parts::check_ours(std::size_t number) const {
    const auto ours = is_ours(name_of(number));
    if (!ours) return ours.error();
    if (*ours) return {};
    return conflict("{}: gloved did not make this file, so it is left alone; move or remove it",
                    path_of(number));
}

Status Parts::write(std::size_t number, std::span<const format::Row> lists) const {
    if (Status ours = check_ours(number); !ours) return ours;
    const int directory = directory_.get();
    std::string staged;
    UniqueFd file;
    for (int attempt = 0; !file; ++attempt) {
        staged = fmt::format(".{}.gloved-{}-{}", name_of(number), ::getpid(), attempt);
        file = UniqueFd(
            ::openat(directory, staged.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!file && (errno != EEXIST || attempt == kMaxAttempts))
            return system_error(path_, "cannot create a file in it", errno);
    }
    Status written = [&]() -> Status {
        auto writer = format::NeighborsWriter::create(
            std::move(file), path_of(number),
            {model_->rows(), static_cast<std::uint32_t>(model_->dim()), model_->generation(),
             static_cast<std::uint32_t>(k_), range(number), 0});
        if (!writer) return writer.error();
        if (Status appended = writer->append(lists); !appended) return appended;
        if (Status finished = writer->finish(); !finished) return finished;
        if (::renameat(directory, staged.c_str(), directory, name_of(number).c_str()) != 0)
            return system_error(path_of(number), "cannot publish", errno);
        return {};
    }();
    if (written) return sync_to_disk(directory, path_);
    (void)::unlinkat(directory, staged.c_str(), 0);
    return written;
}

Result<bool> Parts::is_ours(const std::string& name) const {
    return format::begins_with(directory_.get(), name, path_ + "/" + name, format::kNeighborsMagic);
}

void Parts::remove_files(const std::function<bool(std::string_view)>& is_meant) const {
    const auto names = format::list_directory(directory_.get(), path_);
    if (!names) return;
    for (const std::string& name : *names) {
        if (!is_meant(without_dot(name))) continue;
        const auto ours = is_ours(name);
        if (ours && *ours) (void)::unlinkat(directory_.get(), name.c_str(), 0);
    }
}

void Parts::remove() const {
    const std::string ours = generation_prefix(model_->generation());
    remove_files([&](std::string_view name) {
        const std::size_t k = k_of(name, ours);
        return k != 0 && k <= k_;
    });
    (void)::unlinkat(directory_.get(), kLockFile, 0);
    if (has_default_name_) (void)::rmdir(path_.c_str());
}

void Parts::sweep(const format::Model& model, std::size_t k, std::size_t part_rows,
                  const std::string& directory) {
    if (::access(directory_of(model, directory).c_str(), F_OK) != 0) return;
    const auto parts = open(model, k, part_rows, directory, Access::alone);
    if (parts) parts->remove();
}

}  // namespace gloved::neighbors
