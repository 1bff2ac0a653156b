// Who may do what with a file or directory: as documented when it is new, as it was when it
// replaces another.
#pragma once

#include <sys/stat.h>

#include <string>

#include "common/result.hpp"

namespace gloved {

/// Files of a model never change, so nobody may write them.
inline constexpr mode_t kModelFileMode = 0444;

/// Whether a directory's group shares the work in it: set-group-ID and writable for the group
/// (2775).
inline bool is_shared(const struct stat& directory) { return (directory.st_mode & 02020) == 02020; }

/// Mode of a new model's directory, whatever the umask. In a shared parent the group may replace
/// and remove it too.
inline mode_t model_directory_mode(const struct stat& parent) {
    return is_shared(parent) ? 02775 : 0755;
}

/// Modes of what is being made: open to those who may replace the result, and to nobody else,
/// because whoever can open a file can also hold its lock.
inline mode_t unfinished_directory_mode(const struct stat& parent) {
    return is_shared(parent) ? 02770 : 0700;
}
inline mode_t unfinished_file_mode(const struct stat& directory) {
    return is_shared(directory) ? 0660 : 0600;
}

/// Gives `to` the mode, group, owner and access control lists of `from`, which it is about to
/// replace. Of the mode only the bits in `bits`. Only root can give a file to another owner; others
/// keep the group if they are in it. Where the group cannot be kept, the lists are not either, and
/// the group gets no more than others have. `path` is what messages call the files. Error: io.
Status keep_access(int from, int to, mode_t bits, const std::string& path);

}  // namespace gloved
