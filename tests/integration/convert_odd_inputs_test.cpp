// Sources and command lines that are refused: with a message that names the place and the remedy, and nothing left
// behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gzip.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/word2vec.hpp"
#include "tests/support/zip.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

struct Odd {
    const char* name;
    std::string content;
    std::vector<std::string> options;
    std::vector<std::string> fragments;
};

std::ostream& operator<<(std::ostream& out, const Odd& odd) { return out << odd.name; }

/// Whole but for one bit, which only the checksum at its end tells.
std::string damaged_zip() {
    std::string archive = zip_archive({{"a.txt", "a 0.1 0.2\nb 0.1 0.2\n", ZIP_CM_STORE}});
    archive[archive.find("0.2")] ^= 1;
    return archive;
}

const std::vector<Odd>& odd_inputs() {
    static const std::vector<Odd> inputs = {
        {"empty", "", {}, {"the source is empty"}},
        {"empty_gzip", gzip(""), {}, {"the source is empty"}},
        {"html", "<!DOCTYPE html>\n<html><body>404</body></html>\n", {}, {"HTML", "fetch the download again"}},
        {"html_after_blanks", "\n\n  <HTML>\n", {}, {"HTML"}},
        {"html_in_gzip", gzip("<html>\n"), {}, {"HTML"}},
        {"truncated_zip",
         "PK\x03\x04rest of it",
         {},
         {"begins like a zip archive", "the download is not complete", "fetch"}},
        {"html_in_zip", zip_archive({{"a.txt", "<html>\n"}}), {}, {"HTML"}},
        {"gzip_in_zip", zip_archive({{"a.gz", gzip("a 1 2\n")}}), {}, {"gzip inside a zip archive", "unzip -p"}},
        {"zip_in_gzip", gzip(zip_archive({{"a.txt", "a 1 2\n"}})), {}, {"a zip archive inside gzip"}},
        {"zip_of_two",
         zip_archive({{"a.txt", "a 1 2\n"}, {"b.txt", "b 1 2 3\n"}}),
         {},
         {"holds 2 files", "--member NAME", "\"a.txt\" (6 bytes), \"b.txt\" (8 bytes)"}},
        {"zip_without_that_member",
         zip_archive({{"a.txt", "a 1 2\n"}}),
         {"--member", "b.txt"},
         {"holds no member \"b.txt\"; it holds \"a.txt\""}},
        {"member_of_no_zip", "a 1 2\n", {"--member", "b.txt"}, {"--member \"b.txt\" is given, but this is no zip"}},
        {"encrypted_zip",
         zip_archive({{"a.txt", "a 1 2\n", ZIP_CM_DEFLATE, "secret"}}),
         {},
         {"\"a.txt\" is encrypted"}},
        {"damaged_zip", damaged_zip(), {}, {"\"a.txt\" of the zip archive is damaged", "CRC", "fetch"}},
        {"gzip_twice", gzip(gzip("a 1 2\n")), {}, {"gzip inside gzip"}},
        {"xz",
         "\xFD"
         "7zXZ\0\0"s,
         {},
         {"xz data"}},
        {"lfs", "version https://git-lfs.github.com/spec/v1\n", {}, {"Git LFS pointer"}},
        {"utf16",
         "\xFF\xFE"
         "a\0 \0"s,
         {},
         {"UTF-16"}},
        {"binary", "a\0b\0c\n"s, {}, {"binary data"}},
        {"truncated_gzip", gzip("a 1 2\nb 3 4\n").substr(0, 20), {}, {"gzip data ends too early", "fetch"}},
        {"header_promises_more",
         "3 3\na 1 2 3\nb 1 2 3\n",
         {},
         {"the header promises 3 words, 2 are there", "the download is not complete, fetch it again"}},
        {"header_promises_less", "1 3\na 1 2 3\nb 1 2 3\n", {}, {"promises 1 words, 2 are there"}},
        {"header_against_dim",
         "2 3\na 1 2 3\nb 1 2 3\n",
         {"--dim", "4"},
         {"line 1 (byte 0): the header \"2 3\" gives 3 numbers a word, --dim gives 4"}},
        {"no_header",
         "a 1 2 3\n",
         {"--format", "word2vec"},
         {"line 1 (byte 0): \"a 1 2 3\" is no header", "--format glove"}},
        {"cut_binary", "2 3\n" + record("a", {1, 2, 3}) + "b xx", {}, {"word 2 (byte 18): the file ends within"}},
        {"binary_with_a_tail",
         "1 3\n" + record("a", {1, 2, 3}) + "\nb",
         {},
         {"other data follows the last of the 1 words", "at byte 19"}},
        {"binary_nan",
         "1 2\n" + record("a", {1, std::numeric_limits<float>::quiet_NaN()}),
         {},
         {"word 1 (byte 4): number 2 of 2 is nan, which is not finite"}},
        {"binary_duplicate",
         "2 1\n" + record("a", {0.1F}) + record("a", {0.1F}),
         {"--format", "word2vec-bin", "--duplicates", "error"},
         {"the word \"a\" stands on"}},
        {"other_norm",
         "a 5 3 4\nb 5 3 5\n",
         {"--format", "norms"},
         {"line 2 (byte 8): the norm is given as \"5\"", "--format glove"}},
        {"word_that_ends_in_a_number",
         "a 0.1 0.2\nversion 2.0 0.1 0.2\n",
         {"--dim", "2"},
         {"line 2 (byte 10)", "if it is only this word that ends in a number, --on-error skip leaves it out"}},
        {"line_too_long", "a 1 2\n" + std::string((16 << 20) + 1, 'x'), {}, {"line 2 (byte 6)", "longer than 16 MiB"}},
        {"only_a_byte_order_mark", "\xEF\xBB\xBF", {}, {"the source is empty"}},
        {"header_taken_as_a_word",
         "2 3\na 1 2 3\nb 1 2 3\n",
         {"--format", "glove"},
         {"line 1 (byte 0): 2 fields found"}},
        {"words_only", "apple\npear\n", {}, {"line 1", "no numbers", "\"apple\""}},
        {"tabs", "a\t1\t2\nb\t1\t2\n", {}, {"TABs", "tr '\\t' ' '"}},
        {"narrow",
         "a 1 2 3\nb 1 2\nc 1 2 3\n",
         {},
         {"line 2 (byte 8): 3 fields found, a word and 3 numbers expected", "\"b\"", "--on-error skip"}},
        {"wide",
         "a 0.1 0.2\nb 0.1 0.2\nc 0.1 0.2 0.3\n",
         {},
         {"line 3 (byte 20): 4 fields found", "\"0.1\" stands before the last 2"}},
        {"other_dim", "a 0.1 0.2 0.3\n", {"--dim", "2"}, {"4 fields found, a word and 2 numbers expected", "--dim"}},
        {"dim_too_large",
         "a 0.1 0.2 0.3\n",
         {"--dim", "4"},
         {"line 1 (byte 0): 4 fields found, a word and 4 numbers expected"}},
        {"nan",
         "a 1 2\nb nan 2\n",
         {},
         {"line 2 (byte 6): field 2 of 3 is \"nan\", which is not finite (the word is \"b\")"}},
        {"infinity", "a 1 2\nb 1 -inf\n", {}, {"field 3 of 3 is \"-inf\", which is not finite"}},
        {"overflow", "a 1 2\nb 1 3.5e38\n", {}, {"\"3.5e38\", which is too large for float32"}},
        {"garbage", "a 1 2\nb 1 2x\n", {}, {"\"2x\", which is not a number"}},
        {"control_bytes", "a 1 2\nb 1 \x1B[31m\n", {}, {"\"\\x1B[31m\""}},
        {"two_blanks", "a 1 2\nb 1  2\n", {}, {"two blanks in a row"}},
        {"blank_line", "a 1 2\n\nb 1 2\n", {}, {"line 2 (byte 6): the line is blank"}},
        {"empty_key", "a 1 2\n 1 2\n", {}, {"line 2 (byte 6): the word before the numbers is empty"}},
        {"nul_in_key",
         "a 1 2\n" + std::string(600, 'x') + " 1 2\nb\0c 1 2\n"s,
         {},
         {"line 3 (byte 611)", "holds a NUL byte", "\"b\\x00c\""}},
        {"tab_in_key", "a 1 2\nb\tc 1 2\n", {}, {"holds a TAB"}},
        {"cr_in_key", "a 1 2\nb\rc 1 2\n", {}, {"holds a CR"}},
        {"cut_line", "a 1 2\nb 1", {}, {"line 2 (byte 6): the file ends within this line", "fetch it again"}},
        {"cut_after_sign", "a 1 2\nb 1 -", {}, {"\"-\", which is not a number"}},
        {"duplicate",
         "a 1 2\nb 1 2\na 1 2\n",
         {"--duplicates", "error"},
         {"line 3: the word \"a\" stands on line 1 already"}},
        {"nothing_usable", "a x y\nb x y\n", {"--on-error", "skip", "--dim", "2"}, {"none of 2 lines could be taken"}},
        {"too_many_numbers",
         "a" +
             [] {
                 std::string s;
                 for (int i = 0; i < 4097; ++i) s += " 1";
                 return s;
             }() +
             "\n",
         {},
         {"no numbers", "line 1"}},
    };
    return inputs;
}

class OddInput : public testing::TestWithParam<Odd> {};

TEST_P(OddInput, IsRefusedAndExplained) {
    const Odd& odd = GetParam();
    const TempDir dir;
    write_file(dir / "download", odd.content);
    std::vector<std::string> arguments = {program("gloved-convert"), "--threads", "2"};
    arguments.insert(arguments.end(), odd.options.begin(), odd.options.end());
    arguments.push_back(dir / "download");
    arguments.push_back(dir / "m");
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_NE(finished.err.find(dir / "download"), std::string::npos) << finished.err;
    for (const std::string& fragment : odd.fragments) {
        EXPECT_NE(finished.err.find(fragment), std::string::npos) << "no «" << fragment << "» in: " << finished.err;
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1)
        << "something was left behind";
}

INSTANTIATE_TEST_SUITE_P(Convert, OddInput, testing::ValuesIn(odd_inputs()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(OddTargets, AreRefused) {
    const TempDir dir;
    write_file(dir / "in", "a 1 2\n");
    write_file(dir / "file", "mine");
    fs::create_directory(dir / "full");
    write_file(dir / "full/thesis.tex", "mine");
    for (const auto& [target, fragment] :
         std::vector<std::pair<std::string, std::string>>{{dir / "file", "exists and is not a directory"},
                                                          {dir / "full", "'thesis.tex', which is no part of a model"},
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
    EXPECT_NE(missing.err.find("none.txt: cannot open: No such file"), std::string::npos) << missing.err;
}

TEST(OddInputs, AZipArchiveOnAPipeIsRefused) {
    const TempDir dir;
    write_file(dir / "in.zip", zip_archive({{"a.txt", "a 1 2\n"}}));
    const auto through = [&](const std::string& script) {
        return run({"sh", "-c", script, "sh", program("gloved-convert"), dir / "in.zip", dir / "m"});
    };
    const Finished piped = through("cat \"$2\" | \"$1\" - \"$3\"");
    EXPECT_EQ(piped.exit_code, 1);
    EXPECT_NE(piped.err.find("cannot be read from a pipe"), std::string::npos) << piped.err;
    EXPECT_NE(piped.err.find("save it to a file"), std::string::npos) << piped.err;
    // A file as stdin can be sought in.
    EXPECT_EQ(through("\"$1\" - \"$3\" <\"$2\"").exit_code, 0);
}

TEST(Usage, IsExitStatusTwo) {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{},
                                               {"in"},
                                               {"in", "m", "more"},
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
                                               {"--export", "npy", "--dim", "3", "m", "out"},
                                               {"--export", "npy", "--format", "glove", "m", "out"},
                                               {"--export", "npy", "--member", "x", "m", "out"},
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
        EXPECT_NE(finished.err.find("--help explains"), std::string::npos) << finished.err;
    }
    EXPECT_EQ(run({program("gloved-verify")}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "--quick", "--source", "x", "m"}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "--help"}).exit_code, 0);
    EXPECT_EQ(run({program("gloved-verify"), "--version"}).exit_code, 0);
}

}  // namespace
}  // namespace gloved::tests
