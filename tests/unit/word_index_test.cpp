// The index of words: alone with made hashes, and in a model beside the binary search.
#include "common/format/word_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::format {
namespace {

/// The content of a keys file, and its offsets.
struct Words {
    std::string text;
    std::vector<std::uint64_t> starts = {0};

    void add(std::string_view word) {
        text += word;
        text += '\n';
        starts.push_back(text.size());
    }
    WordList list() const { return {text, starts}; }
};

/// «w0», «w1», …, in any order.
Words numbered(std::size_t rows) {
    Words words;
    for (std::size_t row = 0; row < rows; ++row) words.add("w" + std::to_string(row));
    return words;
}

/// Expects that `hash` indexes these words, that each has its row, and that words near to them
/// have none.
void expect_found(const Words& words, WordIndex::Hash hash) {
    const WordList list = words.list();
    const auto index = WordIndex::build(list, hash);
    ASSERT_TRUE(index);
    for (std::size_t row = 0; row < list.rows(); ++row) {
        const std::string word(list.word(row));
        ASSERT_EQ(index->find(word, list), static_cast<Row>(row)) << word;
        ASSERT_EQ(index->find(word + " ", list), std::nullopt) << word;
        ASSERT_EQ(index->find(" " + word, list), std::nullopt) << word;
        ASSERT_EQ(index->find(word + "\n", list), std::nullopt) << word;
    }
    EXPECT_EQ(index->find("", list), std::nullopt);
}

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

TEST(WordIndex, FindsEveryWordAndNoOther) {
    for (const std::size_t rows : {1U, 2U, 3U, 31U, 32U, 33U, 64U, 1000U, 100'000U})
        expect_found(numbered(rows), hash_word);
}

TEST(WordIndex, FindsWordsWithEqualHashes) {
    expect_found(numbered(700), [](std::string_view) { return std::uint64_t{0}; });
    expect_found(numbered(700), [](std::string_view) { return kAllBits; });
}

TEST(WordIndex, FindsWordsWithEqualTags) {
    expect_found(numbered(5000), [](std::string_view w) { return hash_word(w) & kAllBits << 32; });
}

TEST(WordIndex, FindsWordsInEqualSlotsWithOtherTags) {
    expect_found(numbered(1000), [](std::string_view w) { return hash_word(w) >> 32; });
}

TEST(WordIndex, IsNotBuiltOfWordsThatCollideWithoutEnd) {
    const auto hash = [](std::string_view) { return kAllBits; };
    expect_found(numbered(WordIndex::kMaxProbes), hash);
    EXPECT_FALSE(WordIndex::build(numbered(WordIndex::kMaxProbes + 1).list(), hash));
    EXPECT_FALSE(WordIndex::build(numbered(100'000).list(), hash));
}

TEST(WordIndex, StaysInsideWordsThatChangedAfterwards) {
    const Words words = numbered(1000);
    const auto index = WordIndex::build(words.list());
    ASSERT_TRUE(index);
    Words zeros = words;  // as the rest of a page of a file that was cut short
    std::fill(zeros.text.begin(), zeros.text.end(), '\0');
    for (std::size_t row = 0; row < 1000; ++row)
        EXPECT_EQ(index->find(words.list().word(row), zeros.list()), std::nullopt);
}

TEST(WordIndex, TakesThirteenBytesAWord) {
    const auto index = WordIndex::build(numbered(100'000).list());
    ASSERT_TRUE(index);
    EXPECT_GE(index->bytes(), 1'200'000U);
    EXPECT_LE(index->bytes(), 1'300'000U);
}

class ModelIndex : public testing::Test {
  protected:
    /// Expects the right row for each word, and none for words before, between and after them.
    void expect_found() const {
        for (std::size_t row = 0; row < model_.rows(); ++row) {
            const std::string word(model_.key(row));
            ASSERT_EQ(model_.find(word), static_cast<Row>(row)) << word;
            ASSERT_EQ(model_.find(word + "x"), std::nullopt) << word;
        }
        for (const char* absent : {"", "a", "w", "w-1", "x", "\xFF"})
            ASSERT_EQ(model_.find(absent), std::nullopt) << absent;
    }

    tests::TempDir dir_;
    Model model_ = tests::make_model(dir_ / "model", tests::random_entries(3000, 2, 1));
};

TEST_F(ModelIndex, FindsWhatTheBinarySearchFinds) {
    expect_found();
    EXPECT_EQ(model_.index_bytes(), 0U);
    model_.index_words();
    EXPECT_GT(model_.index_bytes(), 3000 * sizeof(Row));
    expect_found();
}

TEST_F(ModelIndex, IsBuiltOnce) {
    model_.index_words();
    const std::size_t bytes = model_.index_bytes();
    model_.index_words();
    EXPECT_EQ(model_.index_bytes(), bytes);
    expect_found();
}

TEST_F(ModelIndex, MovesWithItsModel) {
    model_.index_words();
    const std::size_t bytes = model_.index_bytes();
    Model elsewhere = std::move(model_);
    model_ = std::move(elsewhere);
    EXPECT_EQ(model_.index_bytes(), bytes);
    expect_found();
}

TEST_F(ModelIndex, IsBuiltWhileOthersSearch) {
    std::atomic<int> searching = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            ++searching;
            while (model_.index_bytes() == 0) expect_found();
            expect_found();
        });
    }
    while (searching < 2) std::this_thread::yield();
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { model_.index_words(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(model_.index_bytes(), 0U);
}

}  // namespace
}  // namespace gloved::format
