#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/wire/line_splitter.hpp"
#include "common/wire/request.hpp"

namespace gloved::wire {
namespace {

std::vector<std::string> drain(LineSplitter& splitter) {
    std::vector<std::string> lines;
    while (const auto line = splitter.next()) lines.emplace_back(*line);
    return lines;
}

using Lines = std::vector<std::string>;

TEST(LineSplitter, CutsAtLfAndDropsOneCr) {
    LineSplitter splitter;
    splitter.append("a\nb\r\n\n\r\nc\r\r\nd\re\n");
    EXPECT_EQ(drain(splitter), (Lines{"a", "b", "", "", "c\r", "d\re"}));
    EXPECT_EQ(splitter.partial(), "");
    EXPECT_FALSE(splitter.take_rest());
}

TEST(LineSplitter, GivesTheSameLinesForEveryCut) {
    const std::string text = "PING\r\nking - man\n\nlast\r";
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
        LineSplitter splitter;
        Lines lines;
        for (std::size_t at = 0; at < text.size(); at += piece) {
            splitter.append(std::string_view(text).substr(at, piece));
            for (std::string& line : drain(splitter)) lines.push_back(std::move(line));
        }
        EXPECT_EQ(lines, (Lines{"PING", "king - man", ""})) << piece;
        EXPECT_EQ(splitter.partial(), "last\r");
        EXPECT_EQ(splitter.take_rest(), "last");
        EXPECT_EQ(splitter.take_rest(), std::nullopt);
        EXPECT_EQ(splitter.partial(), "");
    }
}

TEST(LineSplitter, TakesExactlyTheLongestLine) {
    const std::string longest(kMaxLineBytes, 'a');
    LineSplitter whole;
    whole.append(longest + "\nnext\n");
    EXPECT_EQ(drain(whole), (Lines{longest, "next"}));
    EXPECT_FALSE(whole.too_long());

    LineSplitter open;
    open.append(longest);
    EXPECT_EQ(open.next(), std::nullopt);
    EXPECT_FALSE(open.too_long());
    EXPECT_EQ(open.take_rest(), longest);
}

TEST(LineSplitter, RefusesOneByteMoreWithOrWithoutItsEnd) {
    for (const char* end : {"", "\n", "\nnext\n"}) {
        LineSplitter splitter;
        splitter.append("first\n" + std::string(kMaxLineBytes + 1, 'a') + end);
        EXPECT_EQ(splitter.next(), "first");
        EXPECT_FALSE(splitter.too_long());
        EXPECT_EQ(splitter.next(), std::nullopt);
        EXPECT_TRUE(splitter.too_long());
        splitter.append("\nPING\n");
        EXPECT_EQ(splitter.next(), std::nullopt) << "what follows cannot be trusted";
        EXPECT_EQ(splitter.take_rest(), std::nullopt);
        EXPECT_TRUE(splitter.too_long());
    }
}

TEST(LineSplitter, GoesOnAfterGivingItsRoomBack) {
    LineSplitter splitter;
    splitter.append(std::string(60000, 'a') + "\n");
    EXPECT_EQ(drain(splitter).size(), 1U);
    splitter.append("b");
    EXPECT_EQ(splitter.next(), std::nullopt);
    splitter.append("c\nd");
    EXPECT_EQ(splitter.next(), "bc");
    EXPECT_EQ(splitter.take_rest(), "d");
}

TEST(LineSplitter, AgreesWithAPlainSplitOnRandomStreams) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (std::size_t size = random() % 400; text.size() < size;) text += "ab\r\n"[random() % 4];
        Lines expected;
        std::size_t begin = 0;
        for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos;
             begin = end + 1) {
            expected.push_back(text.substr(begin, end - begin));
            if (!expected.back().empty() && expected.back().back() == '\r')
                expected.back().pop_back();
        }
        LineSplitter splitter;
        Lines lines;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t piece = 1 + random() % 50;
            splitter.append(std::string_view(text).substr(at, piece));
            at += piece;
            for (std::string& line : drain(splitter)) lines.push_back(std::move(line));
        }
        ASSERT_EQ(lines, expected);
        ASSERT_EQ(splitter.partial(), text.substr(begin));
    }
}

}  // namespace
}  // namespace gloved::wire
