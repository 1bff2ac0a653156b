#include "common/table_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gloved {
namespace {

std::string cell(std::string_view text, RowStyle style = kCsv) {
    std::string out;
    append_cell(out, text, style);
    return out;
}

TEST(TableText, LeavesCellsAsTheyAreThatNoReaderMistakes) {
    for (const char* const text :
         {"", "king", "#", "NA", "'s", "new york", "a;b", "\\", "\x1b[0m", "a\x0b", "caf\xc3\xa9"})
        EXPECT_EQ(cell(text), text);
    EXPECT_EQ(cell("a\tb"), "a\tb");
    EXPECT_EQ(cell("a,b", kTsv), "a,b");
}

TEST(TableText, QuotesSeparatorsQuotesLineEndsAndOuterBlanks) {
    EXPECT_EQ(cell("a,b"), "\"a,b\"");
    EXPECT_EQ(cell("a\tb", kTsv), "\"a\tb\"");
    EXPECT_EQ(cell("\""), "\"\"\"\"");
    EXPECT_EQ(cell("a\"b"), "\"a\"\"b\"");
    EXPECT_EQ(cell("a\nb\r"), "\"a\nb\r\"");
    EXPECT_EQ(cell(" "), "\" \"");
    EXPECT_EQ(cell(" a"), "\" a\"");
    EXPECT_EQ(cell("a\t"), "\"a\t\"");
    EXPECT_EQ(cell("\"a\" ", kTabLines), "\"a\" ");
}

TEST(TableText, EndsARowWithLf) {
    std::string out = "word,score\n";
    append_row(out, {"a,b", "", "1"}, kCsv);
    append_row(out, {"a"}, kTsv);
    EXPECT_EQ(out, "word,score\n\"a,b\",,1\na\n");
}

}  // namespace
}  // namespace gloved
