// Parses lines of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gloved::distmat {

/// The rows of a piece of text up to its first fault. Lines count from 0, blank ones too.
struct TextRows {
    std::vector<double> values;
    std::size_t rows = 0;
    std::size_t dim = 0;      ///< of the first row, and of all others
    std::uint64_t lines = 0;  ///< of the whole piece; to the fault, where there is one
    /// (row, line) of the first row, and of each row whose line does not follow that of the row
    /// before.
    std::vector<std::pair<std::size_t, std::uint64_t>> line_of_row;

    struct Fault {
        std::uint64_t line = 0;
        std::size_t count = 0;  ///< if not 0: the line has so many numbers instead of `dim`
        std::string message;    ///< another fault, with the remedy
    };
    std::optional<Fault> fault;
};

/// Parses whole lines; the last may lack its LF. Overwrites `rows`. Safe for concurrent use.
void parse_text_rows(std::string_view text, TextRows& rows);

}  // namespace gloved::distmat
