// Parses one record of word2vec's binary format: a word, the byte 0x20, and `dim` little-endian
// float32.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tools/source/line.hpp"

namespace gloved::source {

/// A record, and where its parts are. Views into the bytes given to find_record.
struct Record {
    /// Whether the record is complete, or why not.
    enum class State {
        whole,
        incomplete,  ///< the bytes end within the record
        no_blank,    ///< there is no 0x20 within kMaxWordBytes
    };
    State state = State::incomplete;
    std::string_view word;  ///< without the LF that some programs write before each but the first
    std::size_t bytes = 0;  ///< size of the whole record, with that LF
    const char* numbers = "";  ///< dim floats, not aligned
};

/// Finds the parts of the record at the beginning of `bytes`; does not check its numbers. Safe for
/// concurrent use.
Record find_record(std::string_view bytes, std::size_t dim);

/// Copies the numbers of a whole record to `values`, shape (dim), bit for bit. Returns the problem,
/// not_finite or bad_key, if there is one. Safe for concurrent use.
std::optional<LineProblem> parse_record(const Record& record, std::size_t dim, float* values);

}  // namespace gloved::source
