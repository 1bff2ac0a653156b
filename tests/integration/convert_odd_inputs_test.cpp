// Targets, pipes and command lines that are refused. What becomes of odd files: odd_files_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

TEST(OddTargets, AreRefused) {
    const TempDir dir;
    write_file(dir / "in", "a 1 2\n");
    write_file(dir / "file", "mine");
    fs::create_directory(dir / "full");
    write_file(dir / "full/thesis.tex", "mine");
    fs::create_directory_symlink("full", dir / "link");
    fs::create_directory_symlink("no\nsuch", dir / "dangling");
    for (const auto& [target, fragment] : std::vector<std::pair<std::string, std::string>>{
             {dir / "file", "exists and is not a directory"},
             {dir / "full", "holds \"thesis.tex\", which gloved did not make"},
             {dir / "link", "is a symbolic link to \"full\"; name that directory itself"},
             {dir / "dangling", "is a symbolic link to \"no\\x0Asuch\""},
             {dir / "none/m", "cannot open the directory"},
             {"/", "a name of its own"}}) {
        const Finished finished = run({program("gloved-convert"), dir / "in", target});
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.err.find(fragment), std::string::npos) << finished.err;
    }
    EXPECT_EQ(read_file(dir / "file"), "mine");
    EXPECT_EQ(read_file(dir / "full/thesis.tex"), "mine");
    const Finished missing = run({program("gloved-convert"), dir / "none.txt", dir / "m"});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("none.txt: cannot open: No such file"), std::string::npos)
        << missing.err;
}

TEST(Usage, IsExitStatusTwo) {
    for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
             {},
             {"in"},
             {"in", "", "m"},
             {"-", "in", "-", "m"},
             {"--nonsense", "in", "m"},
             {"--dim", "0", "in", "m"},
             {"--dim", "-1", "in", "m"},
             {"--dim", "4097", "in", "m"},
             {"--dim", "x", "in", "m"},
             {"--limit", "0", "in", "m"},
             {"--threads", "0", "in", "m"},
             {"--threads", "257", "in", "m"},
             {"--format", "word", "in", "m"},
             {"--member", "", "in", "m"},
             {"--memory", "255M", "in", "m"},
             {"--memory", "1", "in", "m"},
             {"--memory", "4T", "in", "m"},
             {"--memory", "-1G", "in", "m"},
             {"--memory", "99999999999G", "in", "m"},
             {"--export", "text", "m", "out"},
             {"--export", "npy", "m"},
             {"--export", "npy", "m", "out", "more"},
             {"--planes-only", "m", "in", "more"},
             {"--export", "npy", "--dim", "3", "m", "out"},
             {"--export", "npy", "--format", "glove", "m", "out"},
             {"--export", "npy", "--member", "x", "m", "out"},
             {"--export", "npy", "--words", "x", "m", "out"},
             {"--words", "", "in", "m"},
             {"--words", "-", "-", "m"},
             {"--tensor", "", "in", "m"},
             {"--export", "npy", "--limit", "3", "m", "out"},
             {"--export", "npy", "--duplicates", "last", "m", "out"},
             {"--export", "npy", "--on-error", "skip", "m", "out"},
             {"--export", "npy", "--threads", "2", "m", "out"},
             {"--export", "npy", "--memory", "1G", "m", "out"},
             {"--duplicates", "none", "in", "m"},
             {"--on-error", "panic", "in", "m"},
             {"--dup", "last", "in", "m"}}) {
        std::vector<std::string> arguments = {program("gloved-convert")};
        arguments.insert(arguments.end(), wrong.begin(), wrong.end());
        const Finished finished = run(arguments);
        EXPECT_EQ(finished.exit_code, 2) << testing::PrintToString(wrong) << finished.err;
        EXPECT_NE(finished.err.find("; see gloved-convert --help"), std::string::npos)
            << finished.err;
    }
    EXPECT_EQ(run({program("gloved-verify")}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "--quick", "--source", "x", "m"}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "--words", "x", "m"}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "--help"}).exit_code, 0);
    EXPECT_EQ(run({program("gloved-verify"), "--version"}).exit_code, 0);
}

}  // namespace
}  // namespace gloved::tests
