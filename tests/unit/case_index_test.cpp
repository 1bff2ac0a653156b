// The index of case foldings against a search of all words.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/case_fold.hpp"
#include "common/format/case_index.hpp"
#include "common/format/model.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::format {
namespace {

using Words = std::vector<std::string>;

std::shared_ptr<const Model> model_of(const std::string& directory, const Words& words) {
    std::vector<tests::Entry> entries;
    entries.reserve(words.size());
    for (const std::string& word : words) entries.emplace_back(word, std::vector<float>{1});
    return std::make_shared<const Model>(tests::make_model(directory, entries));
}

std::optional<Row> plain_search(const Model& model, std::string_view word) {
    std::optional<Row> best;
    const std::string folded = fold_case(word);
    for (std::size_t row = 0; row < model.rows(); ++row) {
        if (fold_case(model.key(row)) != folded) continue;
        if (!best || model.ranks()[row] < model.ranks()[*best]) best = static_cast<Row>(row);
    }
    return best;
}

/// Words of letters whose upper and lower cases do not pair off simply, and a byte that is no
/// UTF-8.
std::string random_word(std::mt19937& random) {
    const Words letters = {"a", "A", "k", "K", "\u212A", "s", "S", "ſ", "σ", "ς", "Σ", "ß",
                           "ẞ", "i", "I", "ı", "İ",      "ǆ", "ǅ", "Ǆ", "é", "É", "1", "\xFF"};
    std::string word;
    const auto pick = [&](std::size_t below) { return random() % below; };
    for (std::size_t length = 1 + pick(3); length > 0; --length)
        word += letters[pick(letters.size())];
    return word;
}

TEST(CaseIndex, FindsTheMostFrequentWordOfTheSameFolding) {
    const tests::TempDir dir;
    std::mt19937 random(25);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same words in every run
    Words words;
    std::set<std::string> seen;
    while (words.size() < 1500) {
        if (std::string word = random_word(random); seen.insert(word).second)
            words.push_back(std::move(word));
    }
    const auto model = model_of(dir / "model", words);
    const CaseIndex index(*model);
    std::size_t found = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::string word = random_word(random);
        const auto expected = plain_search(*model, word);
        found += expected && model->key(*expected) != word ? 1U : 0U;
        const auto row = index.find(word);
        ASSERT_EQ(row, expected) << word << " " << (row ? model->key(*row) : "none");
    }
    EXPECT_GT(found, 5000U) << "too few words that another stands for";
    EXPECT_LT(index.size_bytes(), 1500 * sizeof(Row)) << "holds words of usual forms too";
}

TEST(CaseIndex, OfAModelWithoutOtherForms) {
    const tests::TempDir dir;
    const auto model = model_of(dir / "model", {"snake", "Paris", "NASA", "24"});
    const CaseIndex index(*model);
    EXPECT_EQ(index.size_bytes(), 0U);
    EXPECT_EQ(index.find("pARIS"), model->find("Paris"));
    EXPECT_EQ(index.find("nAsA"), model->find("NASA"));
    EXPECT_EQ(index.find("SnAkE"), model->find("snake"));
    EXPECT_EQ(index.find("42"), std::nullopt);
    EXPECT_EQ(index.find(""), std::nullopt);
}

}  // namespace
}  // namespace gloved::format
