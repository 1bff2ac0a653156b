#include "common/result.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gloved::source {
namespace {

TEST(Report, TellsHowToReadTheSourceAgain) {
    Report report;
    report.sources.resize(1);
    report.sources[0].member = "d/vectors.bin";
    report.sources[0].summary.format = SourceFormat::word2vec_bin;
    report.sources[0].summary.words = "d/words";
    report.sources[0].summary.layout.tensor = "embeddings";
    report.duplicates_rule = Duplicates::last;
    report.on_error = OnError::skip;
    report.limit = 7;
    report.rows_kept = 5;
    const auto rules = read_rules(to_json(report));
    ASSERT_TRUE(rules) << rules.error().message;
    ASSERT_EQ(rules->sources.size(), 1U);
    EXPECT_EQ(rules->sources[0].format, SourceFormat::word2vec_bin);
    EXPECT_EQ(rules->sources[0].member, "d/vectors.bin");
    EXPECT_EQ(rules->sources[0].checksum, "");
    EXPECT_EQ(rules->sources[0].words, "d/words");
    EXPECT_EQ(rules->sources[0].tensor, "embeddings");
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
        report.sources.resize(1);
        report.sources[0].member = name;
        report.sources[0].name = name;
        report.duplicate_examples.push_back({{0, 1}, {0, 2}, name});
        const auto rules = read_rules(to_json(report));
        ASSERT_TRUE(rules) << rules.error().message;
        EXPECT_EQ(rules->sources.at(0).member, name);
        EXPECT_EQ(rules->sources[0].name, name);
    }
}

TEST(Report, OfAnEarlierVersionIsGloveTextWithoutAMember) {
    const auto rules = read_rules(
        R"({"source": {"name": "x"}, "limit": 0, "rows_kept": 1, "duplicates": {"rule": "first"},)"
        R"( "skipped": {"rule": "stop"}, "generation": "0"})");
    ASSERT_TRUE(rules) << rules.error().message;
    ASSERT_EQ(rules->sources.size(), 1U);
    EXPECT_EQ(rules->sources[0].format, SourceFormat::glove);
    EXPECT_EQ(rules->sources[0].member, "");
    EXPECT_EQ(rules->sources[0].name, "x");
}

/// A report of one source is as it was before there could be several.
TEST(Report, ListsSourcesOnlyIfThereAreSeveral) {
    Report report;
    report.sources.resize(1);
    report.sources[0].name = "a.txt";
    report.sources[0].checksum = 0x12;
    report.duplicate_examples.push_back({{0, 1}, {0, 2}, "x"});
    const auto one = nlohmann::json::parse(to_json(report));
    EXPECT_FALSE(one.contains("sources"));
    EXPECT_EQ(one["duplicates"]["lines"],
              nlohmann::json::parse(R"([{"key": "x", "kept_line": 1, "dropped_line": 2}])"));

    report.sources.push_back({});
    report.sources[1].name = "b.bin";
    report.sources[1].crc32 = 0xABCD;
    report.sources[1].summary.format = SourceFormat::word2vec_bin;
    report.duplicate_examples.push_back({{0, 1}, {1, 7}, "y"});
    const std::string text = to_json(report);
    const auto two = nlohmann::json::parse(text);
    EXPECT_EQ(two["source"], one["source"]);
    EXPECT_EQ(two["format"], "glove");
    EXPECT_EQ(two["duplicates"]["lines"][1]["kept_source"], 0);
    EXPECT_EQ(two["duplicates"]["lines"][1]["dropped_source"], 1);
    EXPECT_EQ(report.text_of(report.duplicate_examples[0]),
              "a.txt: line 2: the word \"x\" stands on line 1");
    EXPECT_EQ(report.text_of(report.duplicate_examples[1]),
              "b.bin: word 7: the word \"y\" stands on line 1 of a.txt");
    const auto rules = read_rules(text);
    ASSERT_TRUE(rules) << rules.error().message;
    ASSERT_EQ(rules->sources.size(), 2U);
    EXPECT_EQ(rules->sources[0].checksum, "0000000000000012");
    EXPECT_EQ(rules->sources[1].name, "b.bin");
    EXPECT_EQ(rules->sources[1].checksum, "0000abcd");
    EXPECT_EQ(rules->sources[1].format, SourceFormat::word2vec_bin);
}

TEST(Report, FindsALineAmongThoseOfAllSources) {
    const std::vector<std::uint64_t> lines = {2, 0, 3};
    for (const auto& [number, source, line] :
         {std::array<std::uint64_t, 3>{0, 0, 1}, {1, 0, 2}, {2, 2, 1}, {4, 2, 3}}) {
        EXPECT_EQ(find_line(lines, number).source, source) << number;
        EXPECT_EQ(find_line(lines, number).line, line) << number;
    }
}

TEST(Report, IsRefusedWhereItNamesAnUnknownFormat) {
    for (const std::size_t sources : {1U, 2U}) {
        Report report;
        report.sources.resize(sources);
        std::string json = to_json(report);
        json.replace(json.rfind("\"format\": \"glove\""), 17, "\"format\": \"later\"");
        // Of two, that of the first is among `sources` too.
        if (sources == 2)
            json.replace(json.find("\"format\": \"glove\""), 17, "\"format\": \"later\"");
        const auto rules = read_rules(json);
        ASSERT_FALSE(rules);
        EXPECT_EQ(rules.error().code, ErrorCode::damaged);
    }
}

}  // namespace
}  // namespace gloved::source
