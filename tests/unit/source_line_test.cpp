#include "tools/source/line.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::source {
namespace {

struct Parsed {
    std::string key;
    std::vector<float> values;
    std::optional<LineProblem> problem;
};

Parsed parse(std::string_view line, std::size_t dim) {
    Parsed parsed;
    parsed.values.assign(dim, 99.0F);
    std::string_view key;
    parsed.problem = parse_line(trim_line_end(line), dim, key, parsed.values.data());
    parsed.key = key;
    return parsed;
}

TEST(Line, SplitsKeyAndNumbers) {
    const Parsed parsed = parse("the 0.5 -1e2 .25", 3);
    ASSERT_FALSE(parsed.problem);
    EXPECT_EQ(parsed.key, "the");
    EXPECT_EQ(parsed.values, (std::vector<float>{0.5F, -100.0F, 0.25F}));
}

TEST(Line, KeepsTheKeyByteForByte) {
    const std::string keys[] = {"new york",  // an ASCII space inside
                                "a  b",      // two
                                "at name@domain.com",
                                "\xC2\xA0\xC2\xA0",
                                ".\xC2\xA0.\xC2\xA0.",
                                "\xC2\x85",
                                "\xFF\xFE\x80",  // invalid UTF-8
                                "\x01\x1F\x7F",  // control bytes
                                "1",
                                "0.5",
                                "1 2",  // numbers
                                "nan",
                                "<unk>",
                                "\"",
                                "\\"};
    for (const std::string& key : keys) {
        const Parsed parsed = parse(key + " 1 2", 2);
        ASSERT_FALSE(parsed.problem) << key << ": " << parsed.problem->message;
        EXPECT_EQ(parsed.key, key);
        EXPECT_EQ(parsed.values, (std::vector<float>{1, 2}));
    }
}

TEST(Line, LeavesOutBlanksAroundTheKey) {
    for (const std::string line : {"the  1 2", "the    1 2", " the 1 2", "  the   1 2"}) {
        const Parsed parsed = parse(line, 2);
        ASSERT_FALSE(parsed.problem) << line << ": " << parsed.problem->message;
        EXPECT_EQ(parsed.key, "the");
        EXPECT_EQ(parsed.values, (std::vector<float>{1, 2}));
    }
    EXPECT_EQ(parse("  1 2", 2).problem->fault, LineFault::bad_key);
}

TEST(Line, KeepsAKeyThatEndsInANumberOnceDimIsCertain) {
    std::vector<float> values(3);
    std::string_view key;
    EXPECT_TRUE(parse_line("Windows 8.1 4 5 6", 3, key, values.data()));
    ASSERT_FALSE(parse_line("Windows 8.1 4 5 6", 3, key, values.data(), true));
    EXPECT_EQ(key, "Windows 8.1");
    EXPECT_EQ(values, (std::vector<float>{4, 5, 6}));
    // Of a wider line.
    EXPECT_TRUE(parse_line("Windows 8.1 4.5 4 5 6", 3, key, values.data(), true));
}

TEST(Line, LeavesOutBlanksAndCarriageReturnsAtTheEnd) {
    for (const std::string end : {" ", "   ", "\r", " \r", "\r ", "  \r"}) {
        const Parsed parsed = parse("the 1 2" + end, 2);
        ASSERT_FALSE(parsed.problem) << parsed.problem->message;
        EXPECT_EQ(parsed.key, "the");
        EXPECT_EQ(parsed.values[1], 2.0F);
    }
}

struct Wrong {
    std::string line;
    LineFault fault;
    std::string fragment;
};

TEST(Line, NamesWhatIsWrong) {
    const std::vector<Wrong> cases = {
        {"", LineFault::blank, "blank"},
        {"  \r", LineFault::blank, "blank"},
        {"the", LineFault::too_few_fields, "1 field found, a word and 2 numbers expected"},
        {"the 1", LineFault::too_few_fields, "2 fields found"},
        {"the\t1\t2", LineFault::too_few_fields, "TABs"},
        {"the 1.0 2.0 3.0", LineFault::too_many_fields, "\"1.0\" stands before the last 2"},
        {"version 2.0 1 2", LineFault::too_many_fields,
         "a word that ends in one number is kept if --dim 2 is given and most words end otherwise"},
        {"the 1 x", LineFault::bad_number,
         "field 3 of 3 is \"x\", which is not a number (the word is \"the\")"},
        {"the 1 2f", LineFault::bad_number, "\"2f\""},
        {"the 0x1 2", LineFault::bad_number, "\"0x1\""},
        {"the 1,5 2", LineFault::bad_number, "\"1,5\""},
        {"the 1  2", LineFault::padded, "two blanks in a row; if the columns are padded"},
        {"the nan 2", LineFault::not_finite, "\"nan\", which is not finite"},
        {"the 1 -Inf", LineFault::not_finite, "\"-Inf\""},
        {"the 1 infinity", LineFault::not_finite, "infinity"},
        {"the 1 1e39", LineFault::overflow, "too large for float32"},
        {" 1 2", LineFault::bad_key, "empty"},
        {"  1 2", LineFault::bad_key, "empty"},
        {std::string("a\0b 1 2", 7), LineFault::bad_key, "NUL"},
        {"a\tb 1 2", LineFault::bad_key, "TAB"},
        {"a\rb 1 2", LineFault::bad_key, "CR"},
    };
    for (const Wrong& wrong : cases) {
        const Parsed parsed = parse(wrong.line, 2);
        ASSERT_TRUE(parsed.problem) << wrong.line;
        EXPECT_EQ(parsed.problem->fault, wrong.fault)
            << wrong.line << ": " << parsed.problem->message;
        EXPECT_NE(parsed.problem->message.find(wrong.fragment), std::string::npos)
            << parsed.problem->message;
    }
}

std::optional<LineProblem> parse_with_norm(std::string_view line, std::size_t dim,
                                           std::vector<float>& values) {
    values.assign(dim + 1, 99.0F);
    std::string_view key;
    return parse_line_with_norm(line, dim, key, values.data());
}

TEST(LineWithNorm, ChecksTheNormAndDropsIt) {
    std::vector<float> values;
    // Rounded or cut to few decimals, exact, with an exponent, zero.
    for (const char* line :
         {"a 5 3 4", "a 5.00 3 4", "a 5.0004 3 4", "a 0.5e1 3 4", "new york 5 3 4"}) {
        const auto problem = parse_with_norm(line, 2, values);
        ASSERT_FALSE(problem) << line << ": " << problem->message;
        EXPECT_EQ(std::vector(values.begin(), values.begin() + 2), (std::vector<float>{3, 4}))
            << line;
    }
    EXPECT_FALSE(parse_with_norm("a 1.41 1 1", 2, values));  // 1.4142…
    EXPECT_FALSE(parse_with_norm("a 1.42 1 1", 2, values));
    EXPECT_FALSE(parse_with_norm("a 0.000000 0.0000003 0.0000004", 2, values));
    EXPECT_FALSE(parse_with_norm("a 0 0 0", 2, values));
}

TEST(LineWithNorm, NamesANormThatIsNone) {
    std::vector<float> values;
    // One unit of an integer would be 20 % here; 1 % is what counts.
    for (const char* line :
         {"a 6 3 4", "a 5.002 3 4", "a 1.40 1 1", "a -5 3 4", "a 0 3 4", "a 1 0 0"}) {
        const auto problem = parse_with_norm(line, 2, values);
        ASSERT_TRUE(problem) << line;
        EXPECT_EQ(problem->fault, LineFault::norm_mismatch) << problem->message;
    }
    EXPECT_NE(parse_with_norm("a 6.0 3 4", 2, values)
                  ->message.find("given as \"6.0\", but that of the 2 numbers"),
              std::string::npos);
    EXPECT_EQ(parse_with_norm("a 5 3", 2, values)->fault, LineFault::too_few_fields);
}

}  // namespace
}  // namespace gloved::source
