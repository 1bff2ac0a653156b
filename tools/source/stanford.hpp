// Recognizes the files that Stanford publishes by their number of lines and their dim.
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

/// Finds the published file with that many lines and numbers a line.
std::optional<KnownFile> known_file(std::uint64_t lines, std::size_t dim);

/// Finds the published file that may have been truncated to this one: of those with `dim` numbers a
/// line and more than `lines` lines, the shortest. nullopt for a known file, and unless `name` (a
/// path, or a zip archive's member) contains «glove» in any case and not «sample».
std::optional<KnownFile> maybe_truncated(std::string_view name, std::uint64_t lines,
                                         std::size_t dim);

/// Formats 2196017 as «2,196,017».
std::string with_commas(std::uint64_t number);

}  // namespace gloved::source
