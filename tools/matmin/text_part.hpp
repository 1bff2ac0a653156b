// Parses a part of gloved-matmin's text input: some whole matrices, with the lines of *** between
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/matmin/matrices.hpp"

namespace gloved::matmin {

/// The first line of a part that cannot be parsed.
struct TextFault {
    std::uint64_t line = 0;  ///< in the part, from 0
    std::string message;     ///< what is wrong, and the remedy
};

/// Parses `text`, matrices of `shape`, into `intake`, up to the first fault, and returns that;
/// nullopt if there is none. The part begins after a separator, a line of ***, and ends with a
/// separator or at the end of the text; its last byte is LF. Without a fault, sets `lines` to its
/// number of lines.
template <class T>
std::optional<TextFault> parse_part(std::string_view text, Shape shape, Intake<T>& intake,
                                    std::uint64_t& lines);

/// Removes a CR at the end of the line and blanks and tabs at both ends.
std::string_view trim(std::string_view line);
/// Whether a trimmed line separates matrices.
inline bool is_separator(std::string_view trimmed) { return trimmed == "***"; }
/// Counts the words of a trimmed line, separated by blanks and tabs.
std::size_t count_words(std::string_view trimmed);
/// Finds the line of the first number of matrix `index`. Both count from 0. The part has no fault
/// and more than `index` matrices.
std::uint64_t line_of_matrix(std::string_view text, std::uint64_t index);

}  // namespace gloved::matmin
