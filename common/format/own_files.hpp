// Recognises gloved's own files by content, never by name alone. All code that removes or replaces
// files asks here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::format {

/// The temporary file of a conversion. It has this name only for a moment, while empty.
inline constexpr const char* kSpoolFile = "spool";

/// How a file of a model is recognised.
enum class KnownBy {
    beginning,     ///< by its first bytes
    values_there,  ///< it is plain text: by the values file beside it
    emptiness,     ///< it has no content
};

/// A file that may be in a model's directory, finished or not.
struct OwnFile {
    const char* name;
    KnownBy known_by;
    std::string_view beginning;
};

/// All of them, values last: removed in this order, the rest stays recognisable as long as any is
/// left.
std::span<const OwnFile> own_files();

/// Whether the directory is a model or the rest of one: its values file begins with the magic.
/// False if that cannot be read.
bool is_model(int directory_fd);

/// Whether `name` is in own_files() and the file is gloved's, empty or missing. Error: io.
Result<bool> is_own_file(int directory_fd, std::string_view name, const std::string& path);

/// The name of an entry that gloved did not make, or nothing. An empty file with the name of one of
/// gloved's counts as gloved's: a killed process may have left it. Error: io.
Result<std::optional<std::string>> find_foreign_entry(int directory_fd, const std::string& path);

/// What to check before each file is removed.
enum class Look {
    at_names,    ///< the caller holds the directory and has made all that is in it
    at_contents  ///< somebody else may have put a file there since the caller looked
};

/// Removes gloved's files from directory `name`, then the directory. Other entries stay, and then
/// so does the directory. Succeeds if there is no such directory. Error: io.
Status remove_own_directory(int parent_fd, const std::string& name, const std::string& path,
                            Look look);

/// Names in a directory, without «.» and «..». Error: io.
Result<std::vector<std::string>> list_directory(int fd, const std::string& path);

}  // namespace gloved::format
