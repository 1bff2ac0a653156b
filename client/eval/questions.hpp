// The questions of an evaluation, read from text. No files here.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::client {

/// The longest word that is believed; three of them fit a request, however they are quoted.
inline constexpr std::size_t kMaxQuestionWordBytes = 4096;

/// a is to b as c is to expected.
struct AnalogyQuestion {
    std::array<std::string, 3> given;
    std::string expected;
};

struct AnalogySection {
    std::string name;
    std::vector<AnalogyQuestion> questions;
    /// Grammar, not meaning: the name begins with «gram», as those of word2vec's
    /// questions-words.txt do.
    bool syntactic() const { return name.starts_with("gram"); }
};

/// Reads word2vec's questions-words format: a line «: NAME» begins a section, any other line holds
/// the four words of a question with blanks between; blank lines say nothing. Sections stay apart
/// even if their names are equal. `file` is what messages call it. Errors, bad_request, with the
/// line and the remedy: another number of words, a question before the first section, a word of
/// more than kMaxQuestionWordBytes, no question at all.
Result<std::vector<AnalogySection>> parse_analogies(std::string_view text, const std::string& file);

/// Two words and how similar people found them.
struct RatedPair {
    std::array<std::string, 2> words;
    double score = 0;
};

struct RatedPairs {
    std::vector<RatedPair> pairs;
    std::string header;  ///< the first line, if it was taken for one and passed over
};

/// Reads pairs: word, word and score a line, with TABs between if there is any TAB in the line,
/// else with blanks. Blank lines and those that begin with # say nothing; of the others, the first
/// is a header if its third field is no number. Errors as parse_analogies; also a score that is no
/// finite number.
Result<RatedPairs> parse_pairs(std::string_view text, const std::string& file);

}  // namespace gloved::client
