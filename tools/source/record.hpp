// Finds and parses a record of word2vec's binary format: a word, the byte 0x20, `dim` little-endian
// float32, and an LF in the files of some programs. Parses a row of an array with its word, too.
//
// A word may hold blanks, though the format does not foresee it. Where a word ends is decided by
// what stands around each blank; docs/conversion.md has the rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/source/array_layout.hpp"
#include "tools/source/line.hpp"
#include "tools/source/number_sizes.hpp"

namespace gloved::source {

/// What is known of all records of a source.
struct RecordLayout {
    std::size_t dim = 0;
    std::optional<bool> newline;  ///< an LF follows each vector; unknown before the first record
    NumberSizes sizes;            ///< of the records before
};

/// A record at the front of some bytes.
struct Record {
    enum class State {
        whole,
        incomplete,  ///< more bytes are needed to find its end
        cut,         ///< the source ends within it
        refused,     ///< where it ends cannot be known; `problem` says why
    };
    State state = State::incomplete;
    std::size_t word_bytes = 0;  ///< the word is at the front; a blank and the numbers follow
    std::size_t bytes = 0;       ///< with the LF, but for the last record's
    bool newline = false;        ///< an LF follows
    std::string problem;
};

/// Maximum number of blanks in a word of a binary source.
inline constexpr std::size_t kMaxBlanksInWord = 64;

/// Finds the end of the record at the front of `bytes`, which must not be empty. `ended`: the
/// source ends with `bytes`. `left`: number of records that the header promises from this one on.
/// Looks at most at this record and the next. The result does not depend on how many bytes follow,
/// unless it is `incomplete`. Safe for concurrent use.
Record find_record(std::string_view bytes, bool ended, const RecordLayout& layout,
                   std::uint64_t left);

/// Converts the `layout.dim` numbers of a record, or of an array's row, as convert_numbers does;
/// the default layout is that of a record. Sets `has_large` to has_large_number of them. Returns
/// the problem, not_finite, overflow (a float64 beyond float32) or bad_key, if there is one. Safe
/// for concurrent use.
std::optional<LineProblem> parse_row(std::string_view word, const char* numbers,
                                     const ArrayLayout& layout, float* values, bool& has_large);

}  // namespace gloved::source
