// Which files are gloved's. Their content tells, never a name alone: whatever removes or replaces
// files asks here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::format {

/// What a conversion lays aside. It has this name for a moment only, and no content then.
inline constexpr const char* kSpoolFile = "spool";

/// How a file of a model is known.
enum class KnownBy {
    beginning,     ///< by its first bytes
    values_there,  ///< it is plain text: by the values file beside it
    emptiness,     ///< it has no content
};

/// A file that a model's directory may hold, while it is made or later.
struct OwnFile {
    const char* name;
    KnownBy known_by;
    std::string_view beginning;
};

/// All of them. The values come last: files removed in this order can be told as long as any is
/// left.
std::span<const OwnFile> own_files();

/// Whether the directory is a model, or what is left of one: its values file begins with the magic.
/// False where that cannot be read.
bool is_model(int directory_fd);

/// Whether the file `name` has a name of own_files() and is gloved's, empty, or not there. Error:
/// io.
Result<bool> is_own_file(int directory_fd, std::string_view name, const std::string& path);

/// The name of an entry that gloved did not make; nothing where there is none. An empty file with
/// the name of one of gloved's counts as gloved's: a process that was killed may have left it.
/// Error: io.
Result<std::optional<std::string>> find_foreign_entry(int directory_fd, const std::string& path);

/// Whether each file is looked at before it is removed.
enum class Look {
    at_names,    ///< the caller holds the directory and has made all that is in it
    at_contents  ///< somebody else may have put a file there since the caller looked
};

/// Removes gloved's files from the directory `name`, then the directory. What else is there stays,
/// with the directory. Fine where there is no such directory. Error: io.
Status remove_own_directory(int parent_fd, const std::string& name, const std::string& path,
                            Look look);

/// The names in a directory but «.» and «..». Error: io.
Result<std::vector<std::string>> list_directory(int fd, const std::string& path);

}  // namespace gloved::format
