// Lists of the command line.
#include "tools/bench/settings.hpp"

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

TEST(Batches, AreSortedOnceAndNeverWithoutSingleQueries) {
    EXPECT_EQ(bench::parse_batches("64,8,64"), (std::vector<std::size_t>{1, 8, 64}));
    for (const char* text : {"", "0", "-1", "8,", "8;9", "1048577", "99999999999999999999"}) {
        EXPECT_THROW(bench::parse_batches(text), cli::WrongUsage) << text;
    }
}

}  // namespace
}  // namespace gloved::tests
