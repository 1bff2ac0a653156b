// Lines of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gloved::distmat {

/// What a piece of text holds, up to its first fault. Lines are counted from 0, blank ones too.
struct TextRows {
    std::vector<double> values;
    std::size_t rows = 0;
    std::size_t dim = 0;      ///< of the first row, and of all others
    std::uint64_t lines = 0;  ///< of the whole piece; to the fault, where there is one
    /// Rows and their lines, wherever a line is not one more than the row's before; the first row's
    /// always.
    std::vector<std::pair<std::size_t, std::uint64_t>> line_of_row;

    struct Fault {
        std::uint64_t line = 0;
        std::size_t count = 0;  ///< not 0: the line has so many numbers, and not `dim`
        std::string message;    ///< what else is wrong with it, and the remedy
    };
    std::optional<Fault> fault;
};

/// Reads whole lines; the last may lack its LF. `rows` is filled anew, its memory used again. Safe
/// for concurrent use.
void parse_text_rows(std::string_view text, TextRows& rows);

}  // namespace gloved::distmat
