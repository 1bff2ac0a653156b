#include "common/expr/expression.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "common/error_with.hpp"
#include "common/number.hpp"
#include "common/quoting.hpp"

namespace gloved::expr {
namespace {

/// Parses all of `text` as the nearest T, called `type` in messages; underflow gives 0.
template <class T>
Result<T> read_decimal(std::string_view text, const char* type) {
    const char* const end = text.data() + text.size();
    const Number<T> number = gloved::parse_number<T>(text.data(), end);
    if (number.fault == NumberFault::malformed || number.end != end) {
        return bad_request("{} is not a number", printable(text));
    }
    if (number.fault == NumberFault::overflow) {
        return bad_request("{} is too large for {}", printable(text), type);
    }
    return number.value;
}

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

    /// Parses up to the end or to an unmatched ')'.
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
            if (!number) return bad_request("before '*': {}", number.error().message);
            coefficient = outer * *number;
            if (!std::isfinite(coefficient))
                return bad_request("a coefficient is too large for float64");
            at_ += 2;
        }
        if (peek() == nullptr) {
            if (at_ == 0) return bad_request("an expression needs a word");
            return bad_request("a word must follow {}", before());
        }
        if (at("(")) {
            if (depth == kMaxNesting)
                return bad_request("more than {} nested parentheses", kMaxNesting);
            ++at_;
            if (Status parsed = expression(coefficient, depth + 1); !parsed) return parsed;
            if (!at(")")) return bad_request("a '(' without its ')'");
            ++at_;
            return {};
        }
        for (const std::string_view symbol : {"+", "-", "*", ")"}) {
            if (!at(symbol)) continue;
            if (at_ == 0) return bad_request("a word must stand before '{}'", symbol);
            return bad_request("a word must follow {}, not '{}'", before(), symbol);
        }
        if (tokens_[at_].text.empty()) return bad_request("an empty word");
        // Copied, not moved: the error about the next token quotes this one.
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
    auto number = read_decimal<double>(text, "float64");
    // A coefficient that became 0 would silently drop its word.
    const std::string_view digits = text.substr(0, text.find_first_of("eE"));
    if (number && *number == 0 && digits.find_first_of("123456789") != std::string_view::npos) {
        return bad_request("{} is too small for float64", printable(text));
    }
    return number;
}

Result<float> parse_float32(std::string_view text) { return read_decimal<float>(text, "float32"); }

Result<std::vector<Term>> parse_expression(Tokenizer& tokens) {
    auto list = tokens.take_all();
    if (!list) return list.error();
    return parse_expression(*std::move(list));
}

Result<std::vector<Term>> parse_expression(std::vector<Token> tokens) {
    return Parser(std::move(tokens)).run();
}

Result<std::vector<Term>> parse_expression(std::string_view text) {
    Tokenizer tokens(text);
    return parse_expression(tokens);
}

}  // namespace gloved::expr
