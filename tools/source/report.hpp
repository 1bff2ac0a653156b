// report.json: how a model was made. For people and for gloved-verify; the daemon does not read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "tools/source/source.hpp"

namespace gloved::source {

/// Which of several lines with the same key is kept.
enum class Duplicates { first, last, error };

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

/// How many duplicates a report lists; all are counted.
inline constexpr std::size_t kListedDuplicates = 1000;

struct Report {
    std::string source_name;
    std::uint64_t source_bytes = 0;                ///< on disk; of a zip archive's member, packed
    std::string member;                            ///< of a zip archive; empty for other sources
    std::optional<std::uint64_t> source_checksum;  ///< absent for a zip archive, and when the
                                                   ///< source was not read to its end
    std::optional<std::uint32_t> source_crc32;  ///< of the member's text; absent without a member,
                                                ///< and as above
    std::string compression;
    SourceSummary source;
    Duplicates duplicates_rule = Duplicates::first;
    OnError on_error = OnError::stop;
    std::uint64_t limit = 0;
    std::uint64_t rows_kept = 0;
    std::uint64_t duplicates = 0;
    std::vector<Duplicate> duplicate_examples;  ///< by dropped line, at most kListedDuplicates
    std::uint64_t generation = 0;
    bool planes = false;                                  ///< whether they were written
    std::vector<std::pair<std::string, double>> seconds;  ///< by stage, in order
};

/// Formats the report as JSON. Bytes that are not UTF-8 are escaped as in the daemon's replies
/// (common/wire/json_string.hpp), so that read_rules restores them.
std::string to_json(const Report& report);

/// The part of a report that says how to read its source again. Fields that older reports lack have
/// their defaults.
struct ReadingRules {
    bool generated = false;  ///< made by gloved-bench, not from a source: the other fields are
                             ///< unset
    SourceFormat format = SourceFormat::glove;
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
