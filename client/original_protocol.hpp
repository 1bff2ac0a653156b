// Parses the input of the program that gloved descends from (README.md, «The original protocol»),
// and translates its queries to requests and their replies to its answers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::client {

/// A word and its sign in the sum that a query asks for.
struct SignedWord {
    bool negative = false;
    std::string word;
    friend bool operator==(const SignedWord&, const SignedWord&) = default;
};

/// One query of the original protocol. `words` is never empty, and its first is never negative.
struct OriginalQuery {
    std::vector<SignedWord> words;
    bool compare = false;  ///< flag 1: ask the cpu engine first, then the daemon's
    friend bool operator==(const OriginalQuery&, const OriginalQuery&) = default;
};

/// Parses tokens, the words of the input between blanks, into queries:
///
///     query = word flag | word { [+|-] word } "!" flag
///     flag = 0 | 1
///
/// "¡" means the same as "!".
///
/// The first token of a query is always a word, and so is a token after an operator: `+`, `!` and
/// `0` are words of real models. Elsewhere `0` or `1` is a flag, so that a missing `!` is noticed
/// at once.
class OriginalReader {
  public:
    /// Parses the next token, which must not be empty. Returns a query if the token completes one,
    /// else nullopt. Error: bad_request, if the token cannot stand here; then the unfinished query
    /// is dropped, and the next token begins a new one.
    Result<std::optional<OriginalQuery>> feed(std::string_view token);

    /// Call at the end of the input. Error: bad_request if a query is incomplete.
    Status finish();

  private:
    enum class State { first_word, after_first, after_operator, after_word, flag };

    std::optional<OriginalQuery> complete(bool compare);
    Error malformed(const std::string& what);

    State state_ = State::first_word;
    OriginalQuery query_;
    bool negative_ = false;
};

/// Number of words in an answer of the original program.
inline constexpr std::size_t kOriginalHits = 10;

/// Formats a query as a NEAR request without LF, which adds vectors as they are. It asks for one
/// hit more than is printed, because the query's first word is dropped from the answer. An empty
/// `engine` leaves the choice to the daemon.
std::string original_request(const OriginalQuery& query, std::string_view engine);

/// The words to print from a reply's lines («word TAB score»): at most kOriginalHits, without
/// `first_word`, the query's first. Views the same text.
std::vector<std::string_view> original_words(const std::vector<std::string_view>& lines,
                                             std::string_view first_word);

}  // namespace gloved::client
