#include "client/eval/letter_case.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/case_fold.hpp"

namespace gloved::client {
namespace {

/// Capitalises the first `letters` code points of a folded word.
std::string raise(std::string_view folded, std::size_t letters) {
    std::string raised;
    while (!folded.empty() && letters-- > 0) {
        const CodePoint letter = first_code_point(folded);
        append_code_point(raised, capital_of(letter.value));
        folded.remove_prefix(letter.bytes);
    }
    return raised.append(folded);
}

}  // namespace

std::string word_key(std::string_view word, LetterCase letter_case) {
    return letter_case == LetterCase::exact ? std::string(word) : fold_case(word);
}

std::vector<std::string> spellings_of(std::string_view word, LetterCase letter_case) {
    std::vector<std::string> all = {std::string(word)};
    if (letter_case == LetterCase::exact) return all;
    const std::string lower = fold_case(word);
    for (std::string spelling : {lower, raise(lower, lower.size()), raise(lower, 1)}) {
        if (std::ranges::find(all, spelling) == all.end()) all.push_back(std::move(spelling));
    }
    return all;
}

}  // namespace gloved::client
