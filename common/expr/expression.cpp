#include "common/expr/expression.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "common/quoting.hpp"

namespace gloved::expr {
namespace {

Error bad_request(std::string message) { return {ErrorCode::bad_request, std::move(message)}; }

class Parser {
  public:
    explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    Result<std::vector<Term>> run() {
        if (Status parsed = expression(1.0, 0); !parsed) return parsed.error();
        if (at_ < tokens_.size()) return bad_request("a ')' without its '('");
        return std::move(terms_);
    }

  private:
    const Token* peek(std::size_t ahead = 0) const {
        return at_ + ahead < tokens_.size() ? &tokens_[at_ + ahead] : nullptr;
    }
    bool at(std::string_view symbol) const { return peek() != nullptr && peek()->is(symbol); }

    /// Up to the end or to a ')' that is not its own.
    Status expression(double outer, int depth) {
        do {
            double sign = 1.0;
            if (at("+") || at("-")) sign = tokens_[at_++].text == "-" ? -1.0 : 1.0;
            if (Status parsed = term(outer * sign, depth); !parsed) return parsed;
        } while (peek() != nullptr && !at(")"));
        return {};
    }

    Status term(double outer, int depth) {
        double coefficient = outer;
        if (peek(1) != nullptr && peek(1)->is("*") && !at("(") && !at(")")) {
            if (tokens_[at_].quoted)
                return bad_request("a quoted word before '*': a number must stand there, unquoted");
            auto number = parse_number(tokens_[at_].text);
            if (!number) {
                return bad_request(fmt::format("before '*': {}", number.error().message));
            }
            coefficient = outer * *number;
            if (!std::isfinite(coefficient)) return bad_request("a coefficient is too large for float64");
            at_ += 2;
        }
        if (peek() == nullptr) {
            return bad_request(at_ == 0 ? "an expression needs a word"
                                        : fmt::format("a word must follow {}", before()));
        }
        if (at("(")) {
            if (depth == kMaxNesting) return bad_request(fmt::format("more than {} nested parentheses", kMaxNesting));
            ++at_;
            if (Status parsed = expression(coefficient, depth + 1); !parsed) return parsed;
            if (!at(")")) return bad_request("a '(' without its ')'");
            ++at_;
            return {};
        }
        for (const std::string_view symbol : {"+", "-", "*", ")"}) {
            if (at(symbol)) {
                return bad_request(at_ == 0 ? fmt::format("a word must stand before '{}'", symbol)
                                            : fmt::format("a word must follow {}, not '{}'", before(), symbol));
            }
        }
        if (tokens_[at_].text.empty()) return bad_request("an empty word");
        // Copied, not moved: a message about the next token names this one.
        terms_.push_back({coefficient, tokens_[at_++].text});
        return {};
    }

    std::string before() const { return printable(tokens_[at_ - 1].text); }

    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::vector<Term> terms_;
};

}  // namespace

Result<double> parse_number(std::string_view text) {
    std::string_view digits = text;
    // from_chars takes a minus sign only.
    if (!digits.empty() && digits.front() == '+') {
        digits.remove_prefix(1);
        if (!digits.empty() && digits.front() == '-') digits = {};
    }
    double value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (fault == std::errc::result_out_of_range) {
        return bad_request(fmt::format("{} is out of range for float64", printable(text)));
    }
    if (fault != std::errc() || end != digits.data() + digits.size()) {
        return bad_request(fmt::format("{} is not a number", printable(text)));
    }
    if (!std::isfinite(value)) return bad_request(fmt::format("{} is not a finite number", printable(text)));
    return value;
}

Result<float> parse_float32(std::string_view text) {
    std::string_view digits = text;
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    float value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool number = fault != std::errc::invalid_argument && end == digits.data() + digits.size();
    if (!number) return bad_request(fmt::format("{} is not a number", printable(text)));
    if (!std::isfinite(value)) return bad_request(fmt::format("{} is not a finite number", printable(text)));
    if (fault == std::errc()) return value;
    // Too small or too large; float64 tells which, and where it is too narrow itself, the exponent's sign does.
    const auto wide = parse_number(text);
    const std::size_t exponent = digits.find_first_of("eE");
    const bool small =
        wide ? std::abs(*wide) < 1 : exponent != std::string_view::npos && digits.substr(exponent + 1).starts_with('-');
    if (small) return digits.starts_with('-') ? -0.0F : 0.0F;
    return bad_request(fmt::format("{} is too large for float32", printable(text)));
}

Result<std::vector<Term>> parse_expression(Tokenizer& tokens) {
    std::vector<Token> list;
    while (true) {
        auto token = tokens.next();
        if (!token) return token.error();
        if (!token->has_value()) break;
        list.push_back(**std::move(token));
    }
    return Parser(std::move(list)).run();
}

Result<std::vector<Term>> parse_expression(std::string_view text) {
    Tokenizer tokens(text);
    return parse_expression(tokens);
}

}  // namespace gloved::expr
