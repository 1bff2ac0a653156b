// Recognizes the GloVe files that Stanford publishes, by their number of lines and their dim, to
// warn about a truncated download.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::source {

/// A published file.
struct KnownFile {
    std::string_view name;
    std::size_t dim = 0;
    std::uint64_t lines = 0;
};

/// Finds the published file with that many lines, and `dim` numbers per line.
std::optional<KnownFile> known_file(std::uint64_t lines, std::size_t dim);

/// Finds the published file of which a source with `lines` lines of `dim` numbers may be a
/// truncated copy: of the published files with this dim and more lines, the shortest. `name` is the
/// source's path, or the member's in a zip archive. A name with «2024» is compared with the files
/// of that year alone, another with the others. nullopt if the source is a known file, or if `name`
/// contains neither «glove», in any case, nor «2024» and «wiki_giga», or contains «sample».
std::optional<KnownFile> maybe_truncated(std::string_view name, std::uint64_t lines,
                                         std::size_t dim);

/// The fewest bytes that a download of this file name can have: of a text whose number of lines is
/// known, those of a byte for each word, two for each number and the line ends; of another file, 1.
std::uint64_t fewest_bytes(std::string_view name);

}  // namespace gloved::source
