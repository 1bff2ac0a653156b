// Parses a line of GloVe's text format: a key (the word) and `dim` decimals, separated by single
// blanks (0x20).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::source {

/// Why a line, or a record of binary data, is refused. kLineFaultNames are the names in reports.
enum class LineFault {
    blank,
    too_few_fields,
    too_many_fields,
    bad_number,
    not_finite,
    overflow,
    bad_key,
    cut,            ///< the source ends within it
    too_long,       ///< longer than kMaxLineBytes
    norm_mismatch,  ///< the number before the vector is not its norm
    padded,         ///< two blanks in a row between the numbers
};
inline constexpr std::array<std::string_view, 11> kLineFaultNames = {
    "blank", "too_few_fields", "too_many_fields", "bad_number", "not_finite", "overflow", "bad_key",
    "cut",   "too_long",       "norm_mismatch",   "padded"};
inline constexpr std::size_t kLineFaults = kLineFaultNames.size();

/// Why a line or record is refused. The message is for people: token, fields found, remedy. The
/// caller adds file and line number.
struct LineProblem {
    LineFault fault;
    std::string message;
};

/// Removes blanks (0x20) and CRs at the end of `line`.
std::string_view trim_line_end(std::string_view line);

/// The number of fields of a trimmed line, separated by 0x20.
std::size_t count_fields(std::string_view line);

/// Whether a key ends in a blank and a number with a point or an exponent, as «Windows 8.1» does.
bool ends_in_number(std::string_view key);

/// Parses a trimmed line. Sets `values`, shape (dim), to the last `dim` fields, correctly rounded
/// to float32, and `key` to all before them, without the blanks around it: a view into `line` that
/// may contain blanks. Returns the problem, after which both are unspecified, or nullopt. dim >= 1.
/// Safe for concurrent use.
///
/// Unless dim_is_certain, a line whose key ends_in_number is refused as too_many_fields. Such a
/// line usually comes from a file with more than `dim` numbers, where every key would end in a
/// number. If the key ends in two, it is always refused: the line has another width.
std::optional<LineProblem> parse_line(std::string_view line, std::size_t dim, std::string_view& key,
                                      float* values, bool dim_is_certain = false);

/// As parse_line, for a line with the vector's norm between key and vector. `values` has room for
/// dim + 1 floats; the first dim become the vector. Checks the norm and drops it. It may differ
/// from the vector's norm by 1e-4 of that, plus one unit of its last printed decimal. The 1e-4
/// covers norms computed in float32 or before the numbers were rounded. The unit is capped at the
/// larger of 0.01 · norm and 1e-6: otherwise a norm printed as an integer would agree with nearly
/// anything.
std::optional<LineProblem> parse_line_with_norm(std::string_view line, std::size_t dim,
                                                std::string_view& key, float* values,
                                                bool dim_is_certain = false);

/// Maximum length of a key, which bounds a conversion's memory for keys. It is also the maximum
/// length of a request to the daemon, so that no query could name a longer word.
inline constexpr std::size_t kMaxWordBytes = std::size_t{64} << 10;

/// Checks a key. Returns the problem if it is empty, longer than kMaxWordBytes, or contains a NUL,
/// TAB, LF or CR.
std::optional<LineProblem> check_key(std::string_view key);

}  // namespace gloved::source
