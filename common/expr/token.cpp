#include "common/expr/token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/quoting.hpp"

namespace gloved::expr {
namespace {

constexpr std::string_view kSeparators = " \t";
/// The one option whose name has digits. Others would take words such as x1=2 from older requests.
constexpr std::string_view kNameWithDigits = "base64";

Error bad_request(std::string message) { return {ErrorCode::bad_request, std::move(message)}; }

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

void Tokenizer::skip_separators() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSeparators), rest_.size()));
}

std::string Tokenizer::take_bare() {
    const std::size_t length = std::min(rest_.find_first_of(kSeparators), rest_.size());
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
            return bad_request(
                fmt::format("unknown escape in {}: write \\\", \\\\ or \\xHH", printable(whole)));
        }
    }
    if (rest_.empty()) {
        return bad_request(fmt::format(
            "no closing quote in {}; the word '\"' itself is written \"\\\"\"", printable(whole)));
    }
    rest_.remove_prefix(1);
    if (!rest_.empty() && kSeparators.find(rest_.front()) == std::string_view::npos) {
        return bad_request(
            fmt::format("a space must follow the closing quote in {}", printable(whole)));
    }
    return text;
}

Result<std::optional<Token>> Tokenizer::next() {
    skip_separators();
    if (rest_.empty()) return std::optional<Token>();
    if (rest_.front() != '"') return std::optional<Token>(Token{take_bare(), false});
    auto text = take_quoted();
    if (!text) return text.error();
    return std::optional<Token>(Token{*std::move(text), true});
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
