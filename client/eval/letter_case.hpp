// Compares the words of an evaluation with or without regard to case, and lists their spellings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloved::client {

/// Whether words that differ only in case are the same word.
enum class LetterCase { ignore, exact };

/// A key for maps: two words are the same if their keys are equal. With LetterCase::ignore the
/// folded word, otherwise the word.
std::string word_key(std::string_view word, LetterCase letter_case);

/// The spellings under which a model may have `word`, each once, `word` first: with
/// LetterCase::ignore also lower case, UPPER CASE and Capitalised. Another mixture, such as
/// McDonald, is found only if `word` is spelt so.
std::vector<std::string> spellings_of(std::string_view word, LetterCase letter_case);

}  // namespace gloved::client
