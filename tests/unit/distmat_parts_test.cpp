// What gloved-distmat reads, and how it ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/format/neighbors.hpp"
#include "common/result.hpp"
#include "tests/support/gzip.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/distmat/matrix.hpp"
#include "tools/distmat/nearest.hpp"
#include "tools/distmat/text_rows.hpp"

namespace gloved::distmat {
namespace {

const std::atomic<bool> never_stop{false};

TextRows parsed(std::string_view text) {
    TextRows rows;
    parse_text_rows(text, rows);
    return rows;
}

std::string file_with(const tests::TempDir& dir, const std::string& content) {
    tests::write_file(dir / "m", content);
    return dir / "m";
}

std::vector<double> doubles(const Matrix& matrix) {
    const auto values = std::get<std::span<const double>>(matrix.values());
    return {values.begin(), values.end()};
}

TEST(TextRows, TakesBlanksTabsBlankLinesAndCrLf) {
    const TextRows rows = parsed("\n  1\t-2.5 \r\n \t \n+3e1   .25\n\r\n0 -0");
    ASSERT_FALSE(rows.fault);
    EXPECT_EQ(rows.values, (std::vector<double>{1, -2.5, 30, 0.25, 0, 0}));
    EXPECT_TRUE(std::signbit(rows.values.back()));
    EXPECT_EQ(rows.rows, 3U);
    EXPECT_EQ(rows.dim, 2U);
    EXPECT_EQ(rows.lines, 6U);
    EXPECT_EQ(rows.line_of_row,
              (std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 1}, {1, 3}, {2, 5}}));
    EXPECT_EQ(parsed("1\n2\n3\n\n4\n5\n").line_of_row,
              (std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 0}, {3, 4}}));
    EXPECT_EQ(parsed("").rows, 0U);
    EXPECT_EQ(parsed(" \n\n").lines, 2U);
}

TEST(TextRows, StopsAtTheFirstFaultAndSaysTheRemedy) {
    struct Case {
        std::string text;
        std::uint64_t line;
        std::string says;
    };
    for (const auto& [text, line, says] :
         {Case{"1 2\n3 x4\n5\n", 1, "\"x4\" is not a number"},
          Case{"1,2\n", 0, "\"1,2\" is not a number; numbers are separated by"},
          Case{"1 2\n\n1;2\n", 2, "separated by blanks or tabs"},
          Case{"nan 1\n", 0, "numbers that are finite"},
          Case{"1\n-inf\n", 1, "numbers that are finite"}, Case{"1e999\n", 0, "beyond float64"},
          Case{"1 0x10\n", 0, "\"0x10\" is not a number"},
          Case{"1\r2\n", 0, "\"1\\x0D2\" is not a number"},
          Case{std::string("1\0\n", 3), 0, "\"1\\x00\" is not a number"},
          Case{"1 -\n", 0, "\"-\" is not a number"}}) {
        const TextRows rows = parsed(text);
        ASSERT_TRUE(rows.fault) << text;
        EXPECT_EQ(rows.fault->line, line) << text;
        EXPECT_EQ(rows.fault->count, 0U);
        EXPECT_NE(rows.fault->message.find(says), std::string::npos) << rows.fault->message;
        EXPECT_EQ(rows.values.size(), rows.rows * rows.dim);
    }
    const TextRows ragged = parsed("1 2\n3 4\n5 6 7\n");
    ASSERT_TRUE(ragged.fault);
    EXPECT_EQ(ragged.fault->line, 2U);
    EXPECT_EQ(ragged.fault->count, 3U);
    EXPECT_EQ(ragged.values, (std::vector<double>{1, 2, 3, 4}));
}

TEST(Matrix, ReadsTextOfManyPiecesInOrder) {
    // More than two chunks, with a blank line here and there.
    constexpr std::size_t kRows = 700'000;
    std::string text;
    std::vector<double> wanted;
    std::vector<std::size_t> lines;
    std::size_t line = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
        text += std::to_string(row) + " 0.5 -" + std::to_string(row % 1000) + "\n";
        wanted.insert(wanted.end(),
                      {static_cast<double>(row), 0.5, -static_cast<double>(row % 1000)});
        lines.push_back(++line);
        if (row % 1000 == 7) text += "\n", ++line;
    }
    ASSERT_GT(text.size(), std::size_t{9} << 20);
    const tests::TempDir dir;
    for (const std::size_t threads : {0U, 1U, 3U}) {
        const auto matrix = read_matrix(file_with(dir, text), {threads}, never_stop);
        ASSERT_TRUE(matrix) << matrix.error().message;
        ASSERT_EQ(matrix->rows(), kRows);
        EXPECT_EQ(matrix->dim(), 3U);
        EXPECT_TRUE(doubles(*matrix) == wanted);
        for (std::size_t row = 0; row < kRows; row += 997) {
            EXPECT_EQ(matrix->row_name(row), dir / "m" + ": line " + std::to_string(lines[row]));
        }
    }
    // A fault in a later piece is told with the line of the whole, and by the first row's length.
    const auto ragged = read_matrix(file_with(dir, text + "1 2\n"), {2}, never_stop);
    ASSERT_FALSE(ragged);
    EXPECT_EQ(ragged.error().message,
              dir / "m" + ": line " + std::to_string(line + 1) +
                  " has 2 numbers, and line 1 has 3; a matrix has the same in every row");
    const auto word = read_matrix(file_with(dir, text + "\n1 2 three\n"), {2}, never_stop);
    ASSERT_FALSE(word);
    EXPECT_NE(word.error().message.find("line " + std::to_string(line + 2) + ": \"three\""),
              std::string::npos);
    // The first row of a later piece has another length.
    const auto cut = read_matrix(file_with(dir, "1 2\n" + std::string(5 << 20, '\n') + "1 2 3\n"),
                                 {2}, never_stop);
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.error().message.find(": line 5242882 has 3 numbers, and line 1 has 2"),
              std::string::npos)
        << cut.error().message;
}

TEST(Matrix, ReadsPackedTextAndAByteOrderMark) {
    const tests::TempDir dir;
    for (const std::string& content : {std::string("\xEF\xBB\xBF"
                                                   "1 2\n3 4\n"),
                                       tests::gzip("1 2\n3 4\n")}) {
        const auto matrix = read_matrix(file_with(dir, content), {2}, never_stop);
        ASSERT_TRUE(matrix) << matrix.error().message;
        EXPECT_EQ(doubles(*matrix), (std::vector<double>{1, 2, 3, 4}));
    }
}

TEST(Matrix, TakesWordsOfAModel) {
    const tests::TempDir dir;
    const auto model =
        tests::make_model(dir / "model", {{"the", {1, 2}}, {"of", {3, 4}}, {"New York", {5, 6}}});
    const auto matrix = read_words(file_with(dir, "New York\r\n\nthe\nthe"), model, {}, never_stop);
    ASSERT_TRUE(matrix) << matrix.error().message;
    const auto values = std::get<std::span<const float>>(matrix->values());
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
              (std::vector<float>{5, 6, 1, 2, 1, 2}));
    EXPECT_EQ(matrix->words(), (std::vector<std::string>{"New York", "the", "the"}));
    EXPECT_EQ(matrix->row_name(1), dir / "m" + ": line 3 (\"the\")");
    const auto unknown = read_words(file_with(dir, "the\n\nbarca\n"), model, {}, never_stop);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::unknown_word);
    EXPECT_EQ(unknown.error().subject, "barca");
    EXPECT_NE(unknown.error().message.find(": line 3: \"barca\" is not in the model"),
              std::string::npos);
    EXPECT_FALSE(read_words(file_with(dir, "\n\r\n"), model, {}, never_stop));

    const WordRules lenient = {.skips_unknown = true, .ignores_case = true};
    const auto some =
        read_words(file_with(dir, "barca\nnew york\nTHE\n"), model, lenient, never_stop);
    ASSERT_TRUE(some) << some.error().message;
    EXPECT_EQ(some->words(), (std::vector<std::string>{"barca", "new york", "THE"}));
    EXPECT_EQ(some->model_rows(), (std::vector<format::Row>{format::kNoRow, *model.find("New York"),
                                                            *model.find("the")}));
    const auto none = read_words(file_with(dir, "barca\n"), model, lenient, never_stop);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::unknown_word);
}

TEST(Nearest, SortsByDistanceThenIndexAndLeavesItselfOut) {
    std::vector<Neighbour> nearest;
    const std::vector<float> distances = {2, 0, 1, 0, 1, 3, 0, 1};
    find_nearest(distances, 1, 4, nearest);
    EXPECT_EQ(nearest, (std::vector<Neighbour>{{3, 0}, {6, 0}, {2, 1}, {4, 1}}));
    find_nearest(distances, 5, 7, nearest);
    EXPECT_EQ(nearest,
              (std::vector<Neighbour>{{1, 0}, {3, 0}, {6, 0}, {2, 1}, {4, 1}, {7, 1}, {0, 2}}));
    find_nearest(std::vector<float>{0}, 0, 0, nearest);
    EXPECT_TRUE(nearest.empty());
}

TEST(Nearest, AgreesWithAFullSort) {
    std::mt19937 random(6);
    std::vector<Neighbour> nearest;
    for (int round = 0; round < 2000; ++round) {
        std::vector<float> distances(2 + random() % 60);
        const std::size_t kinds = 1 + random() % 30;  // many ties, or few
        for (float& distance : distances) distance = static_cast<float>(random() % kinds);
        const std::size_t self = random() % distances.size();
        const std::size_t count = 1 + random() % (distances.size() - 1);
        std::vector<Neighbour> all;
        for (std::size_t i = 0; i < distances.size(); ++i) {
            if (i != self) all.push_back({static_cast<std::int64_t>(i), distances[i]});
        }
        std::sort(all.begin(), all.end(), [](const Neighbour& a, const Neighbour& b) {
            return std::tie(a.distance, a.index) < std::tie(b.distance, b.index);
        });
        all.resize(count);
        find_nearest(distances, self, count, nearest);
        ASSERT_EQ(nearest, all);
    }
}

}  // namespace
}  // namespace gloved::distmat
