#include "tools/source/line.hpp"
#include "tools/source/record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/word2vec.hpp"

namespace gloved::source {
namespace {

using tests::record;

TEST(Record, IsAWordABlankAndNumbers) {
    const std::string bytes = record("new", {1.5F, -2, 0.1F}) + "\n" + record("york", {1, 2, 3});
    const Record first = find_record(bytes, 3);
    ASSERT_EQ(first.state, Record::State::whole);
    EXPECT_EQ(first.word, "new");
    std::vector<float> values(3);
    EXPECT_FALSE(parse_record(first, 3, values.data()));
    EXPECT_EQ(values, (std::vector<float>{1.5F, -2, 0.1F}));
    const Record second = find_record(std::string_view(bytes).substr(first.bytes), 3);
    ASSERT_EQ(second.state, Record::State::whole);
    EXPECT_EQ(second.word, "york");  // without the LF before it
    EXPECT_EQ(first.bytes + second.bytes, bytes.size());
}

TEST(Record, IsIncompleteUpToItsLastByte) {
    const std::string bytes = "\n" + record("word", {1, 2});
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        // A heap block of exactly that size: the address sanitizer sees any byte read behind it.
        const std::vector<char> exact(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(find_record({exact.data(), exact.size()}, 2).state, Record::State::incomplete)
            << length;
    }
    EXPECT_EQ(find_record(bytes, 2).state, Record::State::whole);
}

TEST(Record, HasAWordOf64KiBAtMost) {
    const std::string longest(kMaxWordBytes, 'x');
    EXPECT_EQ(find_record(record(longest, {1}), 1).state, Record::State::whole);
    EXPECT_EQ(find_record(record(longest + "x", {1}), 1).state, Record::State::no_blank);
    EXPECT_EQ(find_record(longest, 1).state, Record::State::incomplete);
}

TEST(Record, RefusesNumbersThatAreNotFiniteAndForbiddenKeys) {
    std::vector<float> values(2);
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        const std::string bytes = record("word", {1, bad});
        const auto problem = parse_record(find_record(bytes, 2), 2, values.data());
        ASSERT_TRUE(problem);
        EXPECT_EQ(problem->fault, LineFault::not_finite);
        EXPECT_NE(problem->message.find("number 2 of 2 is"), std::string::npos) << problem->message;
    }
    for (const std::string word : {"", "a\tb", "a\nb", "a\rb"}) {
        const std::string bytes = record(word, {1, 2});
        const auto problem = parse_record(find_record(bytes, 2), 2, values.data());
        ASSERT_TRUE(problem) << word;
        EXPECT_EQ(problem->fault, LineFault::bad_key);
    }
}

}  // namespace
}  // namespace gloved::source
