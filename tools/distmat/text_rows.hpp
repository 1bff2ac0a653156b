// Parses the lines of numbers in gloved-distmat's text input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gloved::distmat {

/// The rows of a piece of text, up to the first line that cannot be parsed. Lines count from 0,
/// blank ones too.
struct TextRows {
    std::vector<double> values;
    std::size_t rows = 0;
    std::size_t dim = 0;      ///< numbers in each row
    std::uint64_t lines = 0;  ///< number of lines in the piece, or before the fault
    /// (row, line) of the first row, and of each row whose line does not follow that of the row
    /// before.
    std::vector<std::pair<std::size_t, std::uint64_t>> line_of_row;

    /// The first line that cannot be parsed.
    struct Fault {
        std::uint64_t line = 0;
        std::size_t count = 0;  ///< if not 0: the line has this many numbers instead of `dim`
        std::string message;    ///< if count is 0: what is wrong, and the remedy
    };
    std::optional<Fault> fault;
};

/// Parses `text`, whole lines of which the last may lack its LF. Sets `rows` to the result. Safe
/// for concurrent use.
void parse_text_rows(std::string_view text, TextRows& rows);

}  // namespace gloved::distmat
