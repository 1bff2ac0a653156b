// gloved-verify --source: the model against the download it was made of, or not.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

class VerifySource : public testing::Test {
  protected:
    /// Converts `text` with further options.
    void convert(const std::string& text, std::vector<std::string> options = {}) {
        options.insert(options.begin(), program("gloved-convert"));
        options.insert(options.end(), {"-", dir_ / "m"});
        const Finished finished = run(options, text);
        ASSERT_EQ(finished.exit_code, 0) << finished.err;
    }
    Finished verify(const std::string& text) const {
        return run({program("gloved-verify"), "--source", "-", dir_ / "m"}, text);
    }
    void expect_found(const std::string& text, const std::string& fragment) const {
        const Finished finished = verify(text);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.out.find(fragment), std::string::npos) << finished.out;
    }

    const TempDir dir_;
};

TEST_F(VerifySource, RealSampleIsEqualBitForBit) {
    const std::string sample = source_path("data/glove.6B.100d.sample.txt.gz");
    ASSERT_EQ(run({program("gloved-convert"), sample, dir_ / "m"}).exit_code, 0);
    for (const std::string threads : {"1", "3"}) {
        const Finished finished =
            run({program("gloved-verify"), "--threads", threads, "--source", sample, dir_ / "m"});
        EXPECT_EQ(finished.exit_code, 0) << finished.out;
        EXPECT_NE(finished.out.find("ok      source keys: all 10002 words, from 10002 lines"),
                  std::string::npos)
            << finished.out;
        EXPECT_NE(finished.out.find("ok      source numbers: equal bit for bit"),
                  std::string::npos);
        EXPECT_NE(finished.out.find("ok      source ranks: in the order of the source"),
                  std::string::npos);
    }
}

TEST_F(VerifySource, HonoursTheRulesOfTheConversion) {
    const std::string text = "b 1 1\na 2 2\nb 3 3\nc 1 x\nd 4 4\ne 5 5\n";
    for (const std::string rule : {"first", "last"}) {
        convert(text, {"--duplicates", rule, "--on-error", "skip", "--dim", "2", "--limit", "5"});
        const Finished finished = verify(text);
        EXPECT_EQ(finished.exit_code, 0) << rule << finished.out;
    }
}

TEST_F(VerifySource, OfAnArrayTakesTheWordsThatTheReportNamesOrOthers) {
    convert("b 1 2\na 3 4\n");
    const std::string array = dir_ / "a.npy";
    const std::string words = array + ".words";
    ASSERT_EQ(run({program("gloved-convert"), "--export", "npy", dir_ / "m", array}).exit_code, 0);
    ASSERT_EQ(run({program("gloved-convert"), "--words", words, array, dir_ / "m"}).exit_code, 0);
    const auto verify_array = [&](std::vector<std::string> options) {
        options.insert(options.begin(), program("gloved-verify"));
        options.insert(options.end(), {"--source", array, dir_ / "m"});
        return run(options);
    };
    EXPECT_EQ(verify_array({}).exit_code, 0);
    std::filesystem::rename(words, dir_ / "moved");
    const Finished missing = verify_array({});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.out.find("; --words FILE names the file with its words"), std::string::npos)
        << missing.out;
    EXPECT_EQ(verify_array({"--words", dir_ / "moved"}).exit_code, 0);
    write_file(dir_ / "moved", "a\nb\n");
    const Finished other = verify_array({"--words", dir_ / "moved"});
    EXPECT_NE(other.out.find("source numbers: 2 rows differ; the first: row 0"), std::string::npos)
        << other.out;
}

TEST_F(VerifySource, DifferencesAreNamed) {
    const std::string text = "the 0.1 0.2\nof 0.3 0.4\nand 0.5 0.6\n";
    convert(text);
    EXPECT_EQ(verify(text).exit_code, 0);
    // One unit in the last place.
    expect_found("the 0.1 0.2\nof 0.3 0.40000004\nand 0.5 0.6\n",
                 "FAILED  source numbers: 1 rows differ; the first: row 1 (\"of\"), line 2");
    expect_found("the 0.1 0.2\nof 0.3 0.4\n", "FAILED  source keys: row 0 (\"and\") is not in -");
    expect_found(
        text + "new 0.1 0.2\n",
        "FAILED  source keys: 1 lines' words are not in the model; the first: \"new\" on line 4");
    expect_found("of 0.3 0.4\nthe 0.1 0.2\nand 0.5 0.6\n",
                 "FAILED  source ranks: row 2 (\"the\") has rank 0 and line 2");
    expect_found("the 0.1 0.2 0.3\n", "FAILED  source: -: 3 numbers a word, but the model has 2");
    expect_found("", "FAILED  source: -: the source is empty");
    // −0 and 0 are equal as numbers and differ as bits.
    convert("a 0 1\n");
    expect_found("a -0 1\n", "FAILED  source numbers");
}

}  // namespace
}  // namespace gloved::tests
