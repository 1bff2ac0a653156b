// What has the name that a new model is to take, and whether that may be replaced.
#pragma once

#include <string>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// Opens a directory, but follows no symbolic link. No descriptor and errno if that fails.
UniqueFd open_directory_at(int parent, const std::string& name);

/// Refuses what must not or cannot be replaced: all but a model or an empty directory, a mount
/// point, and what this user may not remove. `target` is its path. Errors: conflict, io.
Status check_target(int parent, const std::string& name, const std::string& target);

/// Refuses what took the old model's place between check_target and the exchange, and is called
/// `old` now. Errors: conflict, io.
Status check_old(int parent, const std::string& old, const std::string& old_path,
                 const std::string& target);

}  // namespace gloved::format
