#include "common/format/publish_target.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "common/access.hpp"
#include "common/error_with.hpp"
#include "common/format/own_files.hpp"
#include "common/quoting.hpp"

namespace gloved::format {
namespace {

/// Whether `name` is a mount point, which cannot be renamed.
Result<bool> is_mount_point(int parent, const std::string& name, const std::string& target) {
    struct statx status {};
    if (::statx(parent, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &status) !=
        0) {
        return system_error(target, "cannot stat", errno);
    }
    if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
        return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    }
    const auto around = file_status(parent, target);
    if (!around) return around.error();
    return gnu_dev_makedev(status.stx_dev_major, status.stx_dev_minor) != around->st_dev;
}

/// Whether a sticky directory keeps this user from removing another user's entry.
bool is_kept_by_stickiness(const struct stat& directory) {
    const uid_t user = ::geteuid();
    return (directory.st_mode & S_ISVTX) != 0 && user != 0 && user != directory.st_uid;
}

/// Whether this user may rename the directory and remove its files.
Status check_removable(int parent, int directory, bool empty, const std::string& target) {
    const auto around = file_status(parent, target);
    if (!around) return around.error();
    const auto status = file_status(directory, target);
    if (!status) return status.error();
    if (Status replaceable = check_replaceable(*around, *status, target); !replaceable)
        return replaceable;
    if (!empty && is_kept_by_stickiness(*status)) {
        return error_with(
            ErrorCode::conflict,
            "{}: belongs to another user and is sticky, so that only its owner can replace it; "
            "choose another name",
            target);
    }
    if (!empty && ::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        if (errno == EROFS) {
            return error_with(
                ErrorCode::conflict,
                "{}: lies on a read-only file system, where nothing can be replaced; choose "
                "another place",
                target);
        }
        if (errno == EPERM) {
            return error_with(
                ErrorCode::conflict,
                "{}: may not be changed by anybody, as an immutable directory (lsattr -d); choose "
                "another name",
                target);
        }
        if (errno != EACCES) return system_error(target, "cannot tell who may write it", errno);
        return error_with(
            ErrorCode::conflict,
            "{}: this user may not remove the model that is there; its owner can allow it "
            "(chmod g+w), or choose another name",
            target);
    }
    return {};
}

}  // namespace

UniqueFd open_directory_at(int parent, const std::string& name) {
    return UniqueFd(
        ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

Status check_target(int parent, const std::string& name, const std::string& target) {
    struct stat status {};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return {};
        return system_error(target, "cannot stat", errno);
    }
    if (S_ISLNK(status.st_mode)) {
        // What a link leads to may be another's, and would not be what takes its name.
        return conflict(
            "{}: is a symbolic link to {}; name that directory itself, or remove the "
            "link",
            target, read_link(parent, name));
    }
    if (!S_ISDIR(status.st_mode)) {
        return conflict("{}: exists and is not a directory; choose another name or remove it",
                        target);
    }
    const auto mounted = is_mount_point(parent, name, target);
    if (!mounted) return mounted.error();
    if (*mounted) {
        return error_with(
            ErrorCode::conflict,
            "{0}: is a mount point, which a model cannot replace; name a directory in "
            "it, such as {0}/glove",
            target);
    }
    const UniqueFd directory = open_directory_at(parent, name);
    if (!directory) return system_error(target, "cannot open the directory", errno);
    const auto names = list_directory(directory.get(), target);
    if (!names) return names.error();
    const auto foreign = find_foreign_entry(directory.get(), target);
    if (!foreign) return foreign.error();
    if (*foreign || (!names->empty() && !is_model(directory.get()))) {
        return error_with(
            ErrorCode::conflict,
            "{}: exists and holds {}, which gloved did not make, so nothing there is touched; "
            "choose another directory, or move or remove this one",
            target, printable(foreign->value_or(names->empty() ? "" : names->front()), NAME_MAX));
    }
    return check_removable(parent, directory.get(), names->empty(), target);
}

Status check_old(int parent, const std::string& old, const std::string& old_path,
                 const std::string& target) {
    const UniqueFd directory = open_directory_at(parent, old);
    if (!directory) {
        if (errno == ENOENT) return {};  // another process has swept it
        return system_error(old_path, "cannot open the directory", errno);
    }
    const auto foreign = find_foreign_entry(directory.get(), old_path);
    if (!foreign) return foreign.error();
    if (!*foreign) return {};
    return error_with(
        ErrorCode::conflict,
        "{}: now holds {}, which gloved did not make, so nothing there is touched; choose "
        "another directory",
        target, printable(**foreign, NAME_MAX));
}

}  // namespace gloved::format
