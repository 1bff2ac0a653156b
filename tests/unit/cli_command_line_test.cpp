// What cli::CommandLine accepts, and what it says about the rest.
#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/nearest_name.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using cli::CommandLine;
using Arguments = std::vector<std::string>;

cli::Options options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("count", cli::value("N", "3"), "a number");
    add("needed", cli::value("N"), "a number");
    add("memory", cli::value("BYTES"), "a size");
    add("timeout", cli::value("S", "10"), "a time");
    add("name", cli::value("NAME"), "a name");
    add("op", cli::value("min|max|both", "min"), "a word");
    add("json", "a switch");
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

TEST(CommandLine, ListsFurtherOperands) {
    cli::Options with_more = options();
    with_more.more_operands = "more";
    const CommandLine line(with_more, {"first", "second", "--json", "third"});
    EXPECT_EQ(line.text("input"), "first");
    std::vector<std::string> more;
    line.each("more", [&](const std::string& operand) { more.push_back(operand); });
    EXPECT_EQ(more, (std::vector<std::string>{"second", "third"}));
    EXPECT_FALSE(CommandLine(with_more, {"first"}).given("more"));
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
    EXPECT_EQ(refusal({"a", "b"}), "too many arguments");
    EXPECT_EQ(refusal({"--cou", "3"}), "unrecognised option '--cou'; did you mean --count?");
    EXPECT_EQ(refusal({"--cou=3"}), "unrecognised option '--cou=3'; did you mean --count?");
    EXPECT_NE(refusal({"--count"}), "");
    EXPECT_NE(refusal({"--count", "1", "--count", "2"}), "");
}

TEST(NearestName, DiffersInTheFewestLetters) {
    const std::vector<std::string> names = {"query-format", "queries", "write-timeout",
                                            "max-bytes"};
    EXPECT_EQ(nearest_name("query", names), "queries");
    EXPECT_EQ(nearest_name("query-", names), "query-format");
    EXPECT_EQ(nearest_name("qurey-format", names), "query-format");
    EXPECT_EQ(nearest_name("write", names), "write-timeout");
    EXPECT_EQ(nearest_name("wrote", names), "");
    EXPECT_EQ(nearest_name("mix", names), "") << "of so few letters the last counts";
    EXPECT_EQ(nearest_name("", names), "");
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
    EXPECT_EQ(parsed({"--timeout", "0"}).seconds("timeout", 0).count(), 0);
    EXPECT_EQ(refusal({"--timeout", "0.0005"},
                      [](const CommandLine& line) { line.seconds("timeout", 0, 1e9); }),
              "--timeout takes seconds, 0 or from 0.001 to 1000000000, not \"0.0005\"");
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

TEST(CommandLine, AFileAddsOptionsAndItsFaultsAreToldWithTheirLines) {
    cli::Options described = options();
    cli::OptionAdder add(described.shown);
    add("config", cli::value("FILE"), "this file");
    add("model", cli::values("DIR"), "may be repeated");
    const TempDir dir;
    const std::string path = dir / "conf";
    const auto with_file = [&](const std::string& text, Arguments arguments) {
        write_file(path, text);
        arguments.insert(arguments.end(), {"--config", path});
        CommandLine line(described, arguments);
        line.add(CommandLine::of_file(described, line, "config"));
        return line;
    };
    const CommandLine line =
        with_file("\xEF\xBB\xBF# why\n\n count=5 # of 9\r\nname = a b\nmodel = x\nmodel = y=z",
                  {"--name", "c"});
    EXPECT_EQ(line.count("count", 1, 9), 5U);
    EXPECT_EQ(line.text("name"), "c");
    EXPECT_EQ(line.text("timeout"), "10");
    std::string models;
    line.each("model", [&](const std::string& model) { models += model + ";"; });
    EXPECT_EQ(models, "x;y=z;");

    const auto fault = [&](const std::string& text, const Arguments& arguments = {}) {
        try {
            const CommandLine made = with_file("# why\n" + text, arguments);
            (void)made.count("count", 1, 9);
            (void)made.number("timeout", 0, 100);
            made.each("model", [](const std::string& model) {
                if (model == "bad") throw cli::WrongUsage("it is bad");
            });
        } catch (const cli::WrongUsage& wrong) {
            const std::string message = wrong.what();
            return message.starts_with(path + ":") ? message.substr(path.size() + 1) : message;
        }
        return std::string();
    };
    EXPECT_EQ(fault("count = 0"), "2: --count takes a whole number from 1 to 9, not \"0\"");
    EXPECT_EQ(fault("count = 0", {"--count", "7"}), "");
    EXPECT_EQ(fault("timeout = 101"), "2: --timeout takes a number from 0 to 100, not \"101\"");
    EXPECT_EQ(fault("cuont = 1"), "2: unrecognised option 'cuont'; did you mean count?");
    EXPECT_EQ(fault("count = 1\n\ncount = 1"), "4: 'count' stands in line 2 already; remove one");
    EXPECT_EQ(fault("model = a\nmodel = bad"), "3: it is bad");
    EXPECT_EQ(fault("[part]"), "2: there are no sections here; remove the line");
    for (const char* text : {"count", "= 5"})
        EXPECT_NE(fault(text).find("'name = value'"), std::string::npos);
    for (const std::string name : {"config", "json"})
        EXPECT_EQ(fault(name + " = 1"), "2: '" + name + "' is allowed on the command line only");
    EXPECT_NE(fault(std::string("name = \0", 8)).find("NUL"), std::string::npos);
    for (const char* wrong : {"-", "/no/such/file", "/"}) {
        const CommandLine of_wrong(described, {"--config", wrong});
        EXPECT_THROW(CommandLine::of_file(described, of_wrong, "config"), cli::WrongUsage) << wrong;
    }
    EXPECT_THROW(with_file(std::string(2 << 20, '#'), {}), cli::WrongUsage);
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
