// Words with and without regard to case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloved::client {

/// Whether words that differ in case alone are the same word.
enum class LetterCase { ignore, exact };

/// What words have in common that are the same word.
std::string word_key(std::string_view word, LetterCase letter_case);

/// The spellings under which a model may have `word`, each once, `word` first: with
/// LetterCase::ignore also in lower case, in UPPER CASE, and Capitalised. Other mixtures (McDonald
/// for mcdonald) are found only where a file has them.
std::vector<std::string> spellings(std::string_view word, LetterCase letter_case);

}  // namespace gloved::client
