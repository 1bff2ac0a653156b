// One line of GloVe text: a key and `dim` decimals, separated by the byte 0x20 and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::convert {

/// Why a line was not taken. Reports use these names.
enum class LineFault { blank, too_few_fields, too_many_fields, bad_number, not_finite, overflow, bad_key, cut };
inline constexpr std::size_t kLineFaults = 8;
inline constexpr std::array<std::string_view, kLineFaults> kLineFaultNames = {
    "blank", "too_few_fields", "too_many_fields", "bad_number", "not_finite", "overflow", "bad_key", "cut"};

/// What is wrong with a line, for people: token, fields found, remedy. Without file and line number.
struct LineProblem {
    LineFault fault;
    std::string message;
};

/// `line` without the blanks (0x20) and CRs at its end, which belong to nothing.
std::string_view trim_line_end(std::string_view line);

/// Number of 0x20-separated fields of a trimmed line.
std::size_t count_fields(std::string_view line);

/// Splits and reads a trimmed line: the last `dim` fields are written to `values` (shape (dim), float32 correctly
/// rounded), all that stands before them and their separator becomes `key`, a view into `line`, blanks and all. On a
/// problem both are unspecified. dim >= 1. Safe for concurrent use.
///
/// A line whose key would end in a blank and a number with a point or an exponent is refused as too_many_fields: that
/// is what a file of more numbers than `dim` looks like, and it would otherwise pass silently with a number in every
/// key.
std::optional<LineProblem> parse_line(std::string_view line, std::size_t dim, std::string_view& key, float* values);

}  // namespace gloved::convert
