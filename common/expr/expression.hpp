// Word expressions: `king - man + woman`, `2 * ( paris - france ) + "new york"`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/expr/token.hpp"
#include "common/result.hpp"

namespace gloved::expr {

/// A word of a flattened expression.
struct Term {
    double coefficient = 1.0;
    std::string word;
    friend bool operator==(const Term&, const Term&) = default;
};

inline constexpr int kMaxNesting = 64;

/// Reads the rest of `tokens` as an expression and flattens it to (coefficient, word) pairs in
/// order of appearance:
///
///     expr = [+|-] term { [+|-] term }
///     term = [ number * ] ( word | "(" expr ")" )
///
/// Nested coefficients multiply in float64, outermost first. Never empty. Errors, all bad_request:
/// what does not follow the grammar, more than kMaxNesting parentheses deep, a coefficient that is
/// not finite.
Result<std::vector<Term>> parse_expression(Tokenizer& tokens);
Result<std::vector<Term>> parse_expression(std::string_view text);

/// Parses all of `text` as a decimal number (1, -2.5, 1e-3), rounded to the nearest float64. Error:
/// bad_request, also for overflow and for a nonzero number that becomes 0.
Result<double> parse_number(std::string_view text);

/// Parses a number rounded once to the nearest float32; underflow gives a signed 0. Error:
/// bad_request, also for overflow.
Result<float> parse_float32(std::string_view text);

}  // namespace gloved::expr
