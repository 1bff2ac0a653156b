// Writes and reads a model's report.json, which says how the model was made. It is for people and
// for gloved-verify; the daemon does not read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// A line that was dropped because another has the same key. Line numbers count from 1.
struct Duplicate {
    std::uint64_t kept_line = 0;
    std::uint64_t dropped_line = 0;
    std::string key;
};

/// Maximum number of duplicates that a report lists; all are counted.
inline constexpr std::size_t kListedDuplicates = 1000;

/// The content of a report.
struct Report {
    std::string source_name;
    std::uint64_t source_bytes = 0;                ///< size on disk; for a zip archive the packed
                                                   ///< size of the member
    std::string member;                            ///< read from a zip archive; otherwise empty
    std::optional<std::uint64_t> source_checksum;  ///< XXH3-64; absent for a zip archive, and
                                                   ///< if the source was not read to its end
    std::optional<std::uint32_t> source_crc32;     ///< of the unpacked member; absent without a
                                                   ///< member, and if it was not read to its end
    std::string compression;                       ///< Input::compression()
    SourceSummary source;
    Duplicates duplicates_rule = Duplicates::first;
    OnError on_error = OnError::stop;
    std::uint64_t limit = 0;                    ///< SourceOptions::limit
    std::uint64_t rows_kept = 0;                ///< rows of the model
    std::uint64_t duplicates = 0;               ///< rows that were dropped as duplicates
    std::vector<Duplicate> duplicate_examples;  ///< by dropped line, at most kListedDuplicates
    std::uint64_t generation = 0;
    bool planes = false;                                  ///< whether the planes file was written
    std::vector<std::pair<std::string, double>> seconds;  ///< (stage, its time), in order
};

/// Formats the report as JSON. Bytes that are not UTF-8 are escaped as in the daemon's replies
/// (common/wire/json_string.hpp), so that read_rules restores them.
std::string to_json(const Report& report);

/// The part of a report that says how to read the source in the same way again. Fields that an
/// older report lacks have their defaults.
struct ReadingRules {
    bool generated = false;  ///< gloved-bench made the model, without a source; the other fields
                             ///< are unset
    SourceFormat format = SourceFormat::glove;
    bool dim_found = false;  ///< SourceSummary::dim_found
    std::string member;
    Duplicates duplicates = Duplicates::first;
    OnError on_error = OnError::stop;
    std::uint64_t limit = 0;
    std::uint64_t rows = 0;
    std::string generation;
};

/// Reads the rules from a report's text. Error: damaged.
Result<ReadingRules> read_rules(std::string_view json);

}  // namespace gloved::source
