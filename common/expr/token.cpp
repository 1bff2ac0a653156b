#include "common/expr/token.hpp"

#include <cstddef>
#include <utility>

#include "common/error_with.hpp"
#include "common/number.hpp"
#include "common/quoting.hpp"

namespace gloved::expr {
namespace {

/// Bytes of a short number of a vector and a separator. Room for numbers of this length is not more
/// than a vector would have after growing.
constexpr std::size_t kTypicalNumberBytes = 8;

bool is_separator(char c) { return c == ' ' || c == '\t'; }

/// The one option whose name has digits. Others would take words such as x1=2 from older requests.
constexpr std::string_view kNameWithDigits = "base64";

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

void Tokenizer::skip_separators() {
    std::size_t length = 0;
    while (length < rest_.size() && is_separator(rest_[length])) ++length;
    rest_.remove_prefix(length);
}

std::string Tokenizer::take_bare() {
    std::size_t length = 0;
    while (length < rest_.size() && !is_separator(rest_[length])) ++length;
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
}

Result<std::string> Tokenizer::take_quoted() {
    const std::string_view whole = rest_;
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_.front() != '"') {
        if (rest_.front() != '\\') {
            text += rest_.front();
            rest_.remove_prefix(1);
            continue;
        }
        if (rest_.size() >= 2 && (rest_[1] == '"' || rest_[1] == '\\')) {
            text += rest_[1];
            rest_.remove_prefix(2);
        } else if (rest_.size() >= 4 && rest_[1] == 'x' && hex_digit(rest_[2]) >= 0 &&
                   hex_digit(rest_[3]) >= 0) {
            text += static_cast<char>(hex_digit(rest_[2]) * 16 + hex_digit(rest_[3]));
            rest_.remove_prefix(4);
        } else {
            return bad_request("unknown escape in {}: write \\\", \\\\ or \\xHH", printable(whole));
        }
    }
    if (rest_.empty()) {
        return bad_request("no closing quote in {}; the word '\"' itself is written \"\\\"\"",
                           printable(whole));
    }
    rest_.remove_prefix(1);
    if (!rest_.empty() && !is_separator(rest_.front())) {
        return bad_request("a space must follow the closing quote in {}", printable(whole));
    }
    return text;
}

Result<std::optional<Token>> Tokenizer::next() {
    skip_separators();
    if (rest_.empty()) return std::optional<Token>();
    const std::string_view before = rest_;
    const auto typed = [&] { return before.substr(0, before.size() - rest_.size()); };
    if (rest_.front() != '"') {
        std::string text = take_bare();
        return std::optional<Token>(Token{std::move(text), false, typed()});
    }
    auto text = take_quoted();
    if (!text) return text.error();
    return std::optional<Token>(Token{*std::move(text), true, typed()});
}

Result<std::vector<Token>> Tokenizer::take_all() {
    std::vector<Token> tokens;
    while (true) {
        auto token = next();
        if (!token) return token.error();
        if (!token->has_value()) return tokens;
        tokens.push_back(**std::move(token));
    }
}

void Tokenizer::take_numbers(std::vector<float>& values) {
    const char* const end = rest_.data() + rest_.size();
    const char* token = rest_.data();
    if (values.empty()) values.reserve(rest_.size() / kTypicalNumberBytes);
    while (true) {
        while (token != end && is_separator(*token)) ++token;
        const Number<float> number = parse_number<float>(token, end);
        if (number.fault != NumberFault::none) break;
        if (number.end != end && !is_separator(*number.end)) break;
        values.push_back(number.value);
        token = number.end;
    }
    rest_.remove_prefix(static_cast<std::size_t>(token - rest_.data()));
}

Result<std::optional<Option>> Tokenizer::next_option() {
    skip_separators();
    std::size_t length = 0;
    if (rest_.starts_with(kNameWithDigits)) {
        length = kNameWithDigits.size();
    } else {
        while (length < rest_.size() && rest_[length] >= 'a' && rest_[length] <= 'z') ++length;
    }
    if (length == 0 || length == rest_.size() || rest_[length] != '=')
        return std::optional<Option>();
    Option option;
    option.name = rest_.substr(0, length);
    rest_.remove_prefix(length + 1);
    if (!rest_.empty() && rest_.front() == '"') {
        auto text = take_quoted();
        if (!text) return text.error();
        option.value = *std::move(text);
    } else {
        option.value = take_bare();
    }
    return std::optional<Option>(std::move(option));
}

}  // namespace gloved::expr
