// One line of GloVe text: a key and `dim` decimals, separated by the byte 0x20 and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::source {

/// Why a line, or a record of binary data, was not taken. Reports use these names.
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

/// What is wrong with a line or record, for people: token, fields found, remedy. Without file and
/// line number.
struct LineProblem {
    LineFault fault;
    std::string message;
};

/// `line` without the blanks (0x20) and CRs at its end, which belong to nothing.
std::string_view trim_line_end(std::string_view line);

/// Number of 0x20-separated fields of a trimmed line.
std::size_t count_fields(std::string_view line);

/// Splits and reads a trimmed line: the last `dim` fields are written to `values` (shape (dim),
/// float32 correctly rounded), all that stands before them and their separator becomes `key`, a
/// view into `line`, blanks and all. On a problem both are unspecified. dim >= 1. Safe for
/// concurrent use.
///
/// A line whose key would end in a blank and a number with a point or an exponent is refused as
/// too_many_fields: that is what a file of more numbers than `dim` looks like, and it would
/// otherwise pass silently with a number in every key.
std::optional<LineProblem> parse_line(std::string_view line, std::size_t dim, std::string_view& key,
                                      float* values);

/// As parse_line for a line with the vector's norm between key and vector; `values` has room for
/// dim + 1 floats, of which the first dim are the vector. The norm is checked and dropped.
///
/// It agrees when it differs from the vector's by no more than 1e-4 of it (which covers a norm
/// computed in float32, and one of numbers that were rounded afterwards) plus one unit of the last
/// decimal that it is printed with. That unit counts for 1 % of the norm at most: else a norm
/// printed as an integer would agree with nearly anything. For norms near zero it is 1e-6 at most.
std::optional<LineProblem> parse_line_with_norm(std::string_view line, std::size_t dim,
                                                std::string_view& key, float* values);

/// A request of the daemon holds no longer line, so nobody could ask for a longer word. What a
/// conversion keeps of keys in memory is bounded by it.
inline constexpr std::size_t kMaxWordBytes = std::size_t{64} << 10;

/// Nothing, or why no key may be these bytes: empty, longer than kMaxWordBytes, or holding a NUL,
/// TAB, LF or CR.
std::optional<LineProblem> check_key(std::string_view key);

}  // namespace gloved::source
