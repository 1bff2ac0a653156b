// Case folding: makes words that differ only in case equal. By Unicode's tables (utf8proc), the
// same in every locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gloved {

/// kInvalidByte + byte stands for a byte that is part of no valid UTF-8 sequence. It is beyond
/// Unicode, so that such a byte equals only itself.
inline constexpr std::uint32_t kInvalidByte = 0x110000;

/// A code point at the start of a text, and how many of its bytes it takes (1–4).
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t bytes = 0;
};

/// The first code point of `text`, which must not be empty; kInvalidByte + its first byte where no
/// valid UTF-8 sequence starts there.
CodePoint first_code_point(std::string_view text);

/// Folds the case of one code point: «K» becomes «k». Uses the mappings of status C in Unicode's
/// CaseFolding.txt, so that a code point that only full or Turkic folding changes stays as it is
/// («ß», «İ»). Idempotent.
std::uint32_t fold_case(std::uint32_t code_point);

/// Removes the first code point of `text`, which must not be empty, and returns it folded.
inline std::uint32_t take_folded(std::string_view& text) {
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte < 0x80) {  // nearly all bytes; two calls for each would be most of the work
        text.remove_prefix(1);
        return byte >= 'A' && byte <= 'Z' ? byte + 0x20U : byte;
    }
    const CodePoint code_point = first_code_point(text);
    text.remove_prefix(code_point.bytes);
    return fold_case(code_point.value);
}

/// Appends a code point as UTF-8, or the byte that kInvalidByte + byte stands for.
void append_code_point(std::string& out, std::uint32_t code_point);

/// `text` in lower case, in upper case, or with its first letter in title case and the rest in
/// lower case, one code point for each. Bytes that are not valid UTF-8 stay as they are.
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);
std::string capitalized(std::string_view text);

/// `text` with each code point folded; bytes that are not valid UTF-8 stay as they are. Idempotent.
std::string fold_case(std::string_view text);

}  // namespace gloved
