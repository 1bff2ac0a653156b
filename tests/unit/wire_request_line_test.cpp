#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/request.hpp"
#include "common/wire/request_line.hpp"

namespace gloved::wire {
namespace {

std::string line_of(const std::string& line, Unknown unknown = Unknown::error,
                    WordCase word_case = WordCase::exact) {
    const auto request = parse_request(line);
    EXPECT_TRUE(request) << line;
    return request ? request_line(*request, unknown, word_case) : "";
}

TEST(RequestLine, HasAllOptionsInForce) {
    EXPECT_EQ(line_of("king"),
              "NEAR k=10 certify=0 norm=raw exclude=inputs unknown=error case=exact \"king\"");
    EXPECT_EQ(line_of("king", Unknown::skip, WordCase::ignore),
              "NEAR k=10 certify=0 norm=raw exclude=inputs unknown=skip case=ignore \"king\"");
    EXPECT_EQ(line_of("NEAR unknown=error case=exact king", Unknown::skip, WordCase::ignore),
              line_of("king"));
    EXPECT_EQ(line_of("NEAR certify=1 without=b within=a,c prefix=\"a \\\"b\" top=7 min=-0.25 k=3 "
                      "fields=rank,row,norm norm=unit exclude=none unknown=skip case=ignore "
                      "engine=cpu model=m king"),
              "NEAR k=3 min=-0.25 top=7 prefix=\"a \\\"b\" within=\"a,c\" without=\"b\" "
              "fields=rank,row,norm certify=1 norm=unit exclude=none unknown=skip case=ignore "
              "\"king\"");
    EXPECT_EQ(line_of("ANALOGY method=mul case=ignore a \"b c\" k=3"),
              "ANALOGY k=10 certify=0 method=mul case=ignore \"a\" \"b c\" \"k=3\"");
    EXPECT_EQ(line_of("ANALOGY a b c"),
              "ANALOGY k=10 certify=0 method=add case=exact \"a\" \"b\" \"c\"");
    EXPECT_EQ(line_of("NEAR only=2 b - - a"),
              "NEAR k=10 only=2 certify=0 norm=raw exclude=inputs unknown=error case=exact \"b\" "
              "\"-\" - \"a\"");
    EXPECT_EQ(line_of("ANALOGY only=1 d a b c"),
              "ANALOGY k=10 only=1 certify=0 method=add case=exact \"d\" \"a\" \"b\" \"c\"");
    EXPECT_EQ(line_of("NEARVEC 1 -2"), "NEARVEC k=10 certify=0 base64=AACAPwAAAMA=");
}

TEST(RequestLine, WritesExpressionsWithoutParentheses) {
    const auto terms = [](const std::string& line) {
        const std::string written = line_of(line);
        return written.substr(written.find("case=exact") + 11);
    };
    EXPECT_EQ(terms("king - man + woman"), R"("king" - "man" + "woman")");
    EXPECT_EQ(terms("- 2 * ( paris - 0.1 * france ) + \"+\""),
              R"(- 2 * "paris" + 0.2 * "france" + "+")");
    EXPECT_EQ(terms("1e-300 * ( 1e-300 * a - 1e-300 * b )"), R"(0 * "a" - 0 * "b")");
    EXPECT_EQ(terms("\"caf\\xe9\""), R"("caf\xE9")");
}

TEST(RequestLine, IsTheSameRequest) {
    for (const char* line :
         {"a", "NEAR k=7 a b", "1e22 * a + 1e-7 * b - 123456789.125 * c",
          "NEAR min=1e-5 0.1 * ( 0.1 * ( 0.1 * a ) )", "4.9e-324 * a", "- a - ( b + ( c - d ) )",
          "NEAR min=-1e300 prefix=\"\\x01\\xff\" \"a\\x09b\"", "ANALOGY method=mul + - *",
          "NEAR 1e-300 * ( - 1e-300 * a )", "NEAR only=3 k=2 a \"k=1\" + - b"}) {
        const auto request = parse_request(line);
        ASSERT_TRUE(request) << line;
        const auto again = parse_request(request_line(*request, Unknown::error, WordCase::exact));
        ASSERT_TRUE(again) << request_line(*request, Unknown::error, WordCase::exact);
        EXPECT_EQ(again->verb, request->verb);
        EXPECT_EQ(again->chosen, request->chosen);
        EXPECT_EQ(again->words, request->words);
        EXPECT_EQ(again->options.min, request->options.min);
        EXPECT_EQ(again->options.prefix, request->options.prefix);
        ASSERT_EQ(again->terms, request->terms);
        for (std::size_t i = 0; i < request->terms.size(); ++i)
            EXPECT_EQ(std::bit_cast<std::uint64_t>(again->terms[i].coefficient),
                      std::bit_cast<std::uint64_t>(request->terms[i].coefficient));
    }
}

}  // namespace
}  // namespace gloved::wire
