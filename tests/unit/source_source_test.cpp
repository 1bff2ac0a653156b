// Reading a whole source: batches, dim found, limits, line numbers.
#include "tools/source/source.hpp"
#include "common/result.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/chunker.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/input.hpp"
#include "tools/source/line.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/support/word2vec.hpp"
#include "tests/unit/source_rows.hpp"

namespace gloved::source {
namespace {

const std::atomic<bool> kGoOn{false};

Result<Rows> read(const std::string& content, const SourceOptions& options = {}) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", content);
    return read_rows(dir / "in", options);
}

TEST(Source, FindsDimWhereMostLinesAgree) {
    EXPECT_EQ(read("a 1 2 3\nb 1 2 3\n")->summary.dim, 3U);
    // Words with blanks make lines wider.
    EXPECT_EQ(read("new york 0.1 0.2\na 0.1 0.2\nat x@y.z 0.1 0.2\n")->summary.dim, 2U);
    // Most of them even: what stands before the numbers is not a number.
    EXPECT_EQ(read("new york 0.1 0.2\nlos angeles 0.1 0.2\na 0.1 0.2\n")->summary.dim, 2U);
    EXPECT_TRUE(read("a 0.1 0.2\n")->summary.dim_found);
}

TEST(Source, IsNotMisledByACutLineNearTheTop) {
    const auto rows = read("a 0.1 0.2 0.3\nb 0.1 0.2\nc 0.1 0.2 0.3\n");
    ASSERT_FALSE(rows);
    EXPECT_NE(rows.error().message.find(
                  "line 2 (byte 14): 3 fields found, a word and 3 numbers expected"),
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
        EXPECT_NE(shown.find(fmt::format("line 277778 (byte {}): field 4 of 4 is \"x\"", byte)),
                  std::string::npos)
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

TEST(Source, KnowsWhetherTheLimitLeftAnythingWhereverAChunkEnds) {
    const std::string two = "a 1 2\nb 1 2\n";
    SourceOptions options;
    options.limit = 2;
    options.head_bytes = two.size();
    for (const std::size_t chunk_bytes : {1U, 6U, 12U, 13U, 100U}) {
        options.chunk_bytes = chunk_bytes;
        EXPECT_TRUE(read(two, options)->summary.whole) << chunk_bytes;
        EXPECT_FALSE(read(two + "\n", options)->summary.whole) << chunk_bytes;
    }
}

TEST(Source, KeepsTheFirstProblemsOfABatchAndCountsThemAll) {
    // A batch can hold millions of blank lines.
    const std::string content = "a 1 2\n" + std::string(300'000, '\n') + "b 1 x\n";
    const tests::TempDir dir;
    tests::write_file(dir / "in", content);
    auto input = Input::open(dir / "in", kGoOn);
    ASSERT_TRUE(input);
    SourceOptions options;
    options.on_error = OnError::skip;
    SourceSink sink;
    sink.commit = [](Batch& batch) -> Status {
        EXPECT_LE(batch.skipped.size(), kShownProblems);
        EXPECT_LE(batch.skipped.capacity(), 2 * kShownProblems);
        return {};
    };
    const auto summary = read_source(*input, options, sink);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->skipped[static_cast<std::size_t>(LineFault::blank)], 300'000U);
    EXPECT_EQ(summary->skipped[static_cast<std::size_t>(LineFault::bad_number)], 1U);
    EXPECT_EQ(summary->skipped_examples.size(), kShownProblems);
    EXPECT_EQ(summary->lines, 300'002U);
}

TEST(Source, NoticesAMissingLastNewline) {
    EXPECT_FALSE(read("a 1 2\nb 1 2")->summary.final_newline);
    EXPECT_TRUE(read("a 1 2\nb 1 2\n")->summary.final_newline);
    const auto cut = read("a 1 2\nb 1");
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.error().message.find("the file ends within this line"), std::string::npos)
        << cut.error().message;
}

TEST(Source, NumbersItsBatches) {
    std::string content;
    for (int i = 0; i < 300'000; ++i) content += fmt::format("word{} 0.25 -0.5 0.125\n", i);
    SourceOptions options;
    options.threads = 3;
    const auto rows = read(content, options);
    ASSERT_TRUE(rows) << rows.error().message;
    ASSERT_GT(rows->sequence.size(), 1U);
    for (std::size_t i = 0; i < rows->sequence.size(); ++i) EXPECT_EQ(rows->sequence[i], i);
}

TEST(Source, TakesALineOfTheLongestLength) {
    // «a 0.5000…», to the byte.
    std::string longest = "a 0.5";
    longest.append(kMaxLineBytes - longest.size(), '0');
    SourceOptions options;
    options.dim = 1;
    const auto rows = read("b 1\n" + longest + "\nc 2\n", options);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->keys, (std::vector<std::string>{"b", "a", "c"}));
    const auto longer = read("b 1\n" + longest + "0\nc 2\n", options);
    ASSERT_FALSE(longer);
    EXPECT_NE(longer.error().message.find("line 2 (byte 4): the line is longer than 16 MiB"),
              std::string::npos)
        << longer.error().message;
}

TEST(Source, PassesOverLinesThatAreTooLong) {
    const std::string too_long(kMaxLineBytes + (9 << 20), 'x');
    SourceOptions options;
    options.dim = 2;
    options.on_error = OnError::skip;
    for (const std::size_t threads : {1U, 3U}) {
        options.threads = threads;
        options.limit = 0;
        const auto rows = read(
            "a 1 2\n" + too_long + "\nb 1 2\n" + too_long + "\n" + too_long + "\nc 1 2\n", options);
        ASSERT_TRUE(rows) << rows.error().message;
        EXPECT_EQ(rows->keys, (std::vector<std::string>{"a", "b", "c"}));
        EXPECT_EQ(rows->lines, (std::vector<std::uint64_t>{1, 3, 6}));
        EXPECT_EQ(rows->summary.skipped[static_cast<std::size_t>(LineFault::too_long)], 3U);
        EXPECT_EQ(rows->summary.lines, 6U);
        EXPECT_EQ(rows->summary.text_bytes, 18 + 3 * (too_long.size() + 1));
        const auto at_end = read("a 1 2\n" + too_long, options);
        ASSERT_TRUE(at_end) << at_end.error().message;
        EXPECT_EQ(at_end->keys, (std::vector<std::string>{"a"}));
        EXPECT_EQ(at_end->said.find("no newline"), std::string::npos) << at_end->said;
        // Such a line counts for the limit as any other does.
        options.limit = 2;
        const auto limited = read("a 1 2\n" + too_long + "\nb 1 2\n", options);
        ASSERT_TRUE(limited) << limited.error().message;
        EXPECT_EQ(limited->keys, (std::vector<std::string>{"a"}));
        EXPECT_FALSE(limited->summary.whole);
    }
}

TEST(Source, FreesTheMemoryOfALongLine) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", std::string(3 << 20, 'x') + "\n" + std::string(3 << 20, '\n'));
    auto input = Input::open(dir / "in", kGoOn);
    ASSERT_TRUE(input);
    ChunkerOptions options;
    options.chunk_bytes = 1 << 12;
    const auto chunker = Chunker::create(*input, std::move(options));
    Batch batch;
    ASSERT_TRUE(*chunker->next(batch));
    ASSERT_GE(batch.buffer.capacity(), 3U << 20);
    while (*chunker->next(batch)) {
    }
    EXPECT_LT(batch.buffer.capacity(), 1U << 16);
}

TEST(Source, DropsAByteOrderMarkAndSaysSo) {
    const auto rows = read(
        "\xEF\xBB\xBF"
        "a 1 2\nb 1 x\n");
    ASSERT_FALSE(rows);
    EXPECT_NE(rows.error().message.find("line 2 (byte 9)"), std::string::npos)
        << rows.error().message;
    const auto good = read(
        "\xEF\xBB\xBF"
        "a 1 2\nb 1 2\n");
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_EQ(good->keys, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(good->summary.bom);
    EXPECT_NE(good->said.find("byte order mark"), std::string::npos) << good->said;
}

TEST(Source, HoldsAHeaderAgainstTheWords) {
    const auto good = read("2 3\na 1 2 3 \nb 1 2 3 \n");
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_EQ(good->lines, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(good->summary.lines, 3U);
    EXPECT_EQ(good->summary.header_rows, 2U);
    EXPECT_NE(good->said.find("word2vec text, 2 words of 3 numbers"), std::string::npos)
        << good->said;
    for (const auto& [header, remedy] :
         {std::pair{"3 3", "the download is not complete"}, {"1 3", "the header is wrong"}}) {
        const std::string content = std::string(header) + "\na 1 2 3\nb 1 2 3\n";
        const auto refused = read(content);
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message.find(
                      fmt::format("promises {} words, 2 are there; {}", header[0], remedy)),
                  std::string::npos)
            << refused.error().message;
        SourceOptions options;
        options.on_error = OnError::skip;
        const auto taken = read(content, options);
        ASSERT_TRUE(taken) << taken.error().message;
        EXPECT_NE(taken->said.find("warning: "), std::string::npos) << taken->said;
        options.on_error = OnError::stop;
        options.limit = 1;
        const auto limited = read("3 3\na 1 2 3\nb 1 2 3\n", options);
        ASSERT_TRUE(limited) << limited.error().message;
        EXPECT_EQ(limited->keys, (std::vector<std::string>{"a"}));
    }
    // A blank line is not a word, and one that is left out is.
    SourceOptions options;
    options.on_error = OnError::skip;
    const auto skipped = read("2 3\na 1 2 3\n\nb 1 2 x\n", options);
    ASSERT_TRUE(skipped);
    EXPECT_EQ(skipped->said.find("warning"), std::string::npos) << skipped->said;
    EXPECT_NE(read("0 3\n", options).error().message.find("no words behind the header"),
              std::string::npos);
}

TEST(Source, ReadsTextWithNorms) {
    const auto rows = read("a 5.000 3 4\nnew york 13.000 5 12\n");
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->summary.format, SourceFormat::norms);
    EXPECT_EQ(rows->keys, (std::vector<std::string>{"a", "new york"}));
    EXPECT_EQ(rows->values, (std::vector<float>{3, 4, 5, 12}));
    SourceOptions options;
    options.format = SourceFormat::norms;
    const auto wrong = read("a 5.000 3 4\nb 13.5 5 12\n", options);
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("line 2 (byte 12): the norm is given as \"13.5\""),
              std::string::npos)
        << wrong.error().message;
    options.on_error = OnError::skip;
    const auto left = read("a 5.000 3 4\nb 13.5 5 12\nc 5 4 3\n", options);
    ASSERT_TRUE(left) << left.error().message;
    EXPECT_EQ(left->values, (std::vector<float>{3, 4, 4, 3}));
    EXPECT_EQ(left->summary.skipped[static_cast<std::size_t>(LineFault::norm_mismatch)], 1U);
}

using tests::record;

TEST(BinarySource, IsReadAcrossBatches) {
    for (const std::string between : {"", "\n"}) {
        std::string content = "60000 50\n";
        std::vector<float> numbers(50);
        for (int i = 0; i < 60'000; ++i) {
            numbers[0] = static_cast<float>(i);
            numbers[49] = -0.1F;
            content += record(fmt::format("word{}", i), numbers) + between;
        }
        SourceOptions options;
        for (const std::size_t threads : {1U, 3U}) {
            options.threads = threads;
            const auto rows = read(content, options);
            ASSERT_TRUE(rows) << rows.error().message;
            EXPECT_EQ(rows->summary.format, SourceFormat::word2vec_bin);
            ASSERT_EQ(rows->keys.size(), 60'000U);
            for (std::size_t i = 0; i < rows->keys.size(); ++i) {
                ASSERT_EQ(rows->keys[i], fmt::format("word{}", i));
                ASSERT_EQ(rows->lines[i], i + 1);
                ASSERT_EQ(rows->values[i * 50], static_cast<float>(i));
                ASSERT_EQ(rows->values[i * 50 + 49], -0.1F);
            }
            EXPECT_TRUE(rows->summary.whole);
        }
    }
}

TEST(Source, IsTheSameInPiecesOfAnySize) {
    std::string text = "3 2\n";
    std::string binary = text;
    for (const std::string word : {"a", "new-york", "a-word-of-more-than-one-piece"}) {
        text += word + " 0.25 -0.5\n";
        binary += record(word, {0.25F, -0.5F}) + "\n";
    }
    for (const std::string& content : {text, binary}) {
        const auto whole = read(content);
        ASSERT_TRUE(whole) << whole.error().message;
        SourceOptions options;
        options.format = whole->summary.format;
        options.head_bytes = 4;
        for (options.chunk_bytes = 1; options.chunk_bytes <= content.size();
             ++options.chunk_bytes) {
            for (const std::size_t threads : {0U, 2U}) {
                options.threads = threads;
                const auto pieces = read(content, options);
                ASSERT_TRUE(pieces) << options.chunk_bytes << pieces.error().message;
                EXPECT_EQ(pieces->keys, whole->keys);
                EXPECT_EQ(pieces->values, whole->values);
                EXPECT_EQ(pieces->lines, whole->lines);
            }
        }
    }
}

TEST(BinarySource, NamesWordAndByteOfAFault) {
    const std::string good = record("good", {1, 2, 3});
    const std::string bad = record("bad", {1, NAN, 3});
    const auto refused = read("3 3\n" + good + bad + good);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(
                  "word 2 (byte 21): number 2 of 3 is nan, which is not finite (the word is "
                  "\"bad\"); --on-error skip leaves such words out"),
              std::string::npos)
        << refused.error().message;
    SourceOptions options;
    options.on_error = OnError::skip;
    const auto rows = read("3 3\n" + good + bad + good, options);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->lines, (std::vector<std::uint64_t>{1, 3}));
    EXPECT_EQ(rows->summary.skipped[static_cast<std::size_t>(LineFault::not_finite)], 1U);

    const auto endless = read("2 3\n" + good + std::string(kMaxWordBytes + 1, 'x') + good, options);
    ASSERT_FALSE(endless);
    EXPECT_NE(
        endless.error().message.find("word 2 (byte 21): no blank ends the word within 64 KiB"),
        std::string::npos)
        << endless.error().message;
}

TEST(BinarySource, TakesTheLastNewlineWhereAChunkEndsBeforeIt) {
    const std::string content = "2 3\n" + record("aa", {1, 2, 3}) + record("bb", {1, 2, 3});
    SourceOptions options;
    options.format = SourceFormat::word2vec_bin;
    options.head_bytes = content.size();
    options.chunk_bytes = content.size() - 4;
    for (const std::string& end : {std::string("\n"), std::string("\n\0", 2)}) {
        const auto rows = read(content + end, options);
        EXPECT_TRUE(rows) << rows.error().message;
    }
    EXPECT_FALSE(read(content + "\n\n", options));
}

TEST(BinarySource, NoticesWhereItEnds) {
    const std::string two = record("aa", {1, 2, 3}) + "\n" + record("bb", {1, 2, 3});
    for (const std::string& end :
         {std::string(), std::string("\n"), std::string(1000, '\0'), "\n" + std::string(9, '\0')}) {
        EXPECT_TRUE(read("2 3\n" + two + end));
    }
    SourceOptions skip;
    skip.on_error = OnError::skip;
    for (const std::string more : {"x", "\n\n", "\nx"}) {
        const auto surplus = read("2 3\n" + two + more);
        ASSERT_FALSE(surplus);
        EXPECT_NE(
            surplus.error().message.find(fmt::format(
                "other data follows the last of the 2 words that the header promises, at byte {}",
                4 + two.size() + more.size() - 1)),
            std::string::npos)
            << surplus.error().message;
        EXPECT_NE(read("2 3\n" + two + more, skip)->said.find("warning: "), std::string::npos);
    }
    // Behind megabytes of padding too.
    EXPECT_FALSE(read("2 3\n" + two + std::string(9 << 20, '\0') + "x"));

    SourceOptions forced;
    forced.format = SourceFormat::word2vec_bin;
    for (std::size_t length = 16; length < two.size(); ++length) {
        const auto cut = read("2 3\n" + two.substr(0, length), forced);
        ASSERT_FALSE(cut) << length;
        const bool between = length == 16 - 1 || length == 16;
        EXPECT_NE(cut.error().message.find(between ? "promises 2 words, 1 are there"
                                                   : "the file ends within this word"),
                  std::string::npos)
            << length << cut.error().message;
    }
    forced.on_error = OnError::skip;
    const auto taken = read("2 3\n" + two.substr(0, 25), forced);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken->keys, (std::vector<std::string>{"aa"}));
    EXPECT_EQ(taken->summary.skipped[static_cast<std::size_t>(LineFault::cut)], 1U);
    EXPECT_NE(taken->said.find("promises 2 words, 1 are there"), std::string::npos) << taken->said;
}

TEST(BinarySource, StopsAtTheLimit) {
    SourceOptions options;
    options.limit = 1;
    const std::string content = "2 3\n" + record("aa", {1, 2, 3}) + record("bb", {1, NAN, 3});
    const auto rows = read(content, options);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->keys, (std::vector<std::string>{"aa"}));
    EXPECT_FALSE(rows->summary.whole);
    options.limit = 2;
    EXPECT_FALSE(read(content, options));
}

}  // namespace
}  // namespace gloved::source
