// Who may access the files that gloved makes: modes for a new file; mode, owner and access control
// lists of the old file for one that replaces it.
#pragma once

#include <sys/stat.h>

#include <string>

#include "common/result.hpp"

namespace gloved {

/// Read-only for all: files of a model never change.
inline constexpr mode_t kModelFileMode = 0444;

/// Whether a directory is shared by its group: set-group-ID and group-writable (2775).
inline bool is_shared(const struct stat& directory) { return (directory.st_mode & 02020) == 02020; }

/// Mode of a new model's directory, independent of the umask. In a shared parent the group may
/// replace and remove it.
inline mode_t model_directory_mode(const struct stat& parent) {
    return is_shared(parent) ? 02775 : 0755;
}

/// Modes of unfinished directories and files: only users who may replace the result can open them,
/// because whoever can open a file can also lock it.
inline mode_t unfinished_directory_mode(const struct stat& parent) {
    return is_shared(parent) ? 02770 : 0700;
}
inline mode_t unfinished_file_mode(const struct stat& directory) {
    return is_shared(directory) ? 0660 : 0600;
}

/// Why a file or directory that was there before is not taken over: it belongs to neither this user
/// nor root, or others may write to it. They decide about its content, whatever its checksums say.
/// The group of a shared directory (is_shared) is trusted. Empty if nothing speaks against it.
std::string describe_distrust(const struct stat& status);

/// Refuses (conflict) to replace or adopt an entry of a sticky directory that belongs to another
/// user, neither root nor the directory's owner. Only its owner, the directory's and root can
/// replace it. Not even root does where everybody may put entries, as in /tmp: what replaces an
/// entry keeps its owner, so whoever made the name first would get the new content. (Linux guards
/// files there by the same rule: fs.protected_regular.) `path` names the entry in messages.
Status check_replaceable(const struct stat& directory, const struct stat& entry,
                         const std::string& path);

/// Copies mode, group, owner and access control lists from the open file `from` to `to`, which is
/// about to replace it. Of the mode, copies only the bits in `bits`. The owner is kept only by
/// root, the group only by root and its members. If the group cannot be kept, the access control
/// lists are not kept either, and the file's group gets no more access than everybody has. `path`
/// names the file in messages. Error: io.
Status keep_access(int from, int to, mode_t bits, const std::string& path);

}  // namespace gloved
