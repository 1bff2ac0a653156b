// gloved-convert --export, run as a user would.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSampleRows = 10'002;
constexpr std::size_t kSampleDim = 100;

class ExportProgram : public testing::Test {
  protected:
    void SetUp() override {
        const std::string sample = source_path("data/glove.6B.100d.sample.txt.gz");
        ASSERT_EQ(run({program("gloved-convert"), sample, dir_ / "m"}).exit_code, 0);
    }
    Finished try_export(const std::string& format, const std::string& output) const {
        return run({program("gloved-convert"), "--export", format, dir_ / "m", output});
    }
    std::vector<std::string> listing() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(dir_.path()))
            names.push_back(entry.path());
        std::sort(names.begin(), names.end());
        return names;
    }

    const TempDir dir_;
};

TEST_F(ExportProgram, FormatsThatHoldWordsConvertAgainToTheSameBytes) {
    for (const std::string format : {"glove", "word2vec", "word2vec-bin"}) {
        const Finished exported = try_export(format, dir_ / format);
        ASSERT_EQ(exported.exit_code, 0) << exported.err;
        EXPECT_EQ(exported.out, "");
        EXPECT_NE(exported.err.find(dir_ / format + ": 10002 words of 100 numbers, "),
                  std::string::npos)
            << exported.err;
        const Finished again = run({program("gloved-convert"), dir_ / format, dir_ / "again"});
        ASSERT_EQ(again.exit_code, 0) << again.err;
        EXPECT_TRUE(read_file(dir_ / "again/keys") == read_file(dir_ / "m/keys")) << format;
        EXPECT_TRUE(read_file(dir_ / "again/values") == read_file(dir_ / "m/values")) << format;
        const Finished verified =
            run({program("gloved-verify"), "--source", dir_ / format, dir_ / "again"});
        EXPECT_EQ(verified.exit_code, 0) << verified.out;
    }
}

TEST_F(ExportProgram, ArrayHoldsTheNumbersAndAFileBesideItTheWords) {
    ASSERT_EQ(try_export("npy", dir_ / "array.npy").exit_code, 0);
    ASSERT_EQ(try_export("word2vec-bin", dir_ / "binary").exit_code, 0);
    const std::string array = read_file(dir_ / "array.npy");
    const std::string words = read_file(dir_ / "array.npy.words");
    constexpr std::size_t kRowBytes = kSampleDim * sizeof(float);
    ASSERT_EQ(array.size(), 128 + kSampleRows * kRowBytes);
    EXPECT_NE(array.substr(0, 128).find("'shape': (10002, 100)"), std::string::npos);
    // Row by row what word2vec's format holds, behind its header.
    std::string wanted = "10002 100\n";
    std::size_t at = 0;
    for (std::size_t row = 0; row < kSampleRows; ++row) {
        const std::size_t end = words.find('\n', at);
        ASSERT_NE(end, std::string::npos);
        wanted += words.substr(at, end - at) + " " +
                  array.substr(128 + row * kRowBytes, kRowBytes) + "\n";
        at = end + 1;
    }
    EXPECT_EQ(at, words.size());
    EXPECT_TRUE(wanted == read_file(dir_ / "binary"));
}

TEST_F(ExportProgram, WritesToStdoutForAPipe) {
    const Finished piped = try_export("glove", "-");
    ASSERT_EQ(piped.exit_code, 0) << piped.err;
    ASSERT_EQ(try_export("glove", dir_ / "out").exit_code, 0);
    EXPECT_TRUE(piped.out == read_file(dir_ / "out"));
    EXPECT_EQ(try_export("npy", "-").exit_code, 1);
}

TEST_F(ExportProgram, WaitsForTheReaderOfANonBlockingPipe) {
    const std::string unblock =
        "import os, sys; os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])";
    const Finished piped =
        run({"bash", "-c", "set -o pipefail; \"$@\" | (sleep 0.3; cat)", "bash", "python3", "-c",
             unblock, program("gloved-convert"), "--export", "glove", dir_ / "m", "-"});
    ASSERT_EQ(piped.exit_code, 0) << piped.err;
    EXPECT_TRUE(piped.out == try_export("glove", "-").out);
}

TEST_F(ExportProgram, ReplacesAFileAtOnce) {
    write_file(dir_ / "out", "old");
    // Who has the old file open keeps it whole: the new one took its name, not its bytes.
    fs::create_hard_link(dir_ / "out", dir_ / "kept");
    ASSERT_EQ(try_export("word2vec", dir_ / "out").exit_code, 0);
    EXPECT_EQ(read_file(dir_ / "kept"), "old");
    EXPECT_TRUE(read_file(dir_ / "out").starts_with("10002 100\nthe "));
    // A file size limit stands in for a full disk.
    const auto before = listing();
    const std::string text = read_file(dir_ / "out");
    const Finished full =
        run({"sh", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh",
             program("gloved-convert"), "--export", "glove", dir_ / "m", dir_ / "out"});
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_NE(full.err.find("File too large"), std::string::npos) << full.err;
    EXPECT_EQ(listing(), before);
    EXPECT_TRUE(read_file(dir_ / "out") == text);
}

TEST_F(ExportProgram, RefusesWhatIsNoFile) {
    fs::create_directory(dir_ / "folder");
    fs::create_symlink("nowhere", dir_ / "link");
    const auto before = listing();
    for (const auto& [output, fragment] :
         {std::pair<std::string, std::string>{
              dir_ / "folder", "folder: exists and is a directory; choose another file"},
          {dir_ / "folder/", "this path has no file name"},
          {dir_ / "link", "exists and is a symbolic link to \"nowhere\"; choose another file"},
          {dir_ / "m/values", "lies in a model's directory; choose another place"},
          {dir_ / "none/out", "none: cannot open"}}) {
        for (const std::string format : {"glove", "word2vec", "word2vec-bin", "npy"}) {
            const Finished finished = try_export(format, output);
            EXPECT_EQ(finished.exit_code, 1) << format << output;
            EXPECT_NE(finished.err.find(fragment), std::string::npos) << finished.err;
        }
    }
    EXPECT_EQ(listing(), before);
    const Finished no_model =
        run({program("gloved-convert"), "--export", "glove", dir_ / "folder", dir_ / "out"});
    EXPECT_EQ(no_model.exit_code, 1);
    EXPECT_NE(no_model.err.find(dir_ / "folder"), std::string::npos) << no_model.err;
    EXPECT_EQ(listing(), before);
}

}  // namespace
}  // namespace gloved::tests
