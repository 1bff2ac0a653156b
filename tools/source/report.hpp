// Writes and reads a model's report.json, which says how the model was made, of one source or of
// several. It is for people and for gloved-verify; the daemon does not read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/source.hpp"

namespace gloved::source {

/// Which of several lines with the same key is kept.
enum class Duplicates { first, last, error };

/// The names of the rules in options and reports, and the rules of these names; nullopt for another
/// name.
std::string_view name_of(Duplicates rule);
std::string_view name_of(OnError rule);
std::optional<Duplicates> duplicates_from(std::string_view name);
std::optional<OnError> on_error_from(std::string_view name);

/// A line of one of several sources.
struct SourceLine {
    std::size_t source = 0;  ///< its place in the order of reading, from 0
    std::uint64_t line = 0;  ///< from 1
};

/// Finds a line by its number from 0, where the lines of a source are numbered on from those of the
/// source before. `lines` has the number of lines of each source, all of them more than `number`.
SourceLine find_line(std::span<const std::uint64_t> lines, std::uint64_t number);

/// A line that was dropped because another has the same key.
struct Duplicate {
    SourceLine kept;
    SourceLine dropped;
    std::string key;
};

/// Maximum number of duplicates that a report lists; all are counted.
inline constexpr std::size_t kListedDuplicates = 1000;

/// What a report says of a source. Of one that was not read, since SourceOptions::limit ended the
/// reading before it, only `name` is set.
struct SourceReport {
    std::string name;
    std::uint64_t bytes = 0;                ///< size on disk
    std::string member;                     ///< read from an archive; otherwise empty
    std::optional<std::uint64_t> checksum;  ///< XXH3-64; absent for a zip archive in a file, and if
                                            ///< not all was read
    std::optional<std::uint32_t> crc32;     ///< of a zip archive's member, unpacked; absent without
                                            ///< one, and if not all was read
    std::string compression;                ///< Input::compression()
    SourceSummary summary;
    std::uint64_t rows_kept = 0;  ///< rows of the model that come from it
};

/// The content of a report.
struct Report {
    std::vector<SourceReport> sources;  ///< at least one, in the order in which they were read
    Duplicates duplicates_rule = Duplicates::first;
    OnError on_error = OnError::stop;
    std::uint64_t limit = 0;                    ///< SourceOptions::limit
    std::uint64_t rows_kept = 0;                ///< rows of the model
    std::uint64_t duplicates = 0;               ///< rows that were dropped as duplicates
    std::vector<Duplicate> duplicate_examples;  ///< by dropped line, at most kListedDuplicates
    std::uint64_t generation = 0;
    bool planes = false;                                  ///< whether the planes file was written
    std::vector<std::pair<std::string, double>> seconds;  ///< (stage, its time), in order

    /// Sums over all sources.
    struct Totals {
        std::uint64_t lines = 0;
        std::uint64_t words = 0;  ///< lines without headers
        std::uint64_t skipped_lines = 0;
        std::uint64_t bytes = 0;
        std::uint64_t text_bytes = 0;
        std::uint64_t most_rows = 0;  ///< no sum: those of the source that has most
    };
    Totals totals() const;
    /// «own.txt: line 3: the word "x" stands on line 17 of glove.txt»; within a source without
    /// «of».
    std::string text_of(const Duplicate& duplicate) const;
};

/// Formats the report as JSON. Bytes that are not UTF-8 are escaped as in the daemon's replies
/// (common/wire/json_string.hpp), so that read_rules restores them.
std::string to_json(const Report& report);

/// How to read one source again, and how to know it.
struct SourceRules {
    std::string name;
    SourceFormat format = SourceFormat::glove;
    std::string member;
    std::string words;     ///< SourceSummary::words
    std::string tensor;    ///< ArrayLayout::tensor
    std::string checksum;  ///< as checksum_text(); empty if it was not read to its end
};

/// The checksum of a source as reports have it: XXH3-64, or the CRC-32 of an archive's member, in
/// hexadecimal digits; empty without either.
std::string checksum_text(std::optional<std::uint64_t> checksum,
                          std::optional<std::uint32_t> crc32);

/// The part of a report that says how to read the sources in the same way again. Fields that an
/// older report lacks have their defaults.
struct ReadingRules {
    bool generated = false;  ///< gloved-bench made the model, without a source; the other fields
                             ///< are unset
    std::vector<SourceRules> sources;  ///< in the order of reading; empty if there is no report
    bool dim_found = false;            ///< SourceSummary::dim_found
    Duplicates duplicates = Duplicates::first;
    OnError on_error = OnError::stop;
    std::uint64_t limit = 0;
    std::uint64_t rows = 0;
    std::string generation;
};

/// Reads the rules from a report's text. Error: damaged.
Result<ReadingRules> read_rules(std::string_view json);

}  // namespace gloved::source
