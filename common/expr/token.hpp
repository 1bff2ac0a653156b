// Tokenizer: splits a line into the tokens of the wire protocol (common/wire/PROTOCOL.md,
// «Tokens»).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::expr {

/// A token: `text` is without the quotes and escapes. A quoted token is always a word.
struct Token {
    std::string text;
    bool quoted = false;
    std::string_view typed = {};  ///< the token's bytes in the Tokenizer's text

    /// Whether this token is `symbol` and was not quoted.
    bool is(std::string_view symbol) const { return !quoted && text == symbol; }
};

/// A token of the form `name=value`, before a request's operands.
struct Option {
    std::string name;
    std::string value;
};

/// Reads the tokens of a text from left to right. The text must outlive the Tokenizer. All errors
/// are bad_request.
class Tokenizer {
  public:
    explicit Tokenizer(std::string_view text) : rest_(text) {}

    /// Takes the next token; nullopt at the end.
    Result<std::optional<Token>> next();
    /// Takes all tokens that are left.
    Result<std::vector<Token>> take_all();
    /// Takes the next token if it looks like an option, [a-z]+=… or base64=…; otherwise returns
    /// nullopt and leaves the token for `next`.
    Result<std::optional<Option>> next_option();
    /// Takes tokens while they are unquoted numbers, and appends those to `values`. Leaves the
    /// first other token for `next`. Much faster than a token at a time.
    void take_numbers(std::vector<float>& values);

  private:
    void skip_separators();
    Result<std::string> take_quoted();
    std::string take_bare();

    std::string_view rest_;
};

}  // namespace gloved::expr
