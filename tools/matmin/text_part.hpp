// The text of some matrices, parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/matmin/matrices.hpp"

namespace gloved::matmin {

/// What is wrong with a line.
struct TextFault {
    std::uint64_t line = 0;  ///< in the part, from 0
    std::string message;     ///< with the remedy
};

/// Parses matrices of `shape` into `intake`, up to the first fault. The part begins behind a
/// separator, a line of ***, and ends with one or with the text; its last byte is LF. `lines`
/// becomes the number of lines, where there is no fault.
template <class T>
std::optional<TextFault> parse_part(std::string_view text, Shape shape, Intake<T>& intake,
                                    std::uint64_t& lines);

/// A line without its blanks and tabs at either end, and without CR at its end.
std::string_view trim(std::string_view line);
/// Whether a trimmed line separates matrices.
inline bool is_separator(std::string_view trimmed) { return trimmed == "***"; }
/// The words of a trimmed line: what stands between blanks and tabs.
std::size_t count_words(std::string_view trimmed);
/// The line, from 0, of the first number of matrix `index`, from 0, of a part without faults that
/// has that many.
std::uint64_t line_of_matrix(std::string_view text, std::uint64_t index);

}  // namespace gloved::matmin
