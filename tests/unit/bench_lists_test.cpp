// Lists of the command line.
#include "tools/bench/lists.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace gloved::tests {
namespace {

using Names = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kKnown = {"v0", "v1", "v3-16B", "v4"};
constexpr std::array<std::string_view, 1> kHostAlone = {"v0"};

TEST(NameList, IsInTheOrderOfWhatIsKnownAndOnce) {
    constexpr std::array<const char*, 3> kNames = {"slow", "fast", "faster"};
    const auto names = bench::parse_names("--ways", "faster,slow,faster", kNames);
    ASSERT_TRUE(names);
    EXPECT_EQ(*names, (Names{"slow", "faster"}));
    for (const char* text : {"", "fas", "slow,", "slow,,fast", "all"}) {
        const auto refused = bench::parse_names("--ways", text, kNames);
        ASSERT_FALSE(refused) << text;
        EXPECT_EQ(refused.error().code, ErrorCode::bad_request);
        EXPECT_NE(refused.error().message.find("--ways"), std::string::npos);
        EXPECT_NE(refused.error().message.find("slow, fast, faster"), std::string::npos);
    }
}

TEST(RungList, AllIsTheWholeLadderInItsOrder) {
    const auto choice = bench::parse_rungs("all", kKnown, true);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->run, (Names{"v0", "v1", "v3-16B", "v4"}));
    EXPECT_TRUE(choice->left_out.empty());
}

TEST(RungList, NamesComeInTheLaddersOrderAndOnce) {
    const auto choice = bench::parse_rungs("v4,v0,v3-16B,v0", kKnown, true);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->run, (Names{"v0", "v3-16B", "v4"}));
    EXPECT_TRUE(choice->left_out.empty());
}

TEST(RungList, UnknownNamesAreRefusedWithThoseThatThereAre) {
    for (const char* text : {"v9", "", "v0,", ",v0", "v0,,v1", "V0", "v0 ", "v3", "ALL"}) {
        const auto choice = bench::parse_rungs(text, kKnown, true);
        ASSERT_FALSE(choice) << text;
        EXPECT_EQ(choice.error().code, ErrorCode::bad_request) << text;
        EXPECT_NE(choice.error().message.find("all, v0, v1, v3-16B, v4"), std::string::npos)
            << choice.error().message;
    }
}

TEST(RungList, BuildWithoutTheLadderLeavesRungsOutAndStillRefusesNonsense) {
    const auto some = bench::parse_rungs("v3,v0,v5,v3", kHostAlone, false);
    ASSERT_TRUE(some);
    EXPECT_EQ(some->run, Names{"v0"});
    EXPECT_EQ(some->left_out, (Names{"v3", "v5"}));
    const auto all = bench::parse_rungs("all", kHostAlone, false);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->run, Names{"v0"});
    EXPECT_EQ(all->left_out, Names{"the others"});
    for (const char* text : {"", "v", "w1", "vx", "v0,king"}) {
        EXPECT_FALSE(bench::parse_rungs(text, kHostAlone, false)) << text;
    }
}

TEST(Batches, AreSortedOnceAndNeverWithoutSingleQueries) {
    const auto batches = bench::parse_batches("64,8,64");
    ASSERT_TRUE(batches);
    EXPECT_EQ(*batches, (std::vector<std::size_t>{1, 8, 64}));
    for (const char* text : {"", "0", "-1", "8,", "8;9", "1048577", "99999999999999999999"}) {
        EXPECT_FALSE(bench::parse_batches(text)) << text;
    }
}

TEST(Counts, AreWholeNumbersWithinTheirLimits) {
    EXPECT_EQ(*bench::parse_count("--x", "7", 7, 9), 7U);
    EXPECT_EQ(*bench::parse_count("--x", "9", 7, 9), 9U);
    for (const char* text : {"6", "10", "", " 8", "8 ", "+8", "8.0", "0x8"}) {
        EXPECT_FALSE(bench::parse_count("--x", text, 7, 9)) << text;
    }
}

}  // namespace
}  // namespace gloved::tests
