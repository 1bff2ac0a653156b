#include "tools/source/line.hpp"
#include "tools/source/record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/word2vec.hpp"

namespace gloved::source {
namespace {

using tests::record;

const std::vector<float> kNumbers = {0.11F, -0.52F, 0.3F};
/// As many as tell by themselves that they stand where they should.
const std::vector<float> kManyNumbers = {0.11F,  -0.52F, 0.3F,  0.07F, -0.9F, 0.44F, 0.21F, -0.03F,
                                         -0.15F, 0.62F,  0.05F, -0.7F, 0.33F, 0.12F, -0.4F, 0.26F};

Record find(std::string_view bytes, std::uint64_t left, std::optional<bool> newline = {},
            bool ended = true, std::size_t dim = 3) {
    return find_record(bytes, ended, {dim, newline, {}}, left);
}

std::string_view word_of(const Record& record, std::string_view bytes) {
    return bytes.substr(0, record.word_bytes);
}

TEST(Record, IsAWordABlankAndNumbers) {
    const std::string bytes = record("new", kNumbers) + "\n" + record("york", kNumbers);
    const Record first = find(bytes, 2);
    ASSERT_EQ(first.state, Record::State::whole);
    EXPECT_EQ(word_of(first, bytes), "new");
    EXPECT_TRUE(first.newline);
    const std::string_view rest = std::string_view(bytes).substr(first.bytes);
    const Record second = find(rest, 1, true);
    ASSERT_EQ(second.state, Record::State::whole);
    EXPECT_EQ(word_of(second, rest), "york");
    EXPECT_EQ(first.bytes + second.bytes, bytes.size());
}

TEST(Record, IsIncompleteUpToTheNextWord) {
    const std::string bytes = record("word", kManyNumbers) + record("next", kManyNumbers);
    const std::size_t needed = bytes.size() - kManyNumbers.size() * sizeof(float);
    for (std::size_t length = 1; length < bytes.size(); ++length) {
        // A heap block of exactly that size: the address sanitizer sees any byte read behind it.
        const std::vector<char> exact(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(find({exact.data(), exact.size()}, 2, false, false, kManyNumbers.size()).state,
                  length < needed ? Record::State::incomplete : Record::State::whole)
            << length;
    }
}

TEST(Record, IsCutWhereTheSourceEndsWithinIt) {
    const std::string bytes = record("word", kNumbers);
    for (std::size_t length = 1; length < bytes.size(); ++length)
        EXPECT_EQ(find(std::string_view(bytes).substr(0, length), 2).state, Record::State::cut);
    EXPECT_EQ(find(bytes, 2).state, Record::State::whole);
}

TEST(Record, HasAWordOf64KiBAtMost) {
    const std::string longest(kMaxWordBytes, 'x');
    EXPECT_EQ(find(record(longest, kNumbers), 1).state, Record::State::whole);
    EXPECT_EQ(find(longest, 1, false, false).state, Record::State::incomplete);
    const Record longer = find(record(longest + "x", kNumbers), 1);
    EXPECT_EQ(longer.state, Record::State::refused);
    EXPECT_NE(longer.problem.find("no blank ends the word within 64 KiB"), std::string::npos);
}

TEST(Record, FindsTheEndOfAWordWithBlanks) {
    for (const std::string word : {"new york", " york", "new ", "a b c d", "  ", "日 本"}) {
        for (const std::string newline : {"", "\n"}) {
            const std::string bytes = record(word, kNumbers) + newline + record("next", kNumbers);
            const Record found = find(bytes, 2);
            ASSERT_EQ(found.state, Record::State::whole) << word << ": " << found.problem;
            EXPECT_EQ(word_of(found, bytes), word);
            EXPECT_EQ(found.newline, !newline.empty());
            const Record last = find(record(word, kNumbers) + newline, 1);
            EXPECT_EQ(last.word_bytes, word.size()) << word << ": " << last.problem;
        }
    }
}

TEST(Record, WithTwoReadingsThatAreAsLikelyIsRefused) {
    // One number a word: «A B» and its number, or «A» and what is before «=C», both of usual size.
    const std::string bytes =
        std::string("A \x20\x31\x32\x3D", 6) + "BC " + "\x01\x02\x03\x3D" + record("next", {0.5F});
    const Record found = find(bytes, 3, false, true, 1);
    EXPECT_EQ(found.state, Record::State::refused);
    EXPECT_NE(found.problem.find("\"A\""), std::string::npos) << found.problem;
}

TEST(Record, FindsTheEndOfAWordWithBlanksAndBytesThatAreNoText) {
    std::vector<float> with_zeros = kManyNumbers;
    with_zeros[14] = with_zeros[15] = 0;
    for (const std::string word : {"new \x01 york", "new \xE9t\xE9 x", "x \xC2\x92", "a \xE9"}) {
        for (const auto& numbers : {kManyNumbers, with_zeros}) {
            const std::string bytes = record(word, numbers) + record("next", numbers);
            const Record found = find(bytes, 2, false, true, numbers.size());
            ASSERT_EQ(found.state, Record::State::whole) << found.problem;
            EXPECT_EQ(word_of(found, bytes), word);
            const Record last = find(record(word, numbers), 1, false, true, numbers.size());
            EXPECT_EQ(last.word_bytes, word.size()) << word << ": " << last.problem;
        }
    }
}

TEST(Record, WithMoreBlanksThanAreComparedIsRefused) {
    std::string word;
    for (int i = 0; i < 70; ++i) word += "a ";
    const std::string bytes = record(word, kManyNumbers) + record("next", kManyNumbers);
    const Record found = find(bytes, 2, false, true, kManyNumbers.size());
    EXPECT_EQ(found.state, Record::State::refused);
    EXPECT_NE(found.problem.find("more than 64 blanks"), std::string::npos) << found.problem;
}

TEST(Record, AgreesWithTheOthersInItsNewline) {
    const std::string with = record("a", kNumbers) + "\n" + record("b", kNumbers);
    const std::string without = record("a", kNumbers) + record("b", kNumbers);
    EXPECT_EQ(find(with, 2, true).state, Record::State::whole);
    EXPECT_EQ(find(with, 2, false).state, Record::State::refused);
    EXPECT_EQ(find(without, 2, false).state, Record::State::whole);
    EXPECT_EQ(find(without, 2, true).state, Record::State::refused);
}

TEST(Record, OfOtherBytesThanTextIsTakenWhereItsNumbersAreUsual) {
    const std::string bytes = record("caf\xE9", kNumbers) + record("\x01\xFF", kNumbers);
    EXPECT_EQ(find(bytes, 2).word_bytes, 4U);
    // Large numbers alone are no sign either.
    const std::string large = record("a", {1e9F, 2e9F, 3e9F}) + record("b", kNumbers);
    EXPECT_EQ(find(large, 2).word_bytes, 1U);
}

TEST(Record, RefusesNumbersThatAreNotFiniteAndForbiddenKeys) {
    std::vector<float> values(2);
    bool has_large = false;
    ArrayLayout layout;
    layout.dim = 2;
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        const std::string bytes = record("word", {1, bad});
        const auto problem = parse_row("word", bytes.data() + 5, layout, values.data(), has_large);
        ASSERT_TRUE(problem);
        EXPECT_EQ(problem->fault, LineFault::not_finite);
        EXPECT_NE(problem->message.find("number 2 of 2 is"), std::string::npos) << problem->message;
    }
    for (const std::string word : {"", "a\tb", "a\nb", "a\rb"}) {
        const std::string bytes = record(word, {1, 2});
        const auto problem =
            parse_row(word, bytes.data() + word.size() + 1, layout, values.data(), has_large);
        ASSERT_TRUE(problem) << word;
        EXPECT_EQ(problem->fault, LineFault::bad_key);
    }
    const std::string bytes = record("word", {1.5F, -2});
    EXPECT_FALSE(parse_row("word", bytes.data() + 5, layout, values.data(), has_large));
    EXPECT_EQ(values, (std::vector<float>{1.5F, -2}));
}

}  // namespace
}  // namespace gloved::source
