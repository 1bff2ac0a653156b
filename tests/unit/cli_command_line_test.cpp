// What cli::CommandLine accepts, and what it says about the rest.
#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gloved::tests {
namespace {

using cli::CommandLine;
using Arguments = std::vector<std::string>;

cli::Options options() {
    cli::Options options;
    cli::OptionAdder{options.shown}                     //
    ("count", cli::value("N", "3"), "a number")         //
        ("needed", cli::value("N"), "a number")         //
        ("memory", cli::value("BYTES"), "a size")       //
        ("timeout", cli::value("S", "10"), "a time")    //
        ("name", cli::value("NAME"), "a name")          //
        ("op", cli::value("min|max", "min"), "a word")  //
        ("json", "a switch");
    options.operands = {"input"};
    return options;
}

CommandLine parsed(const Arguments& arguments) { return {options(), arguments}; }

/// The message with which `use` refuses the arguments; empty if it does not.
std::string refusal(
    const Arguments& arguments,
    const std::function<void(const CommandLine&)>& use = [](const auto&) {}) {
    try {
        use(parsed(arguments));
    } catch (const cli::WrongUsage& wrong) {
        return wrong.what();
    }
    return "";
}

TEST(CommandLine, KnowsWhatIsGivenAndWhatIsDefault) {
    const CommandLine line = parsed({"--count=5", "--json", "file"});
    EXPECT_TRUE(line.given("count"));
    EXPECT_TRUE(line.given("json"));
    EXPECT_FALSE(line.given("timeout"));
    EXPECT_EQ(line.text("timeout"), "10");
    EXPECT_EQ(line.text("name"), "");
    EXPECT_EQ(line.text("input"), "file");
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
    EXPECT_EQ(refusal({"a", "b"}), "too many arguments");
    EXPECT_EQ(refusal({"--cou", "3"}), "unrecognised option '--cou'; did you mean --count?");
    EXPECT_NE(refusal({"--count"}), "");
    EXPECT_NE(refusal({"--count", "1", "--count", "2"}), "");
}

TEST(CommandLine, CountsAreWholeNumbersWithinTheirLimits) {
    EXPECT_EQ(parsed({}).count("count", 1, 9), 3U);
    EXPECT_EQ(parsed({"--count", "9"}).count("count", 1, 9), 9U);
    EXPECT_EQ(parsed({}).count("needed", 1, 9, 0), 0U);
    const auto use = [](const CommandLine& line) { line.count("count", 7, 9); };
    EXPECT_EQ(refusal({"--count", "6"}, use),
              "--count takes a whole number from 7 to 9, not \"6\"");
    for (const char* text : {"10", "", " 8", "8 ", "+8", "-8", "8.0", "0x8"})
        EXPECT_NE(refusal({"--count", text}, use), "") << text;
    EXPECT_EQ(refusal({}, [](const CommandLine& line) { line.count("needed", 1, 9); }),
              "--needed is needed");
}

TEST(CommandLine, SizesTimesAndNamesHaveLimitsToo) {
    constexpr std::uint64_t kMegabyte = 1 << 20;
    const auto bytes = [](const CommandLine& line) { line.bytes("memory", kMegabyte, 0); };
    EXPECT_EQ(parsed({"--memory", "2M"}).bytes("memory", kMegabyte, 0), 2 * kMegabyte);
    EXPECT_EQ(parsed({}).bytes("memory", kMegabyte, 7), 7U);
    for (const char* text : {"1", "2T", "-1M", "", "99999999999G"})
        EXPECT_NE(refusal({"--memory", text}, bytes).find("--memory takes bytes, 1M or more"),
                  std::string::npos)
            << text;
    const auto seconds = [](const CommandLine& line) { line.seconds("timeout", 0.5); };
    EXPECT_EQ(parsed({"--timeout", "1.5"}).seconds("timeout", 0).count(), 1500);
    for (const char* text : {"0.4", "nan", "1e99", "", "-1"})
        EXPECT_NE(refusal({"--timeout", text}, seconds).find("seconds from 0.5 to 86400"),
                  std::string::npos)
            << text;
    EXPECT_EQ(
        refusal({"--name", ""}, [](const CommandLine& line) { line.nonempty("name", "a name"); }),
        "--name takes a name");
}

TEST(CommandLine, ChoicesAreNamedInTheError) {
    const auto op = [](const CommandLine& line) {
        return line.choice<int>("op", {{"min", 1}, {"max", 2}, {"both", 3}});
    };
    EXPECT_EQ(op(parsed({})), 1);
    EXPECT_EQ(op(parsed({"--op", "both"})), 3);
    EXPECT_EQ(refusal({"--op", "mean"}, op), "--op takes min, max or both, not \"mean\"");
}

TEST(CommandLine, OptionsMayNeedOrExcludeEachOther) {
    const auto needs = [](const CommandLine& line) { line.needs("json", {"name", "memory"}); };
    EXPECT_EQ(refusal({"--memory", "1"}, needs), "--memory needs --json");
    EXPECT_EQ(refusal({"--memory", "1", "--json"}, needs), "");
    const auto excludes = [](const CommandLine& line) { line.excludes("json", {"name"}); };
    EXPECT_EQ(refusal({"--name", "x", "--json"}, excludes), "--name cannot be used with --json");
    EXPECT_EQ(refusal({"--name", "x"}, excludes), "");
}

TEST(CommandLine, AProgramEndsWithTheStatusOfItsRunOrWithTwo) {
    constexpr cli::Program kProgram = {"program part", "head\n", "tail\n"};
    const auto run = [&](const Arguments& arguments) {
        return cli::run(kProgram, options(), arguments, [](const CommandLine& line) {
            if (line.given("json")) throw cli::WrongUsage("no");
            return 7;
        });
    };
    EXPECT_EQ(run({}), 7);
    testing::internal::CaptureStdout();
    EXPECT_EQ(run({"--help"}), cli::kDone);
    EXPECT_NE(testing::internal::GetCapturedStdout().find("  a time (default: 10)\n"),
              std::string::npos);
    EXPECT_EQ(run({"--version"}), cli::kDone);
    EXPECT_EQ(run({"--json"}), cli::kUsage);
    EXPECT_EQ(run({"--what"}), cli::kUsage);
}

}  // namespace
}  // namespace gloved::tests
