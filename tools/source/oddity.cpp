#include "tools/source/oddity.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/quoting.hpp"

namespace gloved::source {
namespace {

constexpr std::uint32_t kWithoutSign = 0x7FFF'FFFF;

}  // namespace

bool is_plain(std::string_view word) {
    return std::ranges::all_of(word, [](char c) { return c >= 0x20 && c < 0x7F; });
}

bool has_large_number(std::span<const float> numbers) {
    // The bits of a float without its sign ascend with it; NaN and infinity are the largest.
    const auto is_large = [](float number) {
        const auto bits =
            static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(number) & kWithoutSign);
        return bits > std::bit_cast<std::int32_t>(kLargeNumber) ? 1 : 0;
    };
    constexpr std::size_t kBlock = 32;  // a fixed number, for the compiler's vectors
    std::int32_t large = 0;
    std::size_t i = 0;
    for (; i + kBlock <= numbers.size(); i += kBlock) {
        for (std::size_t j = 0; j < kBlock; ++j) large |= is_large(numbers[i + j]);
    }
    for (; i < numbers.size(); ++i) large |= is_large(numbers[i]);
    return large != 0;
}

void OddWords::note(Oddity oddity, std::uint64_t line, std::string_view key) {
    OddWord& word = words_[static_cast<std::size_t>(oddity)];
    if (word.count++ != 0) return;
    word.line = line;
    word.key = key.substr(0, kShownKeyBytes);
}

void OddWords::note_word(std::uint64_t line, std::string_view key) {
    if (key.size() > 2 && key.front() == '"' && key.back() == '"') note(Oddity::quoted, line, key);
    if (key.starts_with("B64:")) note(Oddity::base64, line, key);
    if (is_plain(key)) return;
    bool invalid = false;
    bool control = false;
    for (std::string_view rest = key; !rest.empty();) {
        const std::size_t length = utf8_sequence_length(rest);
        invalid |= length == 0;
        control |= length != 0 && invisible_bytes(rest) != 0;
        rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    if (invalid) note(Oddity::invalid_utf8, line, key);
    if (control) note(Oddity::control_bytes, line, key);
}

void OddWords::add(const OddWords& later, std::uint64_t first_line) {
    for (std::size_t i = 0; i < kOddities; ++i) {
        const OddWord& word = later.words_[i];
        if (word.count == 0) continue;
        if (words_[i].count == 0) words_[i] = {0, first_line + word.line, word.key};
        words_[i].count += word.count;
    }
}

}  // namespace gloved::source
