#include "client/eval/letter_case.hpp"

#include <algorithm>
#include <utility>

namespace gloved::client {
namespace {

std::string lower(std::string_view word) {
    std::string folded(word);
    for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return folded;
}

std::string upper(std::string_view word) {
    std::string raised(word);
    for (char& c : raised) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return raised;
}

}  // namespace

std::string word_key(std::string_view word, LetterCase letter_case) {
    return letter_case == LetterCase::exact ? std::string(word) : lower(word);
}

std::vector<std::string> spellings(std::string_view word, LetterCase letter_case) {
    std::vector<std::string> all = {std::string(word)};
    if (letter_case == LetterCase::exact) return all;
    for (std::string spelling : {lower(word), upper(word), upper(word.substr(0, 1)) + lower(word.substr(1))}) {
        if (std::find(all.begin(), all.end(), spelling) == all.end()) all.push_back(std::move(spelling));
    }
    return all;
}

}  // namespace gloved::client
