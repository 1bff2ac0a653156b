#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "client/original_protocol.hpp"
#include "common/result.hpp"

namespace gloved::client {
namespace {

/// What a reader makes of a text: each query as «+a-b !1», each error as «error».
std::vector<std::string> read(const std::string& text) {
    OriginalReader reader;
    std::vector<std::string> made;
    std::istringstream tokens(text);
    for (std::string token; tokens >> token;) {
        const auto query = reader.feed(token);
        if (!query) {
            EXPECT_EQ(query.error().code, ErrorCode::bad_request);
            made.emplace_back("error");
        } else if (*query) {
            std::string shown;
            for (const auto& [negative, word] : (*query)->words)
                shown += (negative ? "-" : "+") + word;
            made.push_back(shown + ((*query)->compare ? " !1" : " !0"));
        }
    }
    if (!reader.finish()) made.emplace_back("unfinished");
    return made;
}

using Made = std::vector<std::string>;

TEST(OriginalReader, ReadsSingleWords) {
    EXPECT_EQ(read("king 0"), (Made{"+king !0"}));
    EXPECT_EQ(read("king 1 snake 0"), (Made{"+king !1", "+snake !0"}));
    EXPECT_EQ(read(""), Made());
}

TEST(OriginalReader, ReadsSums) {
    EXPECT_EQ(read("king - man + woman ! 1"), (Made{"+king-man+woman !1"}));
    EXPECT_EQ(read("king - man + woman ¡ 0"), (Made{"+king-man+woman !0"}));
    EXPECT_EQ(read("king ! 0"), (Made{"+king !0"}));
    EXPECT_EQ(read("king queen ! 0"), (Made{"+king+queen !0"})) << "no operator adds";
    EXPECT_EQ(read("a - b c ! 0"), (Made{"+a-b+c !0"})) << "a sign holds for one word";
}

TEST(OriginalReader, LineEndsMeanNothing) {
    EXPECT_EQ(read("king\n-\nman\r\n! \t\n1\nsnake\n0"), (Made{"+king-man !1", "+snake !0"}));
}

TEST(OriginalReader, WhereAWordStandsAnythingIsAWord) {
    EXPECT_EQ(read("0 0 1 1 + 0 ! 1"), (Made{"+0 !0", "+1 !1", "++ !0", "+! !1"}));
    EXPECT_EQ(read("2 + 1 - ! ! 1"), (Made{"+2+1-! !1"}));
    EXPECT_EQ(read("a + + - - ! 0"), (Made{"+a++-- !0"}));
    EXPECT_EQ(read("NEAR + k=3 ! 0"), (Made{"+NEAR+k=3 !0"}));
}

TEST(OriginalReader, SaysWhatIsMalformedAndGoesOn) {
    EXPECT_EQ(read("king - man 0 snake 0"), (Made{"error", "+snake !0"}))
        << "the '!' was forgotten";
    EXPECT_EQ(read("king + man ! snake 0"), (Made{"error", "+snake !0"}))
        << "the flag was forgotten";
    EXPECT_EQ(read("king + man ! 2 0"), (Made{"error", "+2 !0"}));
    EXPECT_EQ(read("king"), (Made{"unfinished"}));
    EXPECT_EQ(read("king -"), (Made{"unfinished"}));
    EXPECT_EQ(read("king - man !"), (Made{"unfinished"}));
}

TEST(OriginalReader, NothingOfADroppedQueryIsLeft) {
    OriginalReader reader;
    for (const char* token : {"a", "-", "b"}) ASSERT_TRUE(reader.feed(token));
    const auto dropped = reader.feed("1");
    ASSERT_FALSE(dropped);
    EXPECT_NE(dropped.error().message.find("\"a\""), std::string::npos) << dropped.error().message;
    EXPECT_TRUE(reader.finish());
    ASSERT_TRUE(reader.feed("c"));
    EXPECT_EQ(**reader.feed("0"), (OriginalQuery{{{false, "c"}}, false}));
}

TEST(OriginalRequest, QuotesEveryWord) {
    const OriginalQuery query{{{false, "k=3"}, {true, "a\"b"}, {false, "+"}}, false};
    EXPECT_EQ(original_request(query, ""), "NEAR k=11 exclude=none \"k=3\" - \"a\\\"b\" + \"+\"");
    EXPECT_EQ(original_request({{{false, "king"}}, true}, "cpu"),
              "NEAR k=11 exclude=none engine=cpu \"king\"");
}

TEST(OriginalWords, DropTheFirstWordAndKeepTen) {
    const std::vector<std::string_view> lines = {"w0\t0.9", "w1\t0.8", "w2\t0.8", "w3\t0.7",
                                                 "w4\t0.7", "w5\t0.6", "w6\t0.6", "w7\t0.5",
                                                 "w8\t0.5", "w9\t0.4", "w10\t0.4"};
    const auto without = original_words(lines, "w3");
    EXPECT_EQ(without.size(), 10U);
    EXPECT_EQ(without.front(), "w0");
    EXPECT_EQ(without.back(), "w10");
    const auto absent = original_words(lines, "other");
    EXPECT_EQ(absent.size(), 10U);
    EXPECT_EQ(absent.back(), "w9");
    EXPECT_TRUE(original_words({}, "a").empty());
}

}  // namespace
}  // namespace gloved::client
