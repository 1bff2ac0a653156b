// Hubs, mutual neighbours and the comparison of two models, on lists made by hand.
#include "tools/neighbors/graph.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/format/publish.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using format::kNoRow;
using format::Row;
using Pairs = std::vector<std::pair<Row, Row>>;

/// A model of these words, in byte order, with these lists of two.
class Listed {
  public:
    Listed(const std::vector<std::string>& words, const std::vector<Row>& lists) {
        std::vector<Entry> entries;
        for (const std::string& word : words) entries.push_back({word, {1, 2}});
        model_.emplace(make_model(dir_ / "m", entries));
        auto staging = format::AddedFileStaging::create(dir_ / "m", format::kAddedNeighbors);
        auto writer = format::NeighborsWriter::create(
            *std::move(*staging).file(), dir_ / "m/neighbors",
            {words.size(), 2, model_->generation(), 2, {0, words.size()}, 0});
        EXPECT_TRUE(writer->append(lists));
        EXPECT_TRUE(writer->finish());
        EXPECT_TRUE(staging->publish());
        neighbors_.emplace(**format::Neighbors::open(*model_));
    }
    const format::Model& model() const { return *model_; }
    const format::Neighbors& neighbors() const { return *neighbors_; }

  private:
    TempDir dir_;
    std::optional<format::Model> model_;
    std::optional<format::Neighbors> neighbors_;
};

const std::vector<std::string> kWords = {"a", "b", "c", "d"};
const std::vector<Row> kLists = {1, 2, 0, 2, 0, 1, 1, kNoRow};

TEST(Graph, CountsOccurrences) {
    const Listed listed(kWords, kLists);
    EXPECT_EQ(neighbors::count_occurrences(listed.neighbors(), 2),
              (std::vector<std::uint32_t>{2, 3, 2, 0}));
    EXPECT_EQ(neighbors::count_occurrences(listed.neighbors(), 1),
              (std::vector<std::uint32_t>{2, 2, 0, 0}));
}

// 0, 0, 0 and 4: mean 1, variance 3, third moment (27 − 1 − 1 − 1) / 4 = 6, so 6 / 3√3.
TEST(Graph, DescribesTheirDistribution) {
    const std::vector<std::uint32_t> occurrences = {0, 4, 0, 0};
    const auto hubness = neighbors::describe_occurrences(occurrences);
    EXPECT_DOUBLE_EQ(hubness.mean, 1);
    EXPECT_DOUBLE_EQ(hubness.deviation, std::sqrt(3.0));
    EXPECT_NEAR(hubness.skewness, 2 / std::sqrt(3.0), 1e-12);
    EXPECT_EQ(hubness.orphans, 3U);
    EXPECT_DOUBLE_EQ(hubness.share_of_hubs, 1);
    std::vector<std::uint32_t> even(300, 2);
    even[7] = 8;
    const auto nearly = neighbors::describe_occurrences(even);
    EXPECT_EQ(nearly.orphans, 0U);
    EXPECT_DOUBLE_EQ(nearly.share_of_hubs, 12.0 / 606);
    EXPECT_EQ(neighbors::describe_occurrences(std::vector<std::uint32_t>(5, 3)).skewness, 0);
}

TEST(Graph, FindsMutualPairsOnce) {
    const Listed listed(kWords, kLists);
    EXPECT_EQ(neighbors::find_mutual(listed.neighbors(), 2), (Pairs{{0, 1}, {0, 2}, {1, 2}}));
    EXPECT_EQ(neighbors::find_mutual(listed.neighbors(), 1), (Pairs{{0, 1}}));
}

TEST(Graph, ComparesListsAsWords) {
    const Listed first(kWords, kLists);
    // a has c and x; b nothing; c has b and a; x, which the first model lacks, has a.
    const Listed second({"a", "b", "c", "x"}, {2, 3, kNoRow, kNoRow, 1, 0, 0, kNoRow});
    const auto agreements = neighbors::compare_lists(first.model(), first.neighbors(),
                                                     second.model(), second.neighbors(), 2);
    ASSERT_EQ(agreements.size(), 3U);
    const std::vector<std::vector<std::uint32_t>> wanted = {{0, 1, 2}, {1, 0, 2}, {2, 2, 2}};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ((std::vector<std::uint32_t>{agreements[i].row, agreements[i].shared,
                                              agreements[i].length}),
                  wanted[i]);
    }
}

}  // namespace
}  // namespace gloved::tests
