// The directory of lists: a file of it is a list of every model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// The lists of a model: those of its settings, `named`, and after them, by name, one for each
/// regular file of `directory` whose name no other list has. The name is the file's, without `.txt`
/// at its end. An empty `directory` is none. Of other files the log tells why they are no lists,
/// but for those whose names begin with '.' or end with '~'. Errors: io, if the directory cannot be
/// read; bad_source, if two files have one name or there are more than kMaxLists lists. Both name
/// the directory.
Result<std::vector<ListSetting>> find_lists(std::span<const ListSetting> named,
                                            const std::string& directory);

}  // namespace gloved::daemon
