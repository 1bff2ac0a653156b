#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/expr/expression.hpp"
#include "common/result.hpp"

namespace gloved::expr {
namespace {

using Terms = std::vector<Term>;

Terms terms_of(std::string_view text) {
    auto terms = parse_expression(text);
    EXPECT_TRUE(terms) << text << ": " << terms.error().message;
    return terms ? *std::move(terms) : Terms();
}

std::string error_of(std::string_view text) {
    const auto terms = parse_expression(text);
    EXPECT_FALSE(terms) << text;
    if (terms) return "";
    EXPECT_EQ(terms.error().code, ErrorCode::bad_request);
    EXPECT_EQ(terms.error().message.find('\n'), std::string::npos);
    return terms.error().message;
}

std::string nested(int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "( ";
    text += "a";
    for (int i = 0; i < depth; ++i) text += " )";
    return text;
}

TEST(Expression, AddsSubtractsAndJuxtaposes) {
    EXPECT_EQ(terms_of("king"), (Terms{{1, "king"}}));
    EXPECT_EQ(terms_of("king - man + woman"), (Terms{{1, "king"}, {-1, "man"}, {1, "woman"}}));
    EXPECT_EQ(terms_of("king queen"), (Terms{{1, "king"}, {1, "queen"}}));
    EXPECT_EQ(terms_of("- king + king"), (Terms{{-1, "king"}, {1, "king"}}));
    EXPECT_EQ(terms_of("+ king"), (Terms{{1, "king"}}));
}

TEST(Expression, OperatorsAreTokensOfTheirOwn) {
    EXPECT_EQ(terms_of("king-man +woman 2*x (a)"),
              (Terms{{1, "king-man"}, {1, "+woman"}, {1, "2*x"}, {1, "(a)"}}));
    EXPECT_EQ(terms_of("\"+\" - \"*\" \"(\""), (Terms{{1, "+"}, {-1, "*"}, {1, "("}}));
    EXPECT_EQ(terms_of("2 3"), (Terms{{1, "2"}, {1, "3"}})) << "a number without '*' is a word";
}

TEST(Expression, CoefficientsMultiplyOutermostFirst) {
    EXPECT_EQ(terms_of("2 * a - 0.5 * b"), (Terms{{2, "a"}, {-0.5, "b"}}));
    EXPECT_EQ(terms_of("-2 * a +3 * b"), (Terms{{-2, "a"}, {3, "b"}}));
    EXPECT_EQ(terms_of("a - 2 * ( b - 3 * ( c d ) ) + e"),
              (Terms{{1, "a"}, {-2, "b"}, {6, "c"}, {6, "d"}, {1, "e"}}));
    // (0.1 * 0.2) * 0.3 and 0.1 * (0.2 * 0.3) differ in the last bit.
    ASSERT_NE((0.1 * 0.2) * 0.3, 0.1 * (0.2 * 0.3));
    EXPECT_EQ(terms_of("0.1 * ( 0.2 * ( 0.3 * a ) )"), (Terms{{(0.1 * 0.2) * 0.3, "a"}}));
    // In the other order an intermediate product would overflow.
    EXPECT_EQ(terms_of("1e-300 * ( 1e200 * ( 1e200 * a ) )").at(0).coefficient,
              (1e-300 * 1e200) * 1e200);
    EXPECT_TRUE(std::signbit(terms_of("- 0 * a").at(0).coefficient));
}

TEST(Expression, NestsSixtyFourDeep) {
    EXPECT_EQ(terms_of(nested(64)), (Terms{{1, "a"}}));
    EXPECT_NE(error_of(nested(65)).find("64"), std::string::npos);
    EXPECT_EQ(terms_of(nested(64) + " " + nested(64)).size(), 2U)
        << "depth is not a count of parentheses";
    error_of(std::string(65536, '(').replace(1, 1, " "));
    std::string opening;
    for (int i = 0; i < 32768; ++i) opening += "( ";
    error_of(opening);
}

TEST(Expression, NamesWhatIsWrong) {
    const auto expect = [](std::string_view text, std::string_view part) {
        EXPECT_NE(error_of(text).find(part), std::string::npos)
            << text << " gives: " << error_of(text);
    };
    expect("", "needs a word");
    expect(" \t", "needs a word");
    expect("a +", "must follow \"+\"");
    expect("-", "must follow \"-\"");
    expect("a + + b", "must follow \"+\", not '+'");
    expect("*", "before '*'");
    expect("* a", "before '*'");
    expect("a * b", "\"a\" is not a number");
    expect("2 *", "must follow \"*\"");
    expect("2 * - a", "not '-'");
    expect("2 * 3 * a", "must follow \"3\", not '*'");
    expect("\"2\" * a", "quoted");
    expect("( a", "without its ')'");
    expect("a )", "without its '('");
    expect("( )", "must follow \"(\"");
    expect(")", "must stand before ')'");
    expect("a \"\"", "empty word");
    expect("a \"b", "closing quote");
    expect("1e999 * a", "\"1e999\" is too large for float64");
    expect("-1e-999 * a", "\"-1e-999\" is too small for float64");
    expect("nan * a", "\"nan\" is not a number");
    expect("-inf * a", "\"-inf\" is not a number");
    expect("1e200 * ( 1e200 * a )", "too large");
}

TEST(Number, IsDecimalAndFinite) {
    EXPECT_EQ(*parse_number("1"), 1.0);
    EXPECT_EQ(*parse_number("+5"), 5.0);
    EXPECT_EQ(*parse_number("-2.5e-3"), -2.5e-3);
    EXPECT_EQ(*parse_number(".5"), 0.5);
    EXPECT_EQ(*parse_number("1."), 1.0);
    EXPECT_EQ(*parse_number("18446744073709551616"), 18446744073709551616.0);
    EXPECT_EQ(*parse_number("5e-324"), 5e-324);
    for (const char* text : {"", "+", "-", "+-1", "-+1", "++1", "0x10", "1,5", "1 ", " 1", "1e",
                             "one", "inf", "-inf", "+inf", "nan", "1e999", "-1e999", "1\xC2\xA0"}) {
        EXPECT_FALSE(parse_number(text)) << text;
    }
}

TEST(Number, RoundsToFloat32Once) {
    EXPECT_EQ(*parse_float32("0.1"), 0.1F);
    EXPECT_EQ(*parse_float32("+5"), 5.0F);
    EXPECT_EQ(*parse_float32("-2.5e-3"), -2.5e-3F);
    // Just above the middle between 1 and the float32 behind it, by less than float64 can tell.
    EXPECT_EQ(*parse_float32("1.000000059604644775390625000001"), std::nextafter(1.0F, 2.0F));
    EXPECT_EQ(*parse_float32("1e-45"), std::numeric_limits<float>::denorm_min());
    EXPECT_EQ(*parse_float32("1e-60"), 0.0F);
    EXPECT_EQ(*parse_float32("1e-400"), 0.0F);
    EXPECT_TRUE(std::signbit(*parse_float32("-1e-400")));
    EXPECT_TRUE(std::signbit(*parse_float32("-1e-60")));
    EXPECT_EQ(*parse_float32("3.4028235e38"), std::numeric_limits<float>::max());
    for (const char* text :
         {"", "1e39", "-1e39", "1e999", "nan", "inf", "x", "0x1", "1 ", "+-1", "-"}) {
        EXPECT_FALSE(parse_float32(text)) << text;
    }
}

/// More digits than any float's exponent, on either side of the point, and an exponent that makes
/// up for them or not.
TEST(Number, WeighsDigitsAndExponentTogether) {
    const std::string zeros(400, '0');
    for (const std::string& huge : std::vector<std::string>{"1" + zeros + "e-50", "1" + zeros,
                                                            "0.1e400", "-1" + zeros + "e-361"}) {
        const auto number = parse_float32(huge);
        ASSERT_FALSE(number) << huge << " is read as " << *number;
        EXPECT_NE(number.error().message.find("too large for float32"), std::string::npos)
            << number.error().message;
    }
    for (const std::string& tiny : std::vector<std::string>{
             "0." + zeros + "1", "0." + zeros + "1e50", "1e-400", zeros + "." + zeros}) {
        const auto number = parse_float32(tiny);
        ASSERT_TRUE(number) << number.error().message;
        EXPECT_EQ(*number, 0.0F) << tiny;
        EXPECT_FALSE(std::signbit(*number)) << tiny;
        EXPECT_TRUE(std::signbit(*parse_float32("-" + tiny))) << tiny;
    }
    EXPECT_EQ(*parse_float32("25" + zeros + "e-401"), 2.5F);
    EXPECT_EQ(*parse_float32("0." + zeros + "25e401"), 2.5F);
    EXPECT_EQ(*parse_number("25" + zeros + "e-401"), 2.5);
    EXPECT_EQ(*parse_number("0." + zeros + "25e401"), 2.5);
    EXPECT_EQ(*parse_number("-0." + zeros + "e9"), 0.0);
    EXPECT_FALSE(parse_number("0." + zeros + "1"));
}

}  // namespace
}  // namespace gloved::expr
