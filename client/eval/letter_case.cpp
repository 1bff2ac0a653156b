#include "client/eval/letter_case.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/case_fold.hpp"

namespace gloved::client {
namespace {

/// fold_case leaves everything from here on as it is, so nothing from here on has a capital.
constexpr std::uint32_t kFoldedBelow = 0x0590;
/// Folds to the Greek mu, whose capital it is not.
constexpr std::uint32_t kMicroSign = 0x00B5;

/// By code point: the one that folds to it, or itself. The first of several is the capital, the
/// others are variants of the small letter.
const std::array<std::uint32_t, kFoldedBelow>& capitals() {
    static const auto table = [] {
        std::array<std::uint32_t, kFoldedBelow> of{};
        for (std::uint32_t small = 0; small < kFoldedBelow; ++small) of[small] = small;
        for (std::uint32_t capital = 0; capital < kFoldedBelow; ++capital) {
            const std::uint32_t small = fold_case(capital);
            if (small != capital && of[small] == small && capital != kMicroSign)
                of[small] = capital;
        }
        return of;
    }();
    return table;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
    if (code_point < 0x80) {
        out += static_cast<char>(code_point);
    } else {
        out += static_cast<char>(0xC0 | code_point >> 6);
        out += static_cast<char>(0x80 | (code_point & 0x3F));
    }
}

/// The first `letters` code points of a folded word as capitals, the rest as it is.
std::string raise(std::string_view folded, std::size_t letters) {
    std::string raised;
    while (!folded.empty() && letters-- > 0) {
        const CodePoint letter = first_code_point(folded);
        if (letter.value < kFoldedBelow) {
            append_utf8(raised, capitals()[letter.value]);
        } else {
            raised += folded.substr(0, letter.bytes);
        }
        folded.remove_prefix(letter.bytes);
    }
    return raised.append(folded);
}

}  // namespace

std::string word_key(std::string_view word, LetterCase letter_case) {
    return letter_case == LetterCase::exact ? std::string(word) : fold_case(word);
}

std::vector<std::string> spellings(std::string_view word, LetterCase letter_case) {
    std::vector<std::string> all = {std::string(word)};
    if (letter_case == LetterCase::exact) return all;
    const std::string lower = fold_case(word);
    for (std::string spelling : {lower, raise(lower, lower.size()), raise(lower, 1)}) {
        if (std::find(all.begin(), all.end(), spelling) == all.end())
            all.push_back(std::move(spelling));
    }
    return all;
}

}  // namespace gloved::client
