// Words compared without regard to case, the same on every machine: no locale has a say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gloved {

/// What a byte that is part of no valid UTF-8 sequence counts as is this plus the byte: beyond
/// Unicode, so that such a byte equals only itself.
inline constexpr std::uint32_t kInvalidByte = 0x110000;

/// A code point at the start of a text, and how many of its bytes it takes (1–4).
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t bytes = 0;
};

/// The code point that `text`, which must not be empty, starts with; kInvalidByte + its first byte
/// where that starts no valid UTF-8 sequence (utf8_sequence_length).
CodePoint first_code_point(std::string_view text);

/// Simple case folding of one code point: mappings C and S of Unicode 15's CaseFolding.txt for the
/// blocks Basic Latin, Latin-1, Latin Extended-A, Greek and Coptic, Cyrillic, Cyrillic Supplement
/// and Armenian (up to U+058F); everything else stays as it is, also what only full or Turkic
/// folding would change («ß», «İ»). Idempotent.
std::uint32_t fold_case(std::uint32_t code_point);

/// `text` with each code point folded; bytes that are no valid UTF-8 stay as they are. Never longer
/// than `text`. Idempotent.
std::string fold_case(std::string_view text);

}  // namespace gloved
