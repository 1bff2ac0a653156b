// Parses the files that gloved-eval reads: analogy questions, and word pairs with people's ratings.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/text_lines.hpp"

namespace gloved::client {

/// Maximum length of a word: three words fit a request line, even if quoting makes each byte four.
inline constexpr std::size_t kMaxQuestionWordBytes = 4096;

/// The question «a is to b as c is to what?»: `given` is a, b and c.
struct AnalogyQuestion {
    std::array<std::string, 3> given;
    std::string expected;
};

/// Questions of one kind, under one heading of the file.
struct AnalogySection {
    std::string name;
    std::vector<AnalogyQuestion> questions;
    /// Whether the name begins with «gram», as in word2vec's questions-words.txt.
    bool syntactic() const { return name.starts_with("gram"); }
};

/// Parses word2vec's questions-words format: a line «: NAME» begins a section; any other line has
/// the four words of a question, separated by blanks; blank lines are ignored. Sections with equal
/// names stay separate. Errors: those of TextLines; bad_source, with the line and the remedy, for
/// another number of words, a question before the first section, a word of more than
/// kMaxQuestionWordBytes, or no question at all.
Result<std::vector<AnalogySection>> parse_analogies(TextLines& lines);

/// Two words and the similarity that people gave them.
struct RatedPair {
    std::array<std::string, 2> words;
    double score = 0;
};

/// The pairs of a file.
struct RatedPairs {
    std::vector<RatedPair> pairs;
    std::string header;  ///< the first line, if it was skipped as a header
};

/// Parses lines of two words and a score, separated by TABs, or by blanks if the line has no TAB.
/// Blank lines and lines that begin with # are ignored; the first other line is a header if its
/// third field is not a number. Errors as parse_analogies, and for a score that is not finite.
Result<RatedPairs> parse_pairs(TextLines& lines);

}  // namespace gloved::client
