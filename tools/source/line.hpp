// Parses one line of GloVe text: a key and `dim` decimals, separated by single bytes 0x20.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::source {

/// Why a line, or a record of binary data, is refused. Reports use these names.
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
};
inline constexpr std::array<std::string_view, 10> kLineFaultNames = {
    "blank", "too_few_fields", "too_many_fields", "bad_number", "not_finite", "overflow", "bad_key",
    "cut",   "too_long",       "norm_mismatch"};
inline constexpr std::size_t kLineFaults = kLineFaultNames.size();

/// A refused line or record. The message is for people: token, fields found, remedy; no file, no
/// line number.
struct LineProblem {
    LineFault fault;
    std::string message;
};

/// Removes blanks (0x20) and CRs at the end of `line`.
std::string_view trim_line_end(std::string_view line);

/// Number of 0x20-separated fields of a trimmed line.
std::size_t count_fields(std::string_view line);

/// Parses a trimmed line. The last `dim` fields become `values` (shape (dim), float32 correctly
/// rounded). All before them becomes `key`, a view into `line` that may hold blanks. On a problem
/// both are unspecified. dim >= 1. Safe for concurrent use. A line whose key would end in a blank
/// and a number with a point or an exponent is refused as too_many_fields: a file with more than
/// `dim` numbers a line looks like that, and would otherwise be accepted with a number in every
/// key.
std::optional<LineProblem> parse_line(std::string_view line, std::size_t dim, std::string_view& key,
                                      float* values);

/// Parses a line with the vector's norm between key and vector. `values` has room for dim + 1
/// floats; the first dim become the vector. Checks the norm and drops it. The norm may differ from
/// the vector's by 1e-4 of it plus one unit of its last printed decimal. The 1e-4 covers norms
/// computed in float32 or before the numbers were rounded. The unit counts for 1 % of the norm at
/// most: otherwise a norm printed as an integer would agree with nearly anything. For norms near
/// zero it is 1e-6 at most.
std::optional<LineProblem> parse_line_with_norm(std::string_view line, std::size_t dim,
                                                std::string_view& key, float* values);

/// No request line of the daemon is longer, so no query could name a longer word. Bounds a
/// conversion's memory for keys.
inline constexpr std::size_t kMaxWordBytes = std::size_t{64} << 10;

/// Refuses keys that are empty, longer than kMaxWordBytes, or hold a NUL, TAB, LF or CR.
std::optional<LineProblem> check_key(std::string_view key);

}  // namespace gloved::source
