// The suggestions against a plain search that compares the whole table of every word.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "common/case_fold.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "daemon/spelling.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::daemon {
namespace {

using Words = std::vector<std::string>;
using Clock = ThreadClock;

constexpr Clock::time_point kNoDeadline{std::chrono::hours(24)};

std::vector<std::uint32_t> folded(std::string_view word) {
    std::vector<std::uint32_t> code_points;
    while (!word.empty()) {
        const CodePoint code_point = first_code_point(word);
        code_points.push_back(fold_case(code_point.value));
        word.remove_prefix(code_point.bytes);
    }
    return code_points;
}

/// Optimal string alignment by its recurrence: cell (i, j) is the distance between the first i of
/// `a` and the first j of `b`.
std::size_t whole_distance(const std::vector<std::uint32_t>& a,
                           const std::vector<std::uint32_t>& b) {
    std::vector<std::vector<std::size_t>> cell(a.size() + 1,
                                               std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                cell[i][j] = i + j;
                continue;
            }
            cell[i][j] = std::min({cell[i - 1][j] + 1, cell[i][j - 1] + 1,
                                   cell[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cell[i][j] = std::min(cell[i][j], cell[i - 2][j - 2] + 1);
            }
        }
    }
    return cell[a.size()][b.size()];
}

Words plain_search(const format::Model& model, const std::string& word) {
    const auto wanted = folded(word);
    if (wanted.empty()) return {};
    const std::size_t farthest = wanted.size() == 1 ? 0 : wanted.size() <= 3 ? 1 : 2;
    std::vector<std::tuple<std::size_t, std::uint32_t, std::string>> found;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const auto key = folded(model.key(row));
        // The lengths alone say so; the tables of long words would take minutes.
        if (key.size() > wanted.size() + farthest || wanted.size() > key.size() + farthest)
            continue;
        const std::size_t distance = whole_distance(wanted, key);
        if (distance <= farthest && model.key(row) != word) {
            found.emplace_back(distance, model.ranks()[row], model.key(row));
        }
    }
    std::sort(found.begin(), found.end());
    Words words;
    for (const auto& [distance, rank, key] : found) {
        if (words.size() < SpellingIndex::kMaxSuggestions) words.push_back(key);
    }
    return words;
}

std::string shown(const Words& words) {
    return std::accumulate(
        words.begin(), words.end(), std::string(),
        [](const std::string& all, const std::string& word) { return all + " " + word; });
}

std::shared_ptr<const format::Model> model_of(const std::string& directory,
                                              const Words& most_frequent_first) {
    std::vector<tests::Entry> entries;
    for (const std::string& word : most_frequent_first) entries.push_back({word, {1.0F, 2.0F}});
    return std::make_shared<const format::Model>(tests::make_model(directory, entries));
}

/// One to three random changes; the letters that come in are ones that words have.
std::string misspelt(std::string word, std::mt19937_64& random) {
    static const std::string kLetters = "etaoinshrdlucmfwypvbgkjqxz-'.1209\xC3\xA9\xFF";
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
        const std::size_t at = random() % (word.size() + 1);
        const char letter = kLetters[random() % kLetters.size()];
        switch (random() % 4) {
            case 0:
                word.insert(at, 1, letter);
                break;
            case 1:
                if (at < word.size()) word[at] = letter;
                break;
            case 2:
                if (at < word.size()) word.erase(at, 1);
                break;
            default:
                if (at + 1 < word.size()) std::swap(word[at], word[at + 1]);
        }
    }
    return word;
}

class SpellingOfTheSample : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        directory_ = std::make_unique<tests::TempDir>();
        const std::string target = *directory_ / "model";
        const auto converted =
            tests::run({tests::program("gloved-convert"),
                        tests::source_path("data/glove.6B.100d.sample.txt.gz"), target});
        ASSERT_EQ(converted.exit_code, 0) << converted.err;
        auto opened = format::Model::open(target);
        ASSERT_TRUE(opened);
        model_ = std::make_shared<const format::Model>(*std::move(opened));
        index_ = std::make_unique<SpellingIndex>(model_);
    }
    static void TearDownTestSuite() {
        index_.reset();
        model_.reset();
        directory_.reset();
    }

    static void expect_as_plain(const std::string& word) {
        EXPECT_EQ(shown(index_->suggest(word, kNoDeadline)), shown(plain_search(*model_, word)))
            << word;
    }

    static std::unique_ptr<tests::TempDir> directory_;
    static std::shared_ptr<const format::Model> model_;
    static std::unique_ptr<SpellingIndex> index_;
};

std::unique_ptr<tests::TempDir> SpellingOfTheSample::directory_;
std::shared_ptr<const format::Model> SpellingOfTheSample::model_;
std::unique_ptr<SpellingIndex> SpellingOfTheSample::index_;

TEST_F(SpellingOfTheSample, SuggestsWhatAPlainSearchFinds) {
    std::mt19937_64 random(20140825);
    for (int i = 0; i < 500; ++i) {
        expect_as_plain(misspelt(std::string(model_->key(random() % model_->rows())), random));
    }
}

TEST_F(SpellingOfTheSample, SuggestsForShortRepeatedAndStrangeWordsToo) {
    for (const char* word : {"",
                             "a",
                             "Q",
                             "é",
                             "zz",
                             "Th",
                             "xq",
                             "teh",
                             "THE",
                             "qzx",
                             "aaaa",
                             "eeeeee",
                             "ssss",
                             "2000",
                             "19999",
                             "etaoin",
                             "aeinrst",
                             "tsrniea",
                             "King",
                             "KING",
                             "kings",
                             "the",
                             "École",
                             "\xFF",
                             "\xFF\xFF",
                             "th\xFF"
                             "e",
                             "\xC3\xA9\xC3",
                             "κινγ",
                             "漢字"}) {
        expect_as_plain(word);
    }
    expect_as_plain(std::string(300, 'e'));
    expect_as_plain(std::string(65536, 'e'));
}

TEST_F(SpellingOfTheSample, PutsCaseBeforeDistanceAndDistanceBeforeFrequency) {
    EXPECT_EQ(index_->suggest("King", kNoDeadline).at(0), "king");
    EXPECT_EQ(index_->suggest("recieve", kNoDeadline).at(0), "receive");
    const Words of_a_word = index_->suggest("king", kNoDeadline);
    EXPECT_EQ(std::count(of_a_word.begin(), of_a_word.end(), "king"), 0) << "never the word itself";
    EXPECT_EQ(of_a_word.size(), 5U);
    EXPECT_EQ(index_->suggest("qxzvwkjqy", kNoDeadline), Words());
}

TEST_F(SpellingOfTheSample, AnswersAnyNumberOfThreadsAlike) {
    const Words expected = index_->suggest("governmant", kNoDeadline);
    ASSERT_FALSE(expected.empty());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 50; ++round)
                EXPECT_EQ(index_->suggest("governmant", kNoDeadline), expected);
        });
    }
    for (auto& thread : threads) thread.join();
}

TEST_F(SpellingOfTheSample, StopsAtTheDeadline) {
    EXPECT_EQ(index_->suggest("King", Clock::now()), Words());
    // Time that others compute is not taken from a search.
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    EXPECT_EQ(index_->suggest("Kingg", deadline).at(0), "king");
}

TEST(Spelling, ComparesWithoutCaseInEveryScriptThatFolds) {
    const tests::TempDir directory;
    const auto model = model_of(directory / "model", {"ÉCOLE", "école", "ecole", "ΟΔΟΣ", "οδος",
                                                      "москва", "Москва", "МОСКВА", "É", "é", "e",
                                                      "\xFF\xFE"
                                                      "a",
                                                      "\xFF\xFD"
                                                      "a",
                                                      "ՀԱՅ"});
    const SpellingIndex index(model);
    const auto expect = [&](const std::string& word, const Words& words) {
        EXPECT_EQ(index.suggest(word, kNoDeadline), words) << word;
        EXPECT_EQ(plain_search(*model, word), words) << word;
    };
    expect("École", {"ÉCOLE", "école", "ecole"});
    expect("οδοσ", {"ΟΔΟΣ", "οδος"});
    expect("мОСКВА", {"москва", "Москва", "МОСКВА"});
    expect("Масква", {"москва", "Москва", "МОСКВА"});
    expect("E", {"e"});
    expect("é", {"É"});
    expect(
        "\xFF\xFE"
        "A",
        {"\xFF\xFE"
         "a",
         "\xFF\xFD"
         "a"});
    expect("հայ", {"ՀԱՅ"});
    expect("\xFE", {});
}

TEST(Spelling, KeepsTheFiveMostFrequentOfTheNearest) {
    const tests::TempDir directory;
    // By frequency the ones at distance 2 come first, by their keys the least frequent.
    const auto model = model_of(directory / "model", {"wordss", "swords", "wwoord", "zord", "yord",
                                                      "xord", "WORD", "vord", "aord", "bord"});
    const SpellingIndex index(model);
    EXPECT_EQ(index.suggest("word", kNoDeadline), Words({"WORD", "zord", "yord", "xord", "vord"}));
    EXPECT_EQ(index.suggest("wordsx", kNoDeadline), Words({"wordss", "swords", "WORD"}));
    EXPECT_EQ(index.suggest("wodr", kNoDeadline), Words({"WORD", "zord", "yord", "xord", "vord"}));
}

TEST(Spelling, FindsThemAmongManyNearWordsAndAmongLongOnes) {
    const tests::TempDir directory;
    std::mt19937_64 random(7);
    const auto word_of = [&](std::size_t longest) {
        std::string word;
        for (auto length = 1 + random() % longest; length > 0; --length)
            word += "abcABC"[random() % 6];
        return word;
    };
    // All words near each other, many of them in every class, blocks and groups that do not come
    // out even.
    Words words;
    for (int i = 0; i < 6000; ++i) words.push_back(word_of(7));
    for (int i = 0; i < 300; ++i)
        words.push_back(std::string(250 + random() % 10, 'a') + word_of(3));
    std::shuffle(words.begin(), words.end(), random);
    Words once;
    for (const std::string& word : words) {
        if (std::find(once.begin(), once.end(), word) == once.end()) once.push_back(word);
    }
    const auto model = model_of(directory / "model", once);
    const SpellingIndex index(model);
    for (int i = 0; i < 100; ++i) {
        const std::string word = word_of(9);
        EXPECT_EQ(index.suggest(word, kNoDeadline), plain_search(*model, word)) << word;
    }
    for (std::size_t length = 246; length < 266; ++length) {
        const std::string word = std::string(length, 'A') + "cb";
        EXPECT_EQ(index.suggest(word, kNoDeadline), plain_search(*model, word)) << length;
    }
}

TEST(Spelling, PassesOverWordsWhoseRanksAreDamaged) {
    const tests::TempDir directory;
    const auto whole = model_of(directory / "model", {"word", "ward", "wort"});
    const std::string path = directory / "model/values";
    std::string values = tests::read_file(path);
    // Row 0 is «ward», row 2 «wort»: a rank beyond the end, and one that is there already.
    const std::uint32_t ranks[] = {0xFFFFFFF0U, 0, 0};
    std::memcpy(values.data() + whole->header().find(format::kRanks)->offset, ranks, sizeof(ranks));
    std::filesystem::remove(path);
    tests::write_file(path, values);
    auto damaged = format::Model::open(directory / "model");
    ASSERT_TRUE(damaged) << damaged.error().message;
    const SpellingIndex index(std::make_shared<const format::Model>(*std::move(damaged)));
    EXPECT_EQ(index.suggest("worx", kNoDeadline), Words({"wort"}));
}

TEST(Spelling, TakesNineBytesAWord) {
    const tests::TempDir directory;
    const auto model = std::make_shared<const format::Model>(
        tests::make_model(directory / "model", tests::random_entries(1000, 2, 1)));
    EXPECT_LE(SpellingIndex(model).size_bytes(), 9U * 1000U + 100U);
}

}  // namespace
}  // namespace gloved::daemon
