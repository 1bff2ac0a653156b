// Batch: a piece of a source, that is, of a download that a tool reads. Holds its bytes, then also
// its parsed rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/source/line.hpp"
#include "tools/source/oddity.hpp"

namespace gloved::source {

/// Maximum number of skipped lines that are listed with place and reason; all are counted.
inline constexpr std::size_t kShownProblems = 20;

/// Chunker fills the members before `lines`, the parser threads the others. If the source is
/// binary, «line» means a record.
struct Batch {
    std::uint64_t sequence = 0;  ///< 0, 1, 2 … in the order of the source
    /// The bytes; only the first text_bytes count. Of an array, these are the numbers, and the
    /// words of its rows stand behind them.
    std::vector<char> buffer;
    std::size_t text_bytes = 0;
    std::uint64_t text_offset = 0;  ///< where these bytes begin in the unpacked source
    bool final_newline = true;      ///< the bytes end with LF
    bool too_long = false;  ///< no text: stands for one line at text_offset that is longer than
                            ///< kMaxLineBytes
    /// Where a word is in the buffer. A blank and the numbers follow it, but in an array.
    struct Place {
        std::uint32_t begin = 0;
        std::uint32_t word_bytes = 0;
    };
    std::vector<Place> places;  ///< of the whole records or rows, if the source is binary
    std::size_t cut_bytes = 0;  ///< size of a last record that the source ends within

    /// A line that is skipped.
    struct Skipped {
        LineProblem problem;
        std::uint64_t line = 0;    ///< in this batch, from 0
        std::uint64_t offset = 0;  ///< in the unpacked source
    };

    std::uint64_t lines = 0;                          ///< number of lines in the batch
    std::string keys;                                 ///< all keys, one after the other
    std::vector<std::size_t> key_ends;                ///< where each row's key ends in `keys`
    std::vector<std::uint64_t> line_numbers;          ///< of each row, in this batch, from 0
    std::vector<float> values;                        ///< shape (rows, dim)
    std::array<std::uint64_t, kLineFaults> faults{};  ///< numbers of skipped lines, by LineFault
    std::vector<Skipped> skipped;                     ///< the first kShownProblems of them
    bool last_line_taken = true;                      ///< the last line became a row
    OddWords odd_words;                               ///< by line in this batch, from 0
    std::uint64_t first_line = 0;        ///< number of lines before this batch; set before
                                         ///< SourceSink::commit
    std::vector<std::uint64_t> scratch;  ///< for SourceSink::inspect, which passes it to `commit`

    std::size_t rows() const { return key_ends.size(); }
    std::string_view key(std::size_t row) const {
        const std::size_t first = row == 0 ? 0 : key_ends[row - 1];
        return std::string_view(keys).substr(first, key_ends[row] - first);
    }
};

/// Maximum length of a line, which bounds a batch's memory. A longer line is a fault,
/// LineFault::too_long.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

}  // namespace gloved::source
