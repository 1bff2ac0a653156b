#include "common/result.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gloved::source {
namespace {

TEST(Report, TellsHowToReadTheSourceAgain) {
    Report report;
    report.member = "d/vectors.bin";
    report.source.format = SourceFormat::word2vec_bin;
    report.duplicates_rule = Duplicates::last;
    report.on_error = OnError::skip;
    report.limit = 7;
    report.rows_kept = 5;
    const auto rules = read_rules(to_json(report));
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(rules->format, SourceFormat::word2vec_bin);
    EXPECT_EQ(rules->member, "d/vectors.bin");
    EXPECT_EQ(rules->duplicates, Duplicates::last);
    EXPECT_EQ(rules->on_error, OnError::skip);
    EXPECT_EQ(rules->limit, 7U);
    EXPECT_EQ(rules->rows, 5U);
}

/// Latin-1, a stray byte, what stands for stray bytes itself, and what JSON escapes.
TEST(Report, KeepsEveryByteOfNames) {
    for (const std::string& name :
         {std::string("r\xE9sum\xE9.txt"), std::string("d\\a\"b\n.txt"), std::string("\xFF\xC3"),
          std::string("\xF4\x8F\xBF\xA9.txt"), std::string("\xEF\xBF\xBD.txt")}) {
        Report report;
        report.member = name;
        report.source_name = name;
        report.duplicate_examples.push_back({1, 2, name});
        const auto rules = read_rules(to_json(report));
        ASSERT_TRUE(rules) << rules.error().message;
        EXPECT_EQ(rules->member, name);
    }
}

TEST(Report, OfAnEarlierVersionIsGloveTextWithoutAMember) {
    const auto rules = read_rules(
        R"({"source": {"name": "x"}, "limit": 0, "rows_kept": 1, "duplicates": {"rule": "first"},)"
        R"( "skipped": {"rule": "stop"}, "generation": "0"})");
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(rules->format, SourceFormat::glove);
    EXPECT_EQ(rules->member, "");
}

TEST(Report, IsRefusedWhereItNamesAnUnknownFormat) {
    Report report;
    std::string json = to_json(report);
    json.replace(json.find("\"glove\""), 7, "\"later\"");
    const auto rules = read_rules(json);
    ASSERT_FALSE(rules);
    EXPECT_EQ(rules.error().code, ErrorCode::damaged);
}

}  // namespace
}  // namespace gloved::source
