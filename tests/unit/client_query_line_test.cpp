#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "client/query_line.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

TEST(QueryLine, AnExpressionBecomesNear) {
    EXPECT_EQ(*query_line({"king", "-", "man"}, std::nullopt), "NEAR king - man");
    EXPECT_EQ(*query_line({"king - man"}, 3), "NEAR k=3 king - man");
    EXPECT_EQ(*query_line({"-", "-x", "--"}, std::nullopt), "NEAR - -x --");
    EXPECT_EQ(*query_line({"\"PING\""}, std::nullopt), "NEAR \"PING\"")
        << "a quoted verb is a word";
    EXPECT_EQ(*query_line({"ping"}, std::nullopt), "NEAR ping");
    EXPECT_EQ(*query_line({"\"open"}, std::nullopt), "NEAR \"open")
        << "the daemon says what is wrong with it";
    EXPECT_EQ(*query_line({""}, std::nullopt), "NEAR ");
}

TEST(QueryLine, AVerbIsKnownWhateverEndsTheLine) {
    EXPECT_EQ(verb_of("RELOAD glove\r"), wire::Verb::reload);
    EXPECT_EQ(verb_of("QUIT\r"), wire::Verb::quit);
    EXPECT_EQ(verb_of("king\r"), std::nullopt);
}

TEST(QueryLine, AVerbIsSentAsItIs) {
    EXPECT_EQ(*query_line({"PING"}, std::nullopt), "PING");
    EXPECT_EQ(*query_line({"SIM", "king", "\"new york\""}, std::nullopt), "SIM king \"new york\"");
    EXPECT_EQ(*query_line({" NEAR k=3 king"}, std::nullopt), " NEAR k=3 king")
        << "also inside one argument";
    EXPECT_FALSE(query_line({"NEAR", "king"}, 3));
}

TEST(QueryLine, AVerbInSmallLettersIsToldToBeAWord) {
    EXPECT_EQ(note_on_verb({"near", "king"}),
              "\"near\" was taken as a word; the request NEAR is written in capitals");
    for (const std::string line : {"Sim king queen", "help", "stats", "near king - man"})
        EXPECT_NE(note_on_verb({line}), "") << line;
    for (const std::string line :
         {"king", "NEAR king", "near + king", "near - king", "\"near\" king", "king near", "", " "})
        EXPECT_EQ(note_on_verb({line}), "") << line;
}

TEST(QueryLine, IsOneLine) {
    EXPECT_FALSE(query_line({"a\nQUIT"}, std::nullopt));
    EXPECT_FALSE(query_line({"PING\r"}, std::nullopt));
    EXPECT_FALSE(query_line({std::string("a\0b", 3)}, std::nullopt));
}

}  // namespace
}  // namespace gloved::client
