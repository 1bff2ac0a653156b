#include "common/result.hpp"
#include "tools/source/detect.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/word2vec.hpp"

namespace gloved::source {
namespace {

using tests::record;

Result<Detected> detect_auto(std::string_view text, std::size_t dim = 0) {
    return detect(text, true, SourceFormat::automatic, dim, "none");
}

TEST(Detect, TellsTextByItsFirstLines) {
    EXPECT_EQ(detect_auto("a 0.1 0.2\nb 0.1 0.2\n")->format, SourceFormat::glove);
    // Two integers, but so is the next line: words that are numbers, and one number each.
    EXPECT_EQ(detect_auto("2 3\n3 4\n")->format, SourceFormat::glove);
    EXPECT_EQ(detect_auto("2 3\n", 1)->format, SourceFormat::glove);
    EXPECT_EQ(detect_auto("a 1\nb 2\n")->dim, 1U);
}

TEST(Detect, TellsNormsByTheirValues) {
    const auto norms = detect_auto("a 5.00 3 4\nb 13 5 12\n");
    EXPECT_EQ(norms->format, SourceFormat::norms);
    EXPECT_EQ(norms->dim, 2U);
    EXPECT_EQ(detect_auto("a 5.00 3 4\nb 13 5 12\n", 2)->format, SourceFormat::norms);
    // Asked for, three numbers are three numbers.
    EXPECT_EQ(detect_auto("a 5.00 3 4\nb 13 5 12\n", 3)->format, SourceFormat::glove);
    EXPECT_EQ(detect_auto("a 5.00 3 4\n")->format, SourceFormat::glove);  // one line proves nothing
    EXPECT_EQ(detect_auto("a 5.00 3 4\nb 14 5 12\n")->format, SourceFormat::glove);  // not on all
    EXPECT_EQ(detect_auto("a 0 0 0\nb 0 0 0\nc 0 0 0\n")->format, SourceFormat::glove);
    EXPECT_EQ(detect_auto("a 1 1\nb 2 2\n")->format,
              SourceFormat::glove);  // a vector of one number
}

TEST(Detect, TellsHeadersAndWhatFollowsThem) {
    const auto text = detect_auto("2 3\r\na 1 2 3 \nb 1 2 3 \n");
    EXPECT_EQ(text->format, SourceFormat::word2vec);
    EXPECT_EQ(text->dim, 3U);
    EXPECT_EQ(text->header_rows, 2U);
    EXPECT_EQ(text->body_offset, 5U);
    EXPECT_EQ(detect_auto("2 3\na 1 2\nb 1 2\n")->format,
              SourceFormat::word2vec);  // all lines wrong, but text
    const std::string binary = "2 3\n" + record("a", {1, 2, 3}) + record("b", {1, 2, 3});
    EXPECT_EQ(detect_auto(binary)->format, SourceFormat::word2vec_bin);
    // Bytes of which none is a control byte.
    EXPECT_EQ(detect_auto("1 3\n" + record("a", {0.1F, 0.3F, 0.6F}))->format,
              SourceFormat::word2vec_bin);
}

TEST(Detect, TakesRandomVectorsForBinary) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.3F);
    for (const std::size_t dim : {5U, 50U, 300U}) {
        for (int round = 0; round < 200; ++round) {
            std::string binary = "100 " + std::to_string(dim) + "\n";
            for (int i = 0; i < 100; ++i) {
                std::vector<float> numbers(dim);
                for (float& number : numbers) number = normal(random);
                binary += record("w" + std::to_string(i), numbers);
            }
            ASSERT_EQ(detect_auto(binary)->format, SourceFormat::word2vec_bin)
                << dim << " " << round;
        }
    }
}

TEST(Detect, BelievesWhatIsForced) {
    const std::string text = "2 3\na 1 2 3\nb 1 2 3\n";
    for (const auto format :
         {SourceFormat::word2vec, SourceFormat::word2vec_bin, SourceFormat::fasttext}) {
        EXPECT_EQ(detect(text, true, format, 0, "none")->format, format);
        const auto headless = detect("a 1 2 3\n", true, format, 0, "none");
        ASSERT_FALSE(headless);
        EXPECT_NE(headless.error().message.find("\"a 1 2 3\" is not a header"), std::string::npos)
            << headless.error().message;
    }
    EXPECT_EQ(detect(text, true, SourceFormat::glove, 0, "none")->dim, 3U);
    EXPECT_EQ(detect(text, true, SourceFormat::norms, 0, "none")->dim, 2U);
    EXPECT_EQ(detect("a 1 2\n", true, SourceFormat::norms, 5, "none")->dim, 5U);
}

TEST(Detect, HoldsTheHeaderAgainstDim) {
    EXPECT_EQ(detect_auto("2 3\na 1 2 3\n", 3)->dim, 3U);
    const auto other = detect_auto("2 3\na 1 2 3\n", 4);
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find("\"2 3\" gives 3 numbers a word, --dim gives 4"),
              std::string::npos)
        << other.error().message;
    for (const char* header : {"2 0\na b c\n", "2 4097\na b c\n"}) {
        EXPECT_NE(detect_auto(header).error().message.find("1 to 4096 can be taken"),
                  std::string::npos);
    }
}

TEST(Detect, LeavesOutTheByteOrderMark) {
    const auto glove = detect_auto(
        "\xEF\xBB\xBF"
        "a 1 2\n");
    EXPECT_TRUE(glove->bom);
    EXPECT_EQ(glove->body_offset, 3U);
    const auto header = detect_auto(
        "\xEF\xBB\xBF"
        "2 3\na 1 2 3\n");
    EXPECT_EQ(header->header_rows, 2U);
    EXPECT_EQ(header->body_offset, 7U);
    EXPECT_NE(detect_auto("\xEF\xBB\xBF").error().message.find("empty"), std::string::npos);
}

TEST(Detect, HasOneNameForEachFormat) {
    for (const auto format :
         {SourceFormat::automatic, SourceFormat::glove, SourceFormat::norms, SourceFormat::word2vec,
          SourceFormat::word2vec_bin, SourceFormat::fasttext}) {
        EXPECT_EQ(source_format_from(name_of(format)), format);
    }
    EXPECT_FALSE(source_format_from("word2vec_bin"));
}

}  // namespace
}  // namespace gloved::source
