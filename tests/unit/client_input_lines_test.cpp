#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/input_lines.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

/// The lines of `input`, given in pieces of `chunk` bytes.
std::vector<std::string> lines_of(const std::string& input, std::size_t chunk) {
    InputLines lines;
    std::vector<std::string> out;
    for (std::size_t i = 0; i < input.size(); i += chunk) {
        lines.append(std::string_view(input).substr(i, chunk));
        while (auto line = *lines.next()) out.push_back(*std::move(line));
    }
    while (auto line = *lines.finish()) out.push_back(*std::move(line));
    return out;
}

using Lines = std::vector<std::string>;

TEST(InputLines, KeepsEveryLineAsItStands) {
    for (std::size_t chunk = 1; chunk < 20; ++chunk) {
        EXPECT_EQ(lines_of("a b\n\n \nc\r\nlast", chunk), (Lines{"a b", "", " ", "c\r", "last"}));
        EXPECT_EQ(lines_of("a\n\n", chunk), (Lines{"a", ""}))
            << "nothing stands behind the last LF";
        EXPECT_EQ(lines_of("", chunk), Lines());
    }
}

TEST(InputLines, KeepsOfALongLineWhatShowsThatItIsTooLong) {
    const std::string longest(wire::kMaxLineBytes, 'a');
    EXPECT_EQ(lines_of(longest + "\nb", 1000), (Lines{longest, "b"}));
    for (const std::size_t chunk : {std::size_t{1000}, std::size_t{70000}, std::size_t{1} << 20}) {
        EXPECT_EQ(lines_of(std::string(500'000, 'a') + "\nb\n" + std::string(500'000, 'a'), chunk),
                  (Lines{longest + "a", "b", longest + "a"}));
    }
}

TEST(InputLines, DropsAByteOrderMarkBeforeTheFirstLine) {
    const std::string mark = "\xEF\xBB\xBF";
    for (std::size_t chunk = 1; chunk < 9; ++chunk) {
        EXPECT_EQ(lines_of(mark + "a\n" + mark + "b", chunk), (Lines{"a", mark + "b"}));
        EXPECT_EQ(lines_of(mark + "a", chunk), (Lines{"a"}));
        EXPECT_EQ(lines_of("\n" + mark + "a", chunk), (Lines{"", mark + "a"}));
    }
}

TEST(InputLines, RefusesUtf16) {
    for (const char* text : {"\xFF\xFEk", "\xFE\xFFk"}) {
        InputLines lines;
        lines.append(text);
        const auto line = lines.finish();
        ASSERT_FALSE(line);
        EXPECT_NE(line.error().message.find("the input: is UTF-16 text"), std::string::npos);
    }
}

TEST(InputLines, HoldsNoMoreThanALineAndWhatWasReadLast) {
    InputLines lines;
    for (int i = 0; i < 100; ++i) {
        lines.append(std::string(50'000, 'a'));
        EXPECT_FALSE(*lines.next());
        EXPECT_LE(lines.held_bytes(), wire::kMaxLineBytes + 1 + 50'000);
    }
}

}  // namespace
}  // namespace gloved::client
