// Compares words with or without regard to case, and lists their spellings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloved::client {

/// Whether words that differ only in case are the same word.
enum class LetterCase { ignore, exact };

/// A key that is equal for equal words.
std::string word_key(std::string_view word, LetterCase letter_case);

/// The spellings under which a model may have `word`, each once, `word` first: with
/// LetterCase::ignore also lower case, UPPER CASE and Capitalised. Other mixtures, as McDonald, are
/// found only if the file has them.
std::vector<std::string> spellings_of(std::string_view word, LetterCase letter_case);

}  // namespace gloved::client
