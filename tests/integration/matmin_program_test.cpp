// gloved-matmin as users run it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include "common/npy.hpp"
#include "tests/support/gzip.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/zip.hpp"

namespace gloved::tests {
namespace {

Finished matmin(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), program("gloved-matmin"));
    return run(arguments, input);
}

const std::string kText = "3\n***\n1 2\n3 4\n***\n4 3\n-2.5 1\n***\n0 -0\n7 1e3\n";
const std::string kMinimum = "0 -0\n-2.5 1\n";
const std::string kMaximum = "4 3\n7 1000\n";

TEST(Matmin, PrintsTheSameBytesHoweverItIsFed) {
    const TempDir dir;
    write_file(dir / "text", kText);
    write_file(dir / "text.gz", gzip(kText));
    write_file(dir / "text.zip", zip_archive({{"notes", "none"}, {"matrices", kText}}));
    EXPECT_EQ(matmin({"-"}, kText).out, kMinimum);
    EXPECT_EQ(matmin({"-"}, gzip(kText)).out, kMinimum);
    EXPECT_EQ(matmin({dir / "text"}).out, kMinimum);
    EXPECT_EQ(matmin({dir / "text.gz"}).out, kMinimum);
    EXPECT_EQ(matmin({"--member", "matrices", dir / "text.zip"}).out, kMinimum);
    const Finished no_archive = matmin({"--member", "matrices", dir / "text"});
    EXPECT_EQ(no_archive.exit_code, 1);
    EXPECT_EQ(no_archive.out, "");
    EXPECT_NE(no_archive.err.find(
                  "--member \"matrices\" is given, but this is not an archive; leave --member out"),
              std::string::npos)
        << no_archive.err;
    EXPECT_EQ(matmin({"--op", "max", dir / "text"}).out, kMaximum);
    EXPECT_EQ(matmin({"--op=minmax", dir / "text"}).out, kMinimum + "***\n" + kMaximum);
    for (const char* engine : {"auto", "cpu"}) {
        for (const char* threads : {"1", "3"}) {
            const Finished finished =
                matmin({"--engine", engine, "--threads", threads, "--op", "minmax", dir / "text"});
            EXPECT_EQ(finished.exit_code, 0);
            EXPECT_EQ(finished.err, "");
            EXPECT_EQ(finished.out, kMinimum + "***\n" + kMaximum);
        }
    }
}

TEST(Matmin, ReadsArraysAsTheirTypeOrAsAskedFor) {
    const TempDir dir;
    const float numbers[] = {0.1F, 2, 3, -0.0F, 5, 0};
    std::string bytes = npy::make_header("<f4", std::vector<std::size_t>{3, 1, 2});
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
    write_file(dir / "array.npy", bytes);
    EXPECT_EQ(matmin({dir / "array.npy"}).out, "0.1 -0\n");
    EXPECT_EQ(matmin({"-"}, bytes).out, "0.1 -0\n");
    EXPECT_EQ(matmin({"--type", "float64", dir / "array.npy"}).out, "0.10000000149011612 -0\n");
    const Finished refused = matmin({"--type", "int32", dir / "array.npy"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(
        refused.err,
        fmt::format(
            "gloved-matmin: {}: its numbers are float32, which --type int32 may not hold exactly; "
            "leave --type "
            "out, give --type float64, or numpy: numpy.save(path, array.astype(numpy.int32))\n",
            dir / "array.npy"));
    const Finished cut = matmin({"-"}, bytes.substr(0, bytes.size() - 1));
    EXPECT_EQ(cut.exit_code, 1);
    EXPECT_EQ(cut.err,
              "gloved-matmin: -: is cut short: 23 bytes of numbers are there, and its header says "
              "24; copy or write it "
              "again\n");
}

TEST(Matmin, NamesFileLineAndRemedyAndPrintsNothingElse) {
    const TempDir dir;
    const struct {
        std::vector<std::string> options;
        const char* text;
        const char* message;
    } cases[] = {
        {{}, "", "is empty; the first line holds the number of matrices, and they follow"},
        {{},
         "1 2\n",
         "line 1: \"1 2\" is not a count of matrices; put the number of matrices on a line of its "
         "own "
         "before them"},
        {{},
         "3\n1\n***\n2\n",
         "line 1: the count is 3, but 2 are there, up to line 4; correct the count, or complete "
         "the text"},
        {{},
         "1\n1\n***\n2\n",
         "line 4: matrix 2 begins here, but the count on line 1 is 1, and there are 2 in all; "
         "correct the count, or "
         "remove what is too much"},
        {{},
         "2\n1 2\n***\n1\n",
         "line 4: 1 number in this line, 2 in the first line of the first matrix; all have as "
         "many"},
        {{},
         "2\n1\n2\n",
         "line 1: the count is 2, but one matrix of 2 × 1 is there, up to line 3; put lines of *** "
         "between matrices"},
        {{"--engine", "cpu"}, "1\n1 x\n", "line 2: \"x\" is not a number; put one in its place"},
        {{"--type", "int32"},
         "1\n1.5\n",
         "line 2: \"1.5\" is not of type int32; give --type float64"},
        {{"--type", "float32"},
         "1\n1e39\n",
         "line 2: \"1e39\" is too large for float32; give --type float64"},
    };
    for (const auto& [options, text, message] : cases) {
        write_file(dir / "text", text);
        auto arguments = options;
        arguments.push_back(dir / "text");
        const Finished finished = matmin(arguments);
        EXPECT_EQ(finished.exit_code, 1) << text;
        EXPECT_EQ(finished.err, fmt::format("gloved-matmin: {}: {}\n", dir / "text", message));
        EXPECT_EQ(finished.out, "");
    }
    const Finished missing = matmin({dir / "nothing"});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("cannot open"), std::string::npos) << missing.err;
}

TEST(Matmin, TellsTimesOnRequest) {
    const Finished finished = matmin({"--times", "-"}, kText);
    EXPECT_EQ(finished.out, kMinimum);
    const std::regex table(
        "matrices   3 of 2 x 2, float64\n"
        "engine     cpu\n"
        "reading    +[0-9.]+ ms  \\([0-9]+ MB/s\\)\n"
        "transfer   +0\\.0 ms\n"
        "computing  +[0-9.]+ ms\n");
    EXPECT_TRUE(std::regex_match(finished.err, table)) << finished.err;
}

TEST(Matmin, NeverTakesAnotherEngineThanTheOneThatWasAskedFor) {
    const Finished finished = matmin({"--engine", "cuda", "-"}, kText);
    if (finished.exit_code == 0) {
        EXPECT_EQ(finished.out, kMinimum);
        return;
    }
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.out, "");
    EXPECT_TRUE(finished.err.starts_with("gloved-matmin: engine 'cuda' cannot run: "))
        << finished.err;
}

TEST(Matmin, TellsWhereTheOldEnginesAre) {
    for (const std::string engine : {"sequential", "original"}) {
        const Finished refused = matmin({"--engine", engine, "/there/is/none"});
        EXPECT_EQ(refused.exit_code, 2);
        EXPECT_EQ(refused.out, "");
        EXPECT_EQ(refused.err,
                  "gloved-matmin: --engine takes auto, cuda or cpu, not \"" + engine +
                      "\"; gloved-bench museum minimum has the kernels of that name; see "
                      "gloved-matmin --help\n");
    }
    EXPECT_EQ(matmin({"--engine", "gpu", "-"}).err,
              "gloved-matmin: --engine takes auto, cuda or cpu, not \"gpu\"; see gloved-matmin "
              "--help\n");
}

TEST(Matmin, ExplainsItselfWithAnExampleThatWorks) {
    const Finished help = matmin({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    std::smatch example;
    ASSERT_TRUE(std::regex_search(help.out, example, std::regex("(printf .*)gloved-matmin -\n")));
    EXPECT_EQ(run({"/bin/sh", "-c", example[1].str() + program("gloved-matmin") + " -"}).out,
              "1 2\n2 1\n");
    EXPECT_TRUE(matmin({"--version"}).out.starts_with("gloved-matmin "));
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                  {"--op", "mean", "-"},
                                                  {"--type", "int64", "-"},
                                                  {"--engine", "gpu", "-"},
                                                  {"--threads", "0", "-"},
                                                  {"--threads", "257", "-"},
                                                  {"a", "b"},
                                                  {"--member", "", "a"},
                                                  {"--nonsense", "-"}}) {
        const Finished finished = matmin(wrong);
        EXPECT_EQ(finished.exit_code, 2);
        EXPECT_TRUE(finished.err.starts_with("gloved-matmin: ") &&
                    finished.err.ends_with("; see gloved-matmin --help\n"))
            << finished.err;
    }
}

TEST(Matmin, EndsWhenItIsToldTo) {
    const TempDir dir;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
        Background waiting({program("gloved-matmin"), dir / "fifo"});
        FILE* const pipe = std::fopen((dir / "fifo").c_str(), "w");
        ASSERT_NE(pipe, nullptr);
        std::fputs("9\n***\n1 2\n", pipe);
        std::fflush(pipe);  // and then silence: the program waits in the middle of its input
        waiting.signal(number);
        const Finished finished = waiting.wait(std::chrono::seconds(10));
        std::fclose(pipe);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_EQ(waiting.output(), "gloved-matmin: interrupted\n");
        ::unlink((dir / "fifo").c_str());
    }
}

TEST(Matmin, SaysWhenTheResultCannotBeWritten) {
    const Finished finished =
        run({"/bin/sh", "-c", program("gloved-matmin") + " - > /dev/full"}, kText);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("cannot write the result: No space left on device"),
              std::string::npos)
        << finished.err;
}

}  // namespace
}  // namespace gloved::tests
