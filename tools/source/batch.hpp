// A piece of a source, on its way from the bytes to the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/source/line.hpp"

namespace gloved::source {

/// How many lines that were not taken are told with their place and reason.
inline constexpr std::size_t kShownProblems = 20;

/// The first group comes from the reader, the rest from the lines. «Line» means a record where the
/// source is binary.
struct Batch {
    std::uint64_t sequence = 0;  ///< 0, 1, 2 … in the order of the source
    std::vector<char> buffer;
    std::size_t text_bytes = 0;
    std::uint64_t text_offset = 0;  ///< of the first byte, in the unpacked source
    bool final_newline = true;
    bool too_long = false;  ///< no text, but one line at text_offset of more than kMaxLineBytes,
                            ///< which is not here

    struct Skipped {
        LineProblem problem;
        std::uint64_t line = 0;    ///< in this batch, from 0
        std::uint64_t offset = 0;  ///< in the unpacked source
    };

    std::uint64_t lines = 0;
    std::string keys;
    std::vector<std::size_t> key_ends;
    std::vector<std::uint64_t> line_numbers;          ///< one a row, in this batch, from 0
    std::vector<float> values;                        ///< shape (rows, dim)
    std::array<std::uint64_t, kLineFaults> faults{};  ///< lines that were not taken, by LineFault
    std::vector<Skipped> skipped;  ///< the first kShownProblems of them: a file may hold nothing
                                   ///< else
    bool last_line_taken = true;
    std::uint64_t first_line = 0;  ///< number of lines before this batch; known from `commit` on
    std::vector<std::uint64_t> scratch;  ///< one a row, for `inspect` to leave something in

    std::size_t rows() const { return key_ends.size(); }
    std::string_view key(std::size_t row) const {
        const std::size_t first = row == 0 ? 0 : key_ends[row - 1];
        return std::string_view(keys).substr(first, key_ends[row] - first);
    }
};

/// A longer line is a fault of its own (LineFault::too_long): it is what bounds the memory that a
/// batch takes.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

}  // namespace gloved::source
