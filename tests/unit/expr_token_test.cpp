#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "common/expr/token.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::expr {
namespace {

/// All tokens, quoted ones marked by a leading «Q:»; or the error's message, marked by «E:».
std::vector<std::string> tokens_of(std::string_view text) {
    Tokenizer tokens(text);
    std::vector<std::string> list;
    while (true) {
        auto token = tokens.next();
        if (!token) {
            EXPECT_EQ(token.error().code, ErrorCode::bad_request);
            list.push_back("E:" + token.error().message);
            return list;
        }
        if (!token->has_value()) return list;
        list.push_back(((*token)->quoted ? "Q:" : "") + (*token)->text);
    }
}

using Tokens = std::vector<std::string>;

TEST(Tokenizer, SeparatesAtSpacesAndTabsOnly) {
    EXPECT_EQ(tokens_of(""), Tokens());
    EXPECT_EQ(tokens_of(" \t "), Tokens());
    EXPECT_EQ(tokens_of("\ta  b\tc "), (Tokens{"a", "b", "c"}));
    EXPECT_EQ(tokens_of("a\vb\u00A0c"), (Tokens{"a\vb\u00A0c"}));
    EXPECT_EQ(tokens_of("king-man+woman (x)"), (Tokens{"king-man+woman", "(x)"}));
}

TEST(Tokenizer, QuotesOnlyAtTheStartOfAToken) {
    EXPECT_EQ(tokens_of("\"a b\" c\"d\""), (Tokens{"Q:a b", "c\"d\""}));
    EXPECT_EQ(tokens_of("\"\""), (Tokens{"Q:"}));
    EXPECT_EQ(tokens_of("\"+\"\t\"NEAR\""), (Tokens{"Q:+", "Q:NEAR"}));
}

TEST(Tokenizer, UnderstandsItsEscapes) {
    EXPECT_EQ(tokens_of(R"("\"\\\x41\x0a\xfF")"), (Tokens{"Q:\"\\A\n\xFF"}));
    EXPECT_EQ(tokens_of(R"("\x00")"), (Tokens{std::string("Q:\0", 3)}));
    EXPECT_EQ(tokens_of(R"(a\x41)"), (Tokens{R"(a\x41)"})) << "a bare token has no escapes";
}

TEST(Tokenizer, RefusesBrokenQuotes) {
    const auto expect = [](std::string_view part, std::vector<const char*> texts) {
        for (const char* text : texts) {
            const auto list = tokens_of(text);
            ASSERT_EQ(list.size(), 1U) << text;
            EXPECT_EQ(list[0].substr(0, 2), "E:") << text;
            EXPECT_NE(list[0].find(part), std::string::npos) << text << " gives " << list[0];
        }
    };
    expect("no closing quote", {R"("a)", R"(")", R"("a\")"});
    expect("unknown escape", {R"("\n")", R"("\)", R"("\x)", R"("\x4")", R"("\x4g")", R"("\X41")"});
    expect("a space must follow", {R"("a"b)", R"("a""b")"});
}

TEST(Tokenizer, AnOptionIsLowerCaseLettersOrBase64AndAnEqualsSign) {
    Tokenizer tokens(R"( k=10 prefix="a b" top= base64=AA+/Aw== Kk=1 k=2)");
    const auto option = [&] {
        auto next = tokens.next_option();
        EXPECT_TRUE(next);
        return next && *next ? (*next)->name + "|" + (*next)->value : "none";
    };
    EXPECT_EQ(option(), "k|10");
    EXPECT_EQ(option(), "prefix|a b");
    EXPECT_EQ(option(), "top|");
    EXPECT_EQ(option(), "base64|AA+/Aw==");
    EXPECT_EQ(option(), "none");
    EXPECT_EQ(option(), "none") << "what is not an option is not consumed";
    EXPECT_EQ((*tokens.next())->text, "Kk=1");
    for (const char* text : {"=1", "k", "k =1", "\"k\"=1", "k1=1", "base64x=1", "base64",
                             "base65=1", "base641=1", "base64 =1", "1base64=1", ""}) {
        Tokenizer other(text);
        auto next = other.next_option();
        ASSERT_TRUE(next) << text;
        EXPECT_FALSE(next->has_value()) << text;
    }
    EXPECT_FALSE(Tokenizer("k=\"1").next_option());
    EXPECT_FALSE(Tokenizer("k=\"1\"2").next_option());
}

TEST(Tokenizer, TakesNumbersUpToTheFirstOtherToken) {
    const auto taken = [](std::string_view text, std::string_view next) {
        Tokenizer tokens(text);
        std::vector<float> values;
        tokens.take_numbers(values);
        const auto token = tokens.next();
        EXPECT_TRUE(token) << text;
        EXPECT_EQ(token && *token ? (*token)->text : "", next) << text;
        return values;
    };
    using Values = std::vector<float>;
    EXPECT_EQ(taken("", ""), Values());
    EXPECT_EQ(taken(" \t ", ""), Values());
    EXPECT_EQ(taken("1", ""), Values{1});
    EXPECT_EQ(taken("\t-0.5  .25\t+1e2 0.123456789 ", ""),
              (Values{-0.5F, 0.25F, 100, 0.123456789F}));
    EXPECT_EQ(taken("1 2 x 3", "x"), (Values{1, 2}));
    EXPECT_EQ(taken("1 2x 3", "2x"), Values{1});
    EXPECT_EQ(taken("0.25000000000\"", "0.25000000000\""), Values());
    EXPECT_EQ(taken("1 \"2\" 3", "2"), Values{1});
    EXPECT_EQ(taken("0.25 1e39 3", "1e39"), Values{0.25F});
    EXPECT_EQ(taken("1 -", "-"), Values{1});
}

TEST(Tokenizer, AQuotedWordReadsBackAsItsBytes) {
    std::mt19937_64 random(20);
    // Bytes that matter to the syntax are drawn far more often than chance would.
    const std::string special("\" \\\t\n\r\0x41+-*()=\xC2\x80\xE2\x82\xAC\xF0\x9F\xFF", 24);
    for (int round = 0; round < 20000; ++round) {
        std::string word;
        for (std::size_t length = 1 + random() % 24; word.size() < length;) {
            word += random() % 2 == 0 ? special[random() % special.size()]
                                      : static_cast<char>(random());
        }
        const std::string quoted = wire::quote_word(word);
        Tokenizer tokens(quoted);
        auto token = tokens.next();
        ASSERT_TRUE(token) << token.error().message;
        ASSERT_TRUE(token->has_value());
        EXPECT_TRUE((*token)->quoted);
        ASSERT_EQ((*token)->text, word) << quoted;
        EXPECT_FALSE(tokens.next()->has_value()) << quoted;
        for (std::size_t i = 0; i < quoted.size();) {
            const auto byte = static_cast<unsigned char>(quoted[i]);
            const std::size_t length = utf8_sequence_length(std::string_view(quoted).substr(i));
            ASSERT_TRUE(length > 0 && byte >= 0x20 && byte != 0x7F)
                << "not printable at byte " << i << " of " << quoted;
            i += length;
        }
    }
}

}  // namespace
}  // namespace gloved::expr
