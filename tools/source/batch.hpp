// A batch: a piece of a source, from its bytes to its parsed rows.
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

/// Skipped lines that are listed with their place and reason; all are counted.
inline constexpr std::size_t kShownProblems = 20;

/// The chunker fills the first group of members, parsing fills the others. «Line» means a record
/// where the source is binary.
struct Batch {
    std::uint64_t sequence = 0;  ///< 0, 1, 2 … in the order of the source
    std::vector<char> buffer;
    std::size_t text_bytes = 0;
    std::uint64_t text_offset = 0;  ///< of the first byte, in the unpacked source
    bool final_newline = true;
    bool too_long = false;  ///< no text: stands for one line at text_offset that is longer than
                            ///< kMaxLineBytes

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
    std::array<std::uint64_t, kLineFaults> faults{};  ///< skipped lines, by LineFault
    std::vector<Skipped> skipped;                     ///< the first kShownProblems of them
    bool last_line_taken = true;
    std::uint64_t first_line = 0;        ///< lines before this batch; set before SourceSink::commit
    std::vector<std::uint64_t> scratch;  ///< for SourceSink::inspect, which passes it to `commit`

    std::size_t rows() const { return key_ends.size(); }
    std::string_view key(std::size_t row) const {
        const std::size_t first = row == 0 ? 0 : key_ends[row - 1];
        return std::string_view(keys).substr(first, key_ends[row] - first);
    }
};

/// A longer line is skipped as LineFault::too_long: this bounds a batch's memory.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

}  // namespace gloved::source
