#include <gtest/gtest.h>

#include <string>

#include "common/wire/reply.hpp"

namespace gloved::wire {
namespace {

std::string score(double value) {
    std::string text = "word\t";
    append_score(text, value);
    return text.substr(5);
}

TEST(Reply, ScoresHaveSixDecimalsAndNoNegativeZero) {
    EXPECT_EQ(score(1), "1.000000");
    EXPECT_EQ(score(-1), "-1.000000");
    EXPECT_EQ(score(0.1234567), "0.123457");
    EXPECT_EQ(score(-0.0), "0.000000");
    EXPECT_EQ(score(-4.9e-7), "0.000000");
    EXPECT_EQ(score(-5.1e-7), "-0.000001");
    EXPECT_EQ(score(1e6), "1000000.000000");
}

TEST(Reply, AStatusLineReadsBack) {
    const std::string text = ok_line(10, {{"us", "123"}, {"engine", "cpu"}, {"note", "a=b"}, {"empty", ""}});
    EXPECT_EQ(text, "OK 10 us=123 engine=cpu note=a=b empty=\n");
    const auto status = parse_status_line(std::string_view(text).substr(0, text.size() - 1));
    ASSERT_TRUE(status);
    EXPECT_TRUE(status->ok);
    EXPECT_EQ(status->lines, 10U);
    EXPECT_EQ(status->fields.size(), 4U);
    EXPECT_EQ(status->field("us"), "123");
    EXPECT_EQ(status->field("note"), "a=b");
    EXPECT_EQ(status->field("empty"), "");
    EXPECT_EQ(status->field("absent"), "");
    EXPECT_EQ(ok_line(0), "OK 0\n");
    EXPECT_EQ(parse_status_line("OK 0")->lines, 0U);
}

TEST(Reply, AnErrorLineReadsBackAndIsOneLine) {
    const std::string text = error_line({ErrorCode::unknown_word, "no \"x\"\r\nhere"});
    EXPECT_EQ(text, "ERR unknown_word no \"x\"  here\n");
    const auto status = parse_status_line(std::string_view(text).substr(0, text.size() - 1));
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->ok);
    EXPECT_EQ(status->code, "unknown_word");
    EXPECT_EQ(status->message, "no \"x\"  here");
    EXPECT_EQ(parse_status_line("ERR busy")->code, "busy");
}

TEST(Reply, FaultsOfFilesAreInternalToAPeer) {
    EXPECT_EQ(code_name(ErrorCode::bad_request), "bad_request");
    EXPECT_EQ(code_name(ErrorCode::damaged), "internal");
    EXPECT_EQ(code_name(ErrorCode::io), "internal");
}

TEST(Reply, ForeignStatusLinesAreRefused) {
    for (const char* line : {"",
                             " ",
                             "OK",
                             "OK ",
                             "OK x",
                             "OK -1",
                             "OK +1",
                             "OK 1x",
                             "OK 18446744073709551616",
                             "OK 1  us=2",
                             "OK 1 us",
                             "OK 1 =2",
                             "ok 1",
                             "OKAY 1",
                             "ERR",
                             "ERR ",
                             "ERR  busy",
                             "HTTP/1.1 400 Bad Request",
                             "-ERR unknown command",
                             "\x15\x03\x01"}) {
        const auto status = parse_status_line(line);
        ASSERT_FALSE(status) << line;
        EXPECT_EQ(status.error().code, ErrorCode::bad_request) << line;
    }
}

}  // namespace
}  // namespace gloved::wire
