// Parses one record of word2vec's binary format: a word, the byte 0x20, and `dim` little-endian
// float32.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tools/source/line.hpp"

namespace gloved::source {

struct Record {
    enum class State {
        whole,
        incomplete,  ///< the bytes end within it
        no_blank,    ///< no 0x20 within kMaxWordBytes
    };
    State state = State::incomplete;
    std::string_view word;  ///< without the LF that some programs write before each but the first
    std::size_t bytes = 0;  ///< of the whole record, that LF included
    const char* numbers = "";  ///< dim floats, not aligned
};

/// Finds the end of the record at the beginning of `bytes`; does not check its numbers. Safe for
/// concurrent use.
Record find_record(std::string_view bytes, std::size_t dim);

/// Copies the numbers of a whole record to `values` (shape (dim)), bit for bit. Problems:
/// not_finite, bad_key. Safe for concurrent use.
std::optional<LineProblem> parse_record(const Record& record, std::size_t dim, float* values);

}  // namespace gloved::source
