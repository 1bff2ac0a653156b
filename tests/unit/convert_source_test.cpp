// Reading a whole source: batches, dim found, limits, line numbers.
#include "tools/convert/source.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace gloved::convert {
namespace {

const std::atomic<bool> kGoOn{false};

struct Rows {
    SourceSummary summary;
    std::vector<std::string> keys;
    std::vector<std::uint64_t> lines;
};

Result<Rows> read(const std::string& content, const SourceOptions& options = {}) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", content);
    auto input = Input::open(dir / "in", kGoOn);
    if (!input) return input.error();
    Rows rows;
    SourceSink sink;
    sink.commit = [&](Batch& batch) -> Status {
        for (std::size_t i = 0; i < batch.rows(); ++i) {
            rows.keys.emplace_back(batch.key(i));
            rows.lines.push_back(batch.first_line + batch.line_numbers[i] + 1);
        }
        return {};
    };
    auto summary = read_source(*input, options, sink);
    if (!summary) return summary.error();
    rows.summary = *summary;
    return rows;
}

TEST(Source, FindsDimWhereMostLinesAgree) {
    EXPECT_EQ(read("a 1 2 3\nb 1 2 3\n")->summary.dim, 3U);
    // Words with blanks make lines wider.
    EXPECT_EQ(read("new york 0.1 0.2\na 0.1 0.2\nat x@y.z 0.1 0.2\n")->summary.dim, 2U);
    // Most of them even: what stands before the numbers is no number.
    EXPECT_EQ(read("new york 0.1 0.2\nlos angeles 0.1 0.2\na 0.1 0.2\n")->summary.dim, 2U);
    EXPECT_TRUE(read("a 0.1 0.2\n")->summary.dim_found);
}

TEST(Source, IsNotMisledByACutLineNearTheTop) {
    const auto rows = read("a 0.1 0.2 0.3\nb 0.1 0.2\nc 0.1 0.2 0.3\n");
    ASSERT_FALSE(rows);
    EXPECT_NE(rows.error().message.find("line 2 (byte 14): 3 fields found, a word and 3 numbers expected"),
              std::string::npos)
        << rows.error().message;
}

TEST(Source, CountsLinesAcrossBatches) {
    std::string content;
    for (int i = 0; i < 300'000; ++i)
        content += fmt::format("word{} 0.25 -0.5 {}\n", i, i % 100'000 == 77'777 ? "x" : "1");
    SourceOptions options;
    options.dim = 3;
    options.on_error = OnError::skip;
    for (const std::size_t threads : {1U, 4U}) {
        options.threads = threads;
        const auto rows = read(content, options);
        ASSERT_TRUE(rows) << rows.error().message;
        EXPECT_EQ(rows->summary.lines, 300'000U);
        EXPECT_EQ(rows->summary.skipped_lines(), 3U);
        EXPECT_EQ(rows->keys.size(), 299'997U);
        for (std::size_t i = 0; i < rows->keys.size(); ++i) {
            ASSERT_EQ(rows->keys[i], fmt::format("word{}", rows->lines[i] - 1));
        }
        const std::string& shown = rows->summary.skipped_examples.back();
        const std::size_t byte = content.find("word277777 ");
        EXPECT_NE(shown.find(fmt::format("line 277778 (byte {}): field 4 of 4 is \"x\"", byte)), std::string::npos)
            << shown;
    }
}

TEST(Source, StopsAtTheLimit) {
    SourceOptions options;
    options.limit = 2;
    auto rows = read("a 1 2\nb 1 2\nc x y\n", options);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->keys, (std::vector<std::string>{"a", "b"}));
    EXPECT_FALSE(rows->summary.whole);
    options.limit = 3;
    EXPECT_TRUE(read("a 1 2\nb 1 2\nc 1 2\n", options)->summary.whole);
    options.limit = 300;
    EXPECT_TRUE(read("a 1 2\nb 1 2\nc 1 2\n", options)->summary.whole);
}

TEST(Source, NoticesAMissingLastNewline) {
    EXPECT_FALSE(read("a 1 2\nb 1 2")->summary.final_newline);
    EXPECT_TRUE(read("a 1 2\nb 1 2\n")->summary.final_newline);
    const auto cut = read("a 1 2\nb 1");
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.error().message.find("the file ends within this line"), std::string::npos) << cut.error().message;
}

TEST(Source, RefusesALineWithoutEnd) {
    std::string content = "a 1 2\n";
    content.append(kMaxLineBytes + (8 << 20), 'x');
    SourceOptions options;
    options.dim = 2;
    options.on_error = OnError::skip;
    const auto rows = read(content, options);
    ASSERT_FALSE(rows);
    EXPECT_NE(rows.error().message.find("line 2 (byte 6): no line end within 64 MiB"), std::string::npos)
        << rows.error().message;
}

}  // namespace
}  // namespace gloved::convert
