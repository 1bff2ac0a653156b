// The text that stands in for a download in tests of scale: what it promises, and that
// gloved-convert takes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/format/model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/text_maker.hpp"

namespace gloved::tests {
namespace {

std::string made(const TextShape& shape) {
    std::string text;
    make_text(shape, [&](std::string_view piece) {
        text += piece;
        return true;
    });
    return text;
}

TEST(MadeText, RepeatsOneWordAndNoOther) {
    // The size of glove.840B is the one that matters; a small one has its duplicate elsewhere.
    for (const std::uint64_t rows : {std::uint64_t{2196017}, std::uint64_t{1000}}) {
        const TextShape shape{.rows = rows, .dim = 300};
        std::unordered_map<std::string, std::uint64_t> lines;
        lines.reserve(rows);
        const DuplicateLines twice = duplicate_lines(rows);
        for (std::uint64_t row = 0; row < rows; ++row) {
            const auto [seen, is_new] = lines.emplace(made_word(shape, row), row + 1);
            if (is_new) continue;
            ASSERT_EQ(row + 1, twice.second) << seen->first;
            ASSERT_EQ(seen->second, twice.first);
        }
        EXPECT_EQ(lines.size(), rows - 1);
        ASSERT_TRUE(lines.count("\xC2\x85"));
        ASSERT_TRUE(lines.count("at\xC2\xA0name@domain.com"));
    }
}

TEST(MadeText, DependsOnItsShapeAlone) {
    const TextShape shape{.rows = 5000, .dim = 50};
    const std::string text = made(shape);
    EXPECT_EQ(text, made(shape));
    EXPECT_NE(text, made({.rows = 5000, .dim = 50, .seed = 2}));

    const TempDir dir;
    ASSERT_EQ(
        run({program("gloved-make-text"), "--rows", "5000", "--dim", "50", "--out", dir / "t"})
            .exit_code,
        0);
    EXPECT_EQ(read_file(dir / "t"), text);
}

TEST(MadeText, LooksLikeADownload) {
    const TextShape shape{.rows = 20000, .dim = 300};
    std::istringstream lines(made(shape));
    std::vector<std::string> words;
    std::size_t bytes = 0;
    std::vector<std::string> rows_of_duplicate;
    const DuplicateLines twice = duplicate_lines(shape.rows);
    for (std::string line; std::getline(lines, line);) {
        ASSERT_EQ(std::count(line.begin(), line.end(), ' '), 300) << line;
        bytes += line.size() + 1;
        words.push_back(line.substr(0, line.find(' ')));
        if (words.size() == twice.first || words.size() == twice.second)
            rows_of_duplicate.push_back(line);
    }
    ASSERT_EQ(words.size(), shape.rows);
    EXPECT_GT(bytes / shape.rows, 2400U);
    EXPECT_LT(bytes / shape.rows, 2700U);
    EXPECT_FALSE(std::is_sorted(words.begin(), words.end()));
    ASSERT_EQ(rows_of_duplicate.size(), 2U);
    EXPECT_NE(rows_of_duplicate[0], rows_of_duplicate[1]);
}

TEST(MadeText, IsConvertedWhole) {
    const TempDir dir;
    const TextShape shape{.rows = 5000, .dim = 20};
    write_file(dir / "t", made(shape));
    const Finished converted = run({program("gloved-convert"), dir / "t", dir / "m"});
    ASSERT_EQ(converted.exit_code, 0) << converted.err;
    const auto model = format::Model::open(dir / "m");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->rows(), shape.rows - 1);
    for (std::uint64_t row = 0; row < shape.rows; ++row) {
        ASSERT_TRUE(model->find(made_word(shape, row))) << "line " << row + 1;
    }
    const Finished verified = run({program("gloved-verify"), "--source", dir / "t", dir / "m"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

// Converted or not, the formats say the same.
TEST(MadeText, SaysTheSameInEveryFormat) {
    TextShape shape{.rows = 100, .dim = 7};
    const std::string glove = made(shape);
    shape.format = TextFormat::word2vec;
    EXPECT_EQ(made(shape), "100 7\n" + glove);

    shape.format = TextFormat::norms;
    std::istringstream with_norms(made(shape));
    std::istringstream without(glove);
    std::string longer;
    for (std::string line; std::getline(without, line);) {
        ASSERT_TRUE(std::getline(with_norms, longer));
        // The norm stands behind the word, which holds no blank here.
        const std::size_t blank = longer.find(' ');
        ASSERT_EQ(longer.substr(0, blank) + longer.substr(longer.find(' ', blank + 1)), line);
    }

    shape.format = TextFormat::word2vec_bin;
    const std::string binary = made(shape);
    std::istringstream text(glove);
    std::size_t at = binary.find('\n') + 1;
    for (std::string line; std::getline(text, line);) {
        std::size_t blank = line.find(' ');
        ASSERT_EQ(binary.compare(at, blank + 1, line, 0, blank + 1), 0);
        at += blank + 1;
        for (std::size_t i = 0; i < shape.dim; ++i) {
            const float expected = std::strtof(line.c_str() + blank + 1, nullptr);
            float value = 0;
            binary.copy(reinterpret_cast<char*>(&value), sizeof value, at);
            ASSERT_EQ(value, expected);
            at += sizeof value;
            blank = line.find(' ', blank + 1);
        }
        ASSERT_EQ(binary[at++], '\n');
    }
    EXPECT_EQ(at, binary.size());
}

}  // namespace
}  // namespace gloved::tests
