#include "common/access.hpp"

#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "common/error_with.hpp"
#include "common/files.hpp"

namespace gloved {
namespace {

constexpr std::array<const char*, 2> kAccessLists = {"system.posix_acl_access",
                                                     "system.posix_acl_default"};

bool has_no_list(int error) { return error == ENODATA || error == EOPNOTSUPP || error == ENOSYS; }

Status keep_list(int from, int to, const char* name, const std::string& path) {
    const ssize_t size = ::fgetxattr(from, name, nullptr, 0);
    if (size < 0) {
        if (!has_no_list(errno))
            return system_error(path, "cannot read the access control list", errno);
        // `to` may have one from its parent's default.
        if (::fremovexattr(to, name) != 0 && !has_no_list(errno))
            return system_error(path, "cannot remove the access control list", errno);
        return {};
    }
    std::vector<char> list(static_cast<std::size_t>(size));
    const ssize_t got = ::fgetxattr(from, name, list.data(), list.size());
    if (got < 0) return system_error(path, "cannot read the access control list", errno);
    if (::fsetxattr(to, name, list.data(), static_cast<std::size_t>(got), 0) != 0)
        return system_error(path, "cannot set the access control list", errno);
    return {};
}

/// Whether the error says that this user may not change an owner or group, or that it does not
/// exist.
bool is_refused(int error) { return error == EPERM || error == EINVAL; }

}  // namespace

std::string describe_distrust(const struct stat& status) {
    if (status.st_uid != ::geteuid() && status.st_uid != 0)
        return fmt::format("belongs to user {}, who is neither this user nor root", status.st_uid);
    // The mask of an access control list stands in the group's bits.
    const mode_t others = is_shared(status) ? 0002 : 0022;
    if ((status.st_mode & others) == 0) return {};
    return fmt::format("can be written by {} (mode {:04o})",
                       (status.st_mode & 0002) != 0 ? "everybody" : "its group",
                       status.st_mode & 07777);
}

Status check_replaceable(const struct stat& directory, const struct stat& entry,
                         const std::string& path) {
    const uid_t user = ::geteuid();
    const uid_t owner = entry.st_uid;
    if ((directory.st_mode & S_ISVTX) == 0 || owner == user) return {};
    if (user != 0) {
        if (user == directory.st_uid) return {};
        return conflict(
            "{}: belongs to user {}, and the directory around it is sticky, so that "
            "only its owner can replace it; choose another name",
            path, owner);
    }
    if ((directory.st_mode & 0002) == 0 || owner == directory.st_uid) return {};
    return conflict(
        "{}: belongs to user {}, in a directory where everybody may put files, so "
        "what replaced it would be that user's; choose another name, or remove it",
        path, owner);
}

Status keep_access(int from, int to, mode_t bits, const std::string& path) {
    const auto old = file_status(from, path);
    if (!old) return old.error();
    const auto made = file_status(to, path);
    if (!made) return made.error();
    bool group_kept = true;
    if ((old->st_uid != made->st_uid || old->st_gid != made->st_gid) &&
        ::fchown(to, old->st_uid, old->st_gid) != 0) {
        if (!is_refused(errno)) return system_error(path, "cannot keep the owner", errno);
        if (old->st_gid != made->st_gid && ::fchown(to, static_cast<uid_t>(-1), old->st_gid) != 0) {
            if (!is_refused(errno)) return system_error(path, "cannot keep the group", errno);
            group_kept = false;
        }
    }
    mode_t mode = old->st_mode & bits;
    if (group_kept) {
        for (const char* name : kAccessLists) {
            if (name == kAccessLists[1] && !S_ISDIR(old->st_mode)) continue;
            if (Status kept = keep_list(from, to, name, path); !kept) return kept;
        }
    } else {
        // No more than both had before.
        mode &= ~mode_t{02070} | (mode & mode_t{07}) << 3;
    }
    // After the list, because its mask is the mode's group bits, and after the owner, because chown
    // clears bits.
    if (::fchmod(to, mode) != 0) return system_error(path, "cannot keep the mode", errno);
    return {};
}

}  // namespace gloved
