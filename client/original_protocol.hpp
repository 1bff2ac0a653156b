// The original program's input, read token by token. No streams and no sockets here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::client {

/// A word and how it enters the sum.
struct SignedWord {
    bool negative = false;
    std::string word;
    friend bool operator==(const SignedWord&, const SignedWord&) = default;
};

/// One query of the original protocol. `words` is never empty, and its first is never negative.
struct OriginalQuery {
    std::vector<SignedWord> words;
    bool compare = false;  ///< flag 1: answer on the cpu first, then on the daemon's engine
    friend bool operator==(const OriginalQuery&, const OriginalQuery&) = default;
};

/// Makes queries of tokens:
///
///     query = word flag | word { [+|-] word } "!" flag
///     flag = 0 | 1
///
/// "¡" closes as "!" does.
///
/// A query's first token is a word whatever it looks like, and so is the token after an operator:
/// `+`, `!` and `0` are keys of real models. Elsewhere `0` or `1` is a flag, and a missing `!` is
/// noticed there rather than many queries later.
class OriginalReader {
  public:
    /// Takes the next token, which is not empty. Returns the query that it completes, if it does.
    /// Error: bad_request, for people; the query so far is dropped, and the reader goes on with the
    /// next one.
    Result<std::optional<OriginalQuery>> feed(std::string_view token);

    /// At the end of input. Error: bad_request, when a query has begun and not ended.
    Status finish();

  private:
    enum class State { first_word, after_first, after_operator, after_word, flag };

    std::optional<OriginalQuery> complete(bool compare);
    Error malformed(const std::string& what);

    State state_ = State::first_word;
    OriginalQuery query_;
    bool negative_ = false;
};

/// How many neighbours the original printed.
inline constexpr std::size_t kOriginalHits = 10;

/// The query as a request: raw sums, one hit more than is printed, because the first word is
/// dropped from the answer. An empty `engine` leaves the choice to the daemon.
std::string original_request(const OriginalQuery& query, std::string_view engine);

/// The words to print of a reply's lines («word<TAB>score»): without `first_word`, kOriginalHits at
/// most. Views into `lines`.
std::vector<std::string_view> original_words(const std::vector<std::string>& lines,
                                             std::string_view first_word);

}  // namespace gloved::client
