#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"

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

TEST(Reply, ScoresAreRoundedAsExactly) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(-1.5, 1.5);
    const auto exact = [](double value) {
        const std::string text = fmt::format("{:.6f}", value);
        return text == "-0.000000" ? text.substr(1) : text;
    };
    for (int i = 0; i < 200'000; ++i) {
        const double value = uniform(random);
        ASSERT_EQ(score(value), exact(value));
        // Next to where rounding changes.
        const double tie = (std::floor(value * 1e6) + 0.5) / 1e6;
        ASSERT_EQ(score(tie), exact(tie));
        ASSERT_EQ(score(std::nextafter(tie, 9)), exact(std::nextafter(tie, 9)));
        ASSERT_EQ(score(std::nextafter(tie, -9)), exact(std::nextafter(tie, -9)));
    }
    for (const double value :
         {8.9999994, 8.9999996, 8.9999999, 9.0, 9.9999996, 99.5, 0.9999996, 5e-7, -5e-7, 1e300,
          std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
        ASSERT_EQ(score(value), exact(value));
}

std::string head(Form form, std::size_t lines, const std::vector<StatusField>& fields = {}) {
    std::string out;
    append_head(out, form, Verb::near, lines, fields);
    return out;
}

TEST(Reply, AStatusLineReadsBack) {
    const std::string text =
        head(Form::text, 10,
             {{"us", std::uint64_t{123}}, {"engine", "cpu"}, {"note", "a=b"}, {"empty", ""}});
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
    EXPECT_EQ(head(Form::text, 0), "OK 0\n");
    EXPECT_EQ(parse_status_line("OK 0")->lines, 0U);
}

TEST(Reply, AnErrorLineReadsBackAndIsOneLine) {
    const std::string text = error_reply(Form::text, {ErrorCode::unknown_word, "no \"x\"\r\nhere"});
    EXPECT_EQ(text, "ERR unknown_word no \"x\"\\x0D\\x0Ahere\n");
    const auto status = parse_status_line(std::string_view(text).substr(0, text.size() - 1));
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->ok);
    EXPECT_EQ(status->code, "unknown_word");
    EXPECT_EQ(status->message, "no \"x\"\\x0D\\x0Ahere");
    EXPECT_EQ(parse_status_line("ERR busy")->code, "busy");
}

TEST(Reply, JsonHeadsHaveNumbersAsNumbers) {
    EXPECT_EQ(head(Form::json, 2,
                   {{"engine", "cpu"},
                    {"us", std::uint64_t{18446744073709551615U}},
                    {"kth", 0.1},
                    {"rejected_below", -std::numeric_limits<double>::infinity()},
                    {"negative_zero", -0.0}}),
              R"({"ok":true,"verb":"NEAR","engine":"cpu","us":18446744073709551615,)"
              R"("kth":0.1,"rejected_below":null,)"
              R"("negative_zero":0,"results":[)");
    EXPECT_EQ(head(Form::text, 2,
                   {{"kth", 0.1}, {"rejected_below", -std::numeric_limits<double>::infinity()}}),
              "OK 2 kth=0.10000000000000001 rejected_below=-inf\n");
    EXPECT_EQ(empty_reply(Form::json, Verb::ping),
              "{\"ok\":true,\"verb\":\"PING\",\"results\":[]}\n");
    EXPECT_EQ(lines_reply(Form::json, Verb::help, "a\n\"b\"\n"),
              R"({"ok":true,"verb":"HELP","results":[{"line":"a"},{"line":"\"b\""}]})"
              "\n");
    EXPECT_EQ(lines_reply(Form::text, Verb::help, "a\n\"b\"\n"), "OK 2\na\n\"b\"\n");
}

TEST(Reply, LinesHaveTheSameColumnsInTextAndJson) {
    const auto lines = [](Form form) {
        std::string out;
        LineWriter line(out, form, true);
        for (const char* word : {"a\tb", "\"\xC3\xA9"}) {
            line.begin();
            line.text("word", echoed_word(form, word));
            line.score("score", 0.1234567);
            line.count("row", 7);
            line.flag("known", true);
            line.begin_list("numbers");
            line.list_score(-0.0);
            line.list_float(0.1F);
            line.end_list();
            line.end();
        }
        return out;
    };
    EXPECT_EQ(lines(Form::text),
              "\"a\\x09b\"\t0.123457\t7\t1\t0.000000\t0.1\n\"\\\"\xC3\xA9\"\t0.123457\t7\t1\t0."
              "000000\t0.1\n");
    EXPECT_EQ(
        lines(Form::json),
        "{\"word\":\"a\\u0009b\",\"score\":0.1234567,\"row\":7,\"known\":true,\"numbers\":[0,0.1]},"
        "{\"word\":\"\\\"\xC3\xA9\",\"score\":0.1234567,\"row\":7,\"known\":true,\"numbers\":[0,0."
        "1]}");
}

TEST(Reply, APieceMayEndAnywhereInAWord) {
    const std::string word = "a\"\\b\x01\xC3\xA9\xFF\xF4\x8F\xBF\xBF\xE2\x82z";
    for (const Form form : {Form::text, Form::json}) {
        std::string whole;
        LineWriter line(whole, form, true);
        line.begin();
        line.text("word", word);
        line.count("row", 7);
        line.end();
        for (std::size_t piece_bytes = 1; piece_bytes <= whole.size() + 1; ++piece_bytes) {
            LineWriter parts(form);
            std::string piece;
            std::string together;
            parts.write_to(piece);
            parts.begin();
            for (std::size_t at = 0; at < word.size(); together += std::exchange(piece, {})) {
                const std::size_t before =
                    std::exchange(at, parts.text_part("word", word, at, piece_bytes));
                ASSERT_GT(at, before);
            }
            parts.count("row", 7);
            parts.end();
            EXPECT_EQ(together + piece, whole) << piece_bytes;
        }
    }
}

TEST(Reply, AnUnknownWordIsNamedWithWhatIsNear) {
    const Error error{ErrorCode::unknown_word, "\"Kin\\xE9\" is not in the model", "Kin\xE9"};
    EXPECT_EQ(error_reply(Form::text, error, {"king", "a b"}),
              "ERR unknown_word \"Kin\\xE9\" is not in the model; near to it: \"king\", \"a b\"\n");
    EXPECT_EQ(error_reply(Form::json, error, {"king", "a b"}),
              R"({"ok":false,"code":"unknown_word",)"
              R"("message":"\"Kin\\xE9\" is not in the model; near to it: \"king\", )"
              R"(\"a b\"","word":"Kin\udbff\udfe9","suggestions":["king","a b"]})"
              "\n");
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

// What a file or a peer is called may hold anything.
TEST(Reply, NoTextAddsALineOrAField) {
    const std::string hostile("a\nOK 0\r\tb\x1B[2J\xFF\0c", 16);
    std::string text;
    LineWriter line(text, Form::text, true);
    line.begin();
    line.text("name", hostile);
    line.message("reason", hostile);
    line.end();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\t'), 1) << text;
    EXPECT_EQ(text.find_first_of(std::string_view("\r\x1B\xFF\0", 4)), std::string::npos) << text;

    const std::string error = error_reply(Form::text, {ErrorCode::unavailable, hostile});
    EXPECT_EQ(error, "ERR unavailable a\\x0AOK 0\\x0D\\x09b\\x1B[2J\\xFF\\x00c\n");

    text.clear();
    append_head(text, Form::text, Verb::ping, 0, {{"model", std::string("a\nb\x1B")}});
    EXPECT_EQ(text, "OK 0 model=a\\x0Ab\\x1B\n");
}

// A model's words may hold control bytes. Who reads them gets them as they are.
TEST(Reply, AWordStandsAsItIs) {
    std::string text;
    LineWriter line(text, Form::text, true);
    line.begin();
    line.text("word", "\x1B[2J \xFF\"");
    line.end();
    EXPECT_EQ(text, "\x1B[2J \xFF\"\n");
}

TEST(LineWriter, JsonHasNoNumberThatIsNotFinite) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
        std::string out;
        LineWriter line(out, Form::json, true);
        line.begin();
        line.score("score", bad);
        line.begin_list("vector");
        line.list_float(bad);
        line.list_float(-0.0F);
        line.list_score(bad);
        line.end_list();
        line.end();
        EXPECT_EQ(out, R"({"score":null,"vector":[null,-0,null]})");
    }
}

}  // namespace
}  // namespace gloved::wire
