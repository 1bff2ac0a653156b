// The GloVe files that Stanford publishes: their checksums, as far as these are known, and their
// numbers of lines, which tell a truncated download.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gloved::source {

/// A published file. What is not known of it is empty or 0.
struct PublishedFile {
    std::string_view name;
    std::string_view sha256{};    ///< 64 lower-case hexadecimal digits
    std::uint64_t bytes = 0;      ///< its size
    bool of_one_project = false;  ///< a single project names the checksum; otherwise several do
    std::size_t dim = 0;          ///< of a text, or of the one text in an archive: numbers a line
    std::uint64_t lines = 0;      ///< of the same
};

/// All of them, in the order in which messages name them.
std::span<const PublishedFile> published_files();

/// A text whose lines are known.
struct KnownText {
    std::string name;  ///< as in messages: without .txt or .zip
    std::uint64_t lines = 0;
};

/// Finds the published text with that many lines, and `dim` numbers per line.
std::optional<KnownText> known_text(std::uint64_t lines, std::size_t dim);

/// Finds the published text of which a source with `lines` lines of `dim` numbers may be a
/// truncated copy: of the published ones with this dim and more lines, the shortest. `name` is the
/// source's path, or the member's in a zip archive. A name with «2024» is compared with the files
/// of that year alone, another with the others. nullopt if the source is a known text, or if `name`
/// contains neither «glove», in any case, nor «2024» and «wiki_giga», or contains «sample».
std::optional<KnownText> maybe_truncated(std::string_view name, std::uint64_t lines,
                                         std::size_t dim);

/// The fewest bytes that a download of `file` can have: of a text whose number of lines is known,
/// those of a byte for each word, two for each number and the line ends; of another file, 1.
std::uint64_t fewest_bytes(const PublishedFile& file);

}  // namespace gloved::source
