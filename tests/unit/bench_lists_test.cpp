// Lists of the command line.
#include "tools/bench/lists.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"

namespace gloved::tests {
namespace {

using Names = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kKnown = {"v0", "v1", "v3-16B", "v4"};
constexpr std::array<std::string_view, 1> kHostAlone = {"v0"};

/// The message with which `parse` refuses its text; empty if it does not.
template <class Parse>
std::string refusal(const Parse& parse) {
    try {
        parse();
    } catch (const cli::WrongUsage& wrong) {
        return wrong.what();
    }
    return "";
}

TEST(NameList, IsInTheOrderOfWhatIsKnownAndOnce) {
    constexpr std::array<std::string_view, 3> kNames = {"slow", "fast", "faster"};
    EXPECT_EQ(bench::parse_names("--ways", "faster,slow,faster", kNames),
              (Names{"slow", "faster"}));
    for (const char* text : {"", "fas", "slow,", "slow,,fast", "all"}) {
        const std::string refused = refusal([&] { bench::parse_names("--ways", text, kNames); });
        EXPECT_NE(refused.find("--ways"), std::string::npos) << text;
        EXPECT_NE(refused.find("slow, fast, faster"), std::string::npos) << text;
    }
}

TEST(RungList, AllIsTheWholeLadderInItsOrder) {
    const auto choice = bench::parse_rungs("all", kKnown, true);
    EXPECT_EQ(choice.run, (Names{"v0", "v1", "v3-16B", "v4"}));
    EXPECT_TRUE(choice.left_out.empty());
}

TEST(RungList, NamesComeInTheLaddersOrderAndOnce) {
    const auto choice = bench::parse_rungs("v4,v0,v3-16B,v0", kKnown, true);
    EXPECT_EQ(choice.run, (Names{"v0", "v3-16B", "v4"}));
    EXPECT_TRUE(choice.left_out.empty());
}

TEST(RungList, UnknownNamesAreRefusedWithThoseThatThereAre) {
    for (const char* text : {"v9", "", "v0,", ",v0", "v0,,v1", "V0", "v0 ", "v3", "ALL"}) {
        const std::string refused = refusal([&] { bench::parse_rungs(text, kKnown, true); });
        EXPECT_NE(refused.find("all, v0, v1, v3-16B, v4"), std::string::npos) << text << refused;
    }
}

TEST(RungList, BuildWithoutTheLadderLeavesRungsOutAndStillRefusesNonsense) {
    const auto some = bench::parse_rungs("v3,v0,v5,v3", kHostAlone, false);
    EXPECT_EQ(some.run, Names{"v0"});
    EXPECT_EQ(some.left_out, (Names{"v3", "v5"}));
    const auto all = bench::parse_rungs("all", kHostAlone, false);
    EXPECT_EQ(all.run, Names{"v0"});
    EXPECT_EQ(all.left_out, Names{"the others"});
    for (const char* text : {"", "v", "w1", "vx", "v0,king"}) {
        EXPECT_THROW(bench::parse_rungs(text, kHostAlone, false), cli::WrongUsage) << text;
    }
}

TEST(Batches, AreSortedOnceAndNeverWithoutSingleQueries) {
    EXPECT_EQ(bench::parse_batches("64,8,64"), (std::vector<std::size_t>{1, 8, 64}));
    for (const char* text : {"", "0", "-1", "8,", "8;9", "1048577", "99999999999999999999"}) {
        EXPECT_THROW(bench::parse_batches(text), cli::WrongUsage) << text;
    }
}

}  // namespace
}  // namespace gloved::tests
