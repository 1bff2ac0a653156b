// Checks whether memory has room for what the daemon is about to load.
#pragma once

#include <cstddef>
#include <span>

#include "common/result.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Checks whether a reload's model fits into the memory that available_memory() reports, besides
/// the models that are loaded. Counts what the model's indexes, its SpellingIndex, its lists and
/// the cpu engine allocate. `planes`: the engine uses a plane, and so allocates one if the model
/// stores none. `locks_files`: the files will be locked in memory, and so count too. A model that
/// cannot be read passes, since loading it gives a better error. GPU memory is not checked here.
/// Error: unavailable.
Status check_memory_for(const ModelSetting& setting, std::span<const ListSetting> lists,
                        bool planes, bool locks_files);
/// Checks whether memory has room for a fine plane of `bytes` and for a reload of the model
/// besides. Error: unavailable.
Status check_memory_for_fine_plane(const ModelSetting& setting, bool planes, std::size_t bytes);
/// As check_memory_for, for lists of a model of `rows` rows, which serves already.
Status check_memory_for_lists(const ModelSetting& setting, std::span<const ListSetting> lists,
                              std::size_t rows);

}  // namespace gloved::daemon
