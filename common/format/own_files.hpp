// Tells gloved's own files from those of others, by their content besides their name. All code that
// removes or replaces model files asks here first, so that no foreign file is lost.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::format {

/// The temporary file of a conversion (tools/convert/spool.hpp), which removes this name right
/// after it creates the file. So a file of this name is empty.
inline constexpr const char* kSpoolFile = "spool";

/// How a file is recognised as gloved's. An empty file with the name of one always counts as
/// gloved's: a killed process may have left it.
enum class KnownBy {
    beginning,     ///< by its first bytes
    values_there,  ///< by a values file beside it, since a keys file is plain text
    emptiness,     ///< only as an empty file
};

/// A file that may be in a model's directory, finished or not.
struct OwnFile {
    const char* name;
    KnownBy known_by;
    std::string_view beginning;  ///< its first bytes; empty unless it is known by them
};

/// All files that gloved makes in a model's directory, the values file last. Whoever removes them
/// keeps this order: then a directory that is partly removed is still recognised by its values.
std::span<const OwnFile> own_files();

/// Whether the open directory is a model, or what is left of a partly removed one: it has a values
/// file that begins with kMagic. False if the file cannot be read.
bool is_model(int directory_fd);

/// Whether the file `name` in the open directory is gloved's (KnownBy), and so may be removed or
/// replaced. False for a name that is not in own_files(); true if there is no such file. `path`
/// names the file in messages. Error: io.
Result<bool> is_own_file(int directory_fd, std::string_view name, const std::string& path);

/// Whether the regular file `name` in the open directory begins with `magic` or is empty, as a file
/// of gloved does that a killed process left. True if there is no such file. `path` names it in
/// messages. Error: io.
Result<bool> begins_with(int directory_fd, const std::string& name, const std::string& path,
                         std::span<const unsigned char> magic);

/// The name of the first entry of an open directory that is not gloved's; nullopt if all are.
/// `path` names the directory in messages. Error: io.
Result<std::optional<std::string>> find_foreign_entry(int directory_fd, const std::string& path);

/// Whether remove_own_directory examines a file before it removes it.
enum class Look {
    at_names,    ///< no: the caller made all files in the directory, and has it locked
    at_contents  ///< yes: somebody else may have put a file there
};

/// Removes gloved's files from the directory `name` in `parent_fd`, in the order of own_files(),
/// then the directory. Succeeds if there is no such directory. `path` names it in messages. Errors:
/// conflict, at the first file that has one of gloved's names but is not gloved's (only with
/// at_contents); io, also if other entries keep the directory from being removed. What was not
/// removed until then stays.
Status remove_own_directory(int parent_fd, const std::string& name, const std::string& path,
                            Look look);

/// The names of all entries of an open directory, without «.» and «..». Error: io.
Result<std::vector<std::string>> list_directory(int fd, const std::string& path);

}  // namespace gloved::format
