// Parses word expressions, such as `king - man + woman` or `2 * ( paris - france ) + "new york"`,
// and numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/expr/token.hpp"
#include "common/result.hpp"

namespace gloved::expr {

/// A word of an expression without its parentheses, and the factor of its vector.
struct Term {
    double coefficient = 1.0;
    std::string word;
    friend bool operator==(const Term&, const Term&) = default;
};

/// Maximum depth of parentheses.
inline constexpr int kMaxNesting = 64;

/// Parses the rest of `tokens` as an expression, multiplies its parentheses out, and returns its
/// words in the order of appearance:
///
///     expr = [+|-] term { [+|-] term }
///     term = [ number * ] ( word | "(" expr ")" )
///
/// Nested coefficients multiply in float64, outermost first. The result is never empty. Error:
/// bad_request, for tokens that do not follow the grammar, parentheses deeper than kMaxNesting, and
/// a coefficient that is not finite.
Result<std::vector<Term>> parse_expression(Tokenizer& tokens);
/// As above, for all of `text`, or all of `tokens`.
Result<std::vector<Term>> parse_expression(std::string_view text);
Result<std::vector<Term>> parse_expression(std::vector<Token> tokens);

/// Parses all of `text` as a decimal number (1, -2.5, 1e-3), rounded to the nearest float64. Error:
/// bad_request, also for overflow and for a nonzero number that becomes 0.
Result<double> parse_number(std::string_view text);

/// Parses all of `text` as a decimal number, rounded once to the nearest float32; a number too
/// small for it gives 0 or −0. Error: bad_request, also for overflow.
Result<float> parse_float32(std::string_view text);

}  // namespace gloved::expr
