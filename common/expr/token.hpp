// Tokenizer: splits a line into the tokens of the wire protocol (common/wire/PROTOCOL.md,
// «Tokens»).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gloved::expr {

/// A token. A quoted one is always a word.
struct Token {
    std::string text;
    bool quoted = false;

    /// Whether this is the unquoted token `symbol`.
    bool is(std::string_view symbol) const { return !quoted && text == symbol; }
};

/// A leading `name=value`.
struct Option {
    std::string name;
    std::string value;
};

/// Reads tokens from the left. The text must outlive it. All errors are bad_request.
class Tokenizer {
  public:
    explicit Tokenizer(std::string_view text) : rest_(text) {}

    /// The next token, or nothing at the end.
    Result<std::optional<Token>> next();
    /// The next token if it looks like an option, [a-z]+=…; otherwise nothing, and consumes
    /// nothing.
    Result<std::optional<Option>> next_option();

  private:
    void skip_separators();
    Result<std::string> take_quoted();
    std::string take_bare();

    std::string_view rest_;
};

}  // namespace gloved::expr
