// The files that Stanford publishes, told by their lines and their width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::source {

struct KnownFile {
    std::string_view name;
    std::size_t dim = 0;
    std::uint64_t lines = 0;
};

/// The published file of that many lines and numbers a line; nullopt for any other.
std::optional<KnownFile> known_file(std::uint64_t lines, std::size_t dim);

/// The published file that a shorter one may be the beginning of: the one of `dim` numbers a line
/// with the fewest lines beyond `lines`. nullopt when the source is a known file, when no known one
/// has more lines, or when `name` (a path, or a zip archive's member) is not the name of a GloVe
/// file: one that holds «glove», in capitals or not. Neither is one that holds «sample», such as
/// the excerpt that comes with gloved.
std::optional<KnownFile> maybe_truncated(std::string_view name, std::uint64_t lines,
                                         std::size_t dim);

/// 2196017 as «2,196,017».
std::string with_commas(std::uint64_t number);

}  // namespace gloved::source
