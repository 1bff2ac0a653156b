// What looks implausible in words and numbers that were read. A conversion takes it as it is, and
// says at its end how often it occurred.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gloved::source {

/// Numbers of word vectors are smaller.
inline constexpr float kLargeNumber = 1e6F;

/// Whether a number is larger than kLargeNumber, negative ones too, or not finite.
bool has_large_number(std::span<const float> numbers);

/// Whether all bytes of a word are printable ASCII, as in most words.
bool is_plain(std::string_view word);

enum class Oddity {
    large_number,    ///< has_large_number
    invalid_utf8,    ///< in the word
    control_bytes,   ///< a control character in the word
    outer_blanks,    ///< the word begins or ends with blanks; those of text were left out
    blanks,          ///< a word of binary data holds blanks
    ends_in_number,  ///< a word of text, see ends_in_number()
    quoted,          ///< the word stands in double quotes
    base64,          ///< the word begins with «B64:»
};
/// Their names in reports.
inline constexpr std::array<std::string_view, 8> kOddityNames = {
    "large_number", "invalid_utf8",   "control_bytes", "outer_blanks",
    "blanks",       "ends_in_number", "quoted",        "base64"};
inline constexpr std::size_t kOddities = kOddityNames.size();

/// Maximum number of bytes that are kept of an odd word.
inline constexpr std::size_t kShownKeyBytes = 200;

/// How many rows have an oddity, and the first of them.
struct OddWord {
    std::uint64_t count = 0;
    std::uint64_t line = 0;
    std::string key;  ///< its first kShownKeyBytes
};

/// By Oddity.
class OddWords {
  public:
    void note(Oddity oddity, std::uint64_t line, std::string_view key);
    /// Notes what is odd in a word itself, but for blanks.
    void note_word(std::uint64_t line, std::string_view key);
    /// Adds those of a later batch that begins after `first_line` lines.
    void add(const OddWords& later, std::uint64_t first_line);
    void clear() { words_.fill({}); }
    const OddWord& of(Oddity oddity) const { return words_[static_cast<std::size_t>(oddity)]; }

  private:
    std::array<OddWord, kOddities> words_;
};

}  // namespace gloved::source
