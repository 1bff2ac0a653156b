// Several inputs in one conversion, and gloved-verify with as many sources.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "tests/support/gzip.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/word2vec.hpp"
#include "tests/support/zip.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

class SeveralInputs : public testing::Test {
  protected:
    SeveralInputs() {
        write_file(dir_ / "glove.txt", "the 1 2\nof 3 4\nking 5 6\n");
        write_file(dir_ / "own.txt", "gloved 7 8\nof 9 10\n");
    }

    /// Runs a program with these arguments; a name of a file here, or of a model, follows a «@».
    Finished run_here(const std::string& name, const std::vector<std::string>& arguments,
                      const std::string& input = {}) const {
        std::vector<std::string> words = {program(name)};
        for (const std::string& argument : arguments) {
            words.push_back(argument.starts_with('@') ? dir_ / argument.substr(1) : argument);
        }
        return run(words, input);
    }
    Finished convert(const std::vector<std::string>& arguments,
                     const std::string& input = {}) const {
        return run_here("gloved-convert", arguments, input);
    }
    /// Converts, and expects success.
    std::string converted(const std::vector<std::string>& arguments,
                          const std::string& input = {}) const {
        const Finished finished = convert(arguments, input);
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
        return finished.err;
    }
    /// Converts, and expects that this is refused and leaves the model m as it is.
    void expect_refused(const std::vector<std::string>& arguments, const std::string& fragment,
                        const std::string& input = {}) const {
        const Finished finished = convert(arguments, input);
        EXPECT_EQ(finished.exit_code, 1) << finished.err;
        EXPECT_NE(finished.err.find(fragment), std::string::npos) << finished.err;
        if (fs::exists(dir_ / "m")) {
            EXPECT_EQ(read_file(dir_ / "m/keys"), "old\n");
        }
        for (const auto& entry : fs::directory_iterator(dir_.path())) {
            EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
        }
    }
    void expect_sound(const std::vector<std::string>& arguments,
                      const std::string& input = {}) const {
        const Finished finished = run_here("gloved-verify", arguments, input);
        EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
        EXPECT_NE(finished.out.find("ok      source ranks: in the order"), std::string::npos);
    }
    void expect_unsound(const std::vector<std::string>& arguments, const std::string& fragment,
                        const std::string& input = {}) const {
        const Finished finished = run_here("gloved-verify", arguments, input);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.out.find(fragment), std::string::npos) << finished.out;
    }
    void expect_same(const std::string& model, const std::string& other,
                     const std::string& what) const {
        for (const std::string file : {"/keys", "/values", "/planes"})
            EXPECT_TRUE(read_file(dir_ / (model + file)) == read_file(dir_ / (other + file)))
                << what << file;
    }
    nlohmann::json report(const std::string& model) const {
        return nlohmann::json::parse(read_file(dir_ / (model + "/report.json")));
    }

    const TempDir dir_;
};

/// Lines of three numbers, of words that begin to repeat after `words` lines.
std::string lines(int count, int words, double number) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        const int word = i * 7919 % words;
        text += fmt::format("w{} {} {} {}\n", word, 0.25 * word, number + i, -number);
    }
    return text;
}

TEST_F(SeveralInputs, GiveTheModelOfAllTextInOneFile) {
    const std::vector<std::pair<int, int>> sizes = {{1, 400}, {900, 7}, {4000, 5000}};
    const std::vector<std::pair<std::string, std::string>> ways = {
        {"1", "90"}, {"3", "90"}, {"3", "1000"}, {"2", "4194304"}};
    for (const auto& [first, second] : sizes) {
        const std::string a = lines(first, 3000, 1);
        const std::string b = lines(second, 3500, 500);
        fs::remove(dir_ / "a");
        fs::remove(dir_ / "b");
        write_file(dir_ / "a", a);
        write_file(dir_ / "b", b);
        for (const std::string rule : {"first", "last"}) {
            converted({"--duplicates", rule, "-", "@one"}, a + b);
            for (const auto& [threads, bytes] : ways) {
                converted({"--duplicates", rule, "--threads", threads, "--batch-bytes", bytes,
                           "--spool-memory", bytes, "@a", "@b", "@two"});
                const std::string what = fmt::format("{} + {} lines, {}, {} threads, {} bytes",
                                                     first, second, rule, threads, bytes);
                expect_same("two", "one", what);
                EXPECT_EQ(report("two")["duplicates"]["count"],
                          report("one")["duplicates"]["count"])
                    << what;
            }
            expect_sound({"--source", "@a", "--source", "@b", "@two"});
        }
    }
}

TEST_F(SeveralInputs, HaveEachItsOwnFormat) {
    write_file(dir_ / "packed", gzip("\xEF\xBB\xBF"
                                     "a 1 2\r\nb 3 4"));
    write_file(dir_ / "archive", zip_archive({{"x.txt", "2 2\nc 5 6\na 0 0\n"}}));
    write_file(dir_ / "binary", "2 2\n" + record("d", {7, 8}) + record("b", {0, 0}));
    const std::string said = converted({"@glove.txt", "@packed", "@archive", "@binary", "@m"});
    converted({"-", "@one"},
              read_file(dir_ / "glove.txt") + "a 1 2\nb 3 4\nc 5 6\na 0 0\nd 7 8\nb 0 0\n");
    expect_same("m", "one", "formats");
    for (const std::string line :
         {"glove.txt: GloVe text, 2 numbers a line", "packed: the byte order mark",
          "packed: no newline at the end of the last line",
          "archive: word2vec text, 2 words of 2 numbers",
          "binary: word2vec binary, 2 words of 2 numbers",
          "archive: line 3: the word \"a\" stands on line 1 of ", "/packed too, which is kept",
          "binary: word 2: the word \"b\" stands on line 2 of ",
          "glove.txt: 3 words of the model, from 3 lines, 0 skipped\n",
          "packed: 2 words of the model, from 2 lines, 0 skipped\n",
          "archive: 1 words of the model, from 3 lines, 0 skipped\n",
          "binary: 1 words of the model, from 2 words, 0 skipped\n",
          "m: 7 words of 2 numbers from 10 lines, 2 duplicate(s), 0 skipped; "}) {
        EXPECT_NE(said.find(line), std::string::npos) << line << "\n" << said;
    }
    expect_sound({"--source", "@glove.txt", "--source", "@packed", "--source", "@archive",
                  "--source", "@binary", "@m"});
    const auto sources = report("m")["sources"];
    ASSERT_EQ(sources.size(), 4U);
    EXPECT_EQ(sources[1]["compression"], "gzip");
    EXPECT_EQ(sources[2]["member"], "x.txt");
    EXPECT_EQ(sources[2]["header_rows"], 2);
    EXPECT_EQ(sources[3]["format"], "word2vec-bin");
    EXPECT_EQ(sources[3]["lines_read"], 2);
    EXPECT_EQ(sources[3]["rows_kept"], 1);
}

TEST_F(SeveralInputs, ShareTheRuleForDuplicates) {
    struct Case {
        std::string rule;
        float value_of_of;
        std::vector<std::uint32_t> ranks;  // of gloved, king, of, the
        std::string message;
    };
    const std::string glove = dir_ / "glove.txt";
    const std::string own = dir_ / "own.txt";
    for (const auto& [rule, value, ranks, message] :
         {Case{"first",
               3,
               {3, 2, 1, 0},
               own + ": line 2: the word \"of\" stands on line 2 of " + glove + " too, which is"},
          Case{
              "last",
              9,
              {2, 1, 3, 0},
              glove + ": line 2: the word \"of\" stands on line 2 of " + own + " too, which is"}}) {
        const std::string said = converted({"--duplicates", rule, "@glove.txt", "@own.txt", "@m"});
        EXPECT_NE(said.find(message), std::string::npos) << said;
        const auto model = format::Model::open(dir_ / "m");
        ASSERT_TRUE(model);
        EXPECT_EQ(model->vector(2)[0], value);
        EXPECT_EQ(std::vector(model->ranks().begin(), model->ranks().end()), ranks);
        expect_sound({"--source", "@glove.txt", "--source", "@own.txt", "@m"});
        const auto duplicate = report("m")["duplicates"]["lines"][0];
        EXPECT_EQ(duplicate["kept_source"], rule == "first" ? 0 : 1);
        EXPECT_EQ(duplicate["dropped_source"], rule == "first" ? 1 : 0);
        EXPECT_EQ(report("m")["sources"][0]["rows_kept"], rule == "first" ? 3 : 2);
    }
    fs::remove_all(dir_ / "m");
    expect_refused({"--duplicates", "error", "@glove.txt", "@own.txt", "@m"},
                   own + ": line 2: the word \"of\" stands on line 2 of " + glove +
                       " already (1 such line); --duplicates first or last takes one");
    // The same file again, and a word twice in the second alone.
    write_file(dir_ / "again.txt", "new 1 2\nnew 1 2\n");
    const std::string said = converted({"@glove.txt", "@glove.txt", "@again.txt", "@m"});
    EXPECT_NE(said.find("glove.txt: line 3: the word \"king\" stands on line 3 of " + glove),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("again.txt: line 2: the word \"new\" stands on line 1 too, which is kept"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find(": 0 words of the model, from 3 lines"), std::string::npos) << said;
}

TEST_F(SeveralInputs, AreRefusedTogetherIfOneIsWrong) {
    converted({"-", "@m"}, "old 1 2\n");
    write_file(dir_ / "wide.txt", "x 1 2 3\ny 1 2 3\n");
    write_file(dir_ / "bad.txt", "x 1 2\ny 1 z\n");
    write_file(dir_ / "cut.gz", gzip("x 1 2\n").substr(0, 20));
    write_file(dir_ / "empty.txt", "");
    write_file(dir_ / "cut.zip", "PK\x03\x04rest of it");
    expect_refused(
        {"@glove.txt", "@wide.txt", "@m"},
        "wide.txt: 3 numbers a word, but " + (dir_ / "glove.txt") + " has 2; all inputs");
    expect_refused({"@glove.txt", "@bad.txt", "@m"},
                   "bad.txt: line 2 (byte 6): field 3 of 3 is \"z\", which is not a number");
    expect_refused({"@glove.txt", "@cut.gz", "@m"}, "cut.gz: the gzip data ends too early");
    expect_refused({"@glove.txt", "@empty.txt", "@m"}, "empty.txt: the source is empty");
    expect_refused({"@glove.txt", "-", "@m"}, "-: line 2 (byte 6): field 2 of 3 is \"nan\"",
                   "x 1 2\ny nan 2\n");
    expect_refused({"@glove.txt", "@own.txt"}, "own.txt: exists and is not a directory");
    // With the first, which would wait for ever, unread.
    ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
    expect_refused({"@fifo", "@none.txt", "@m"}, "none.txt: cannot open: No such file");
    expect_refused({"@fifo", "@m", "@m"}, "m: is a directory, not a file");
    expect_refused({"@fifo", "@cut.zip", "@m"}, "cut.zip: this begins like a zip archive");
    // A fault that can be left out is left out of the input that has it.
    const std::string said =
        converted({"--on-error", "skip", "@glove.txt", "@bad.txt", "@own.txt", "@m"});
    EXPECT_NE(said.find("skipped: " + (dir_ / "bad.txt") + ": line 2 (byte 6)"), std::string::npos)
        << said;
    EXPECT_NE(said.find("bad.txt: 1 line(s) skipped: 1 bad_number"), std::string::npos) << said;
    const auto made = report("m");
    EXPECT_EQ(made["skipped"]["count"], 1);
    EXPECT_EQ(made["sources"][0]["skipped"]["count"], 0);
    EXPECT_EQ(made["sources"][1]["skipped"]["reasons"], nlohmann::json({{"bad_number", 1}}));
    const std::string first = made["skipped"]["first"][0];
    EXPECT_EQ(first.find((dir_ / "bad.txt") + ": line 2 (byte 6)"), 0U) << first;
}

TEST_F(SeveralInputs, MayBePipes) {
    const std::string own = read_file(dir_ / "own.txt");
    converted({"@glove.txt", "@own.txt", "@m"});
    converted({"@glove.txt", "-", "@second"}, own);
    expect_same("second", "m", "stdin as second");
    expect_sound({"--source", "@glove.txt", "--source", "-", "@second"}, own);
    converted({"-", "@own.txt", "@first"}, read_file(dir_ / "glove.txt"));
    expect_same("first", "m", "stdin as first");

    // One program writes both, one after the other, and more than a pipe holds.
    write_file(dir_ / "long", lines(20000, 20000, 1));
    write_file(dir_ / "short", "own 1 2 3\n");
    ASSERT_EQ(::mkfifo((dir_ / "fifo1").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo((dir_ / "fifo2").c_str(), 0600), 0);
    const Finished piped =
        run({"sh", "-c",
             "cd \"$2\" && { cat long > fifo1; cat short > fifo2; } & \"$1\" \"$2/fifo1\" "
             "\"$2/fifo2\" \"$2/piped\"; status=$?; wait; exit $status",
             "sh", program("gloved-convert"), dir_.path()});
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    converted({"@long", "@short", "@files"});
    expect_same("piped", "files", "one writer of two pipes");
}

TEST_F(SeveralInputs, ShareTheLimit) {
    struct Case {
        std::string limit;
        std::string keys;
        std::uint64_t lines;  // read of own.txt
    };
    for (const auto& [limit, keys, read] : {Case{"2", "of\nthe\n", 0},
                                            {"3", "king\nof\nthe\n", 0},
                                            {"4", "gloved\nking\nof\nthe\n", 1}}) {
        const std::string said = converted({"--limit", limit, "@glove.txt", "@own.txt", "@m"});
        EXPECT_EQ(read_file(dir_ / "m/keys"), keys);
        const auto own = report("m")["sources"][1];
        EXPECT_EQ(own["lines_read"], read);
        EXPECT_EQ(own["whole"], false);
        EXPECT_EQ(said.find("own.txt: not read: the inputs before have the ") == std::string::npos,
                  read != 0)
            << said;
        expect_sound({"--source", "@glove.txt", "--source", "@own.txt", "@m"});
    }
    // A header is no word.
    converted({"--limit", "3", "-", "@own.txt", "@m"}, "2 2\na 1 2\nb 1 2\n");
    EXPECT_EQ(read_file(dir_ / "m/keys"), "a\nb\ngloved\n");
}

TEST_F(SeveralInputs, NameAMemberOfEachArchive) {
    write_file(dir_ / "one.zip", zip_archive({{"a.txt", "x 1 2\n"}, {"b.txt", "y 1 2\n"}}));
    write_file(dir_ / "two.zip", zip_archive({{"b.txt", "z 1 2\n"}, {"c.txt", "c 1 2\n"}}));
    converted({"--member", "b.txt", "@glove.txt", "@one.zip", "@own.txt", "@two.zip", "@m"});
    EXPECT_EQ(read_file(dir_ / "m/keys"), "gloved\nking\nof\nthe\ny\nz\n");
    expect_sound({"--source", "@glove.txt", "--source", "@one.zip", "--source", "@own.txt",
                  "--source", "@two.zip", "@m"});
    fs::remove_all(dir_ / "m");
    expect_refused({"--member", "a.txt", "@one.zip", "@two.zip", "@m"},
                   "two.zip: the zip archive holds no member \"a.txt\"");
    expect_refused({"--member", "a.txt", "@glove.txt", "@own.txt", "@m"},
                   "glove.txt: --member \"a.txt\" is given, but this is not an archive");
}

TEST_F(SeveralInputs, AreNotedInTheReport) {
    write_file(dir_ / "odd.txt", "\xFFx 1 2\n\"q\" 2000000 2\n");
    converted({"@glove.txt", "@odd.txt", "@m"});
    converted({"@glove.txt", "@one"});
    const auto several = report("m");
    const auto one = report("one");
    EXPECT_EQ(several["source"], one["source"]);
    EXPECT_FALSE(one.contains("sources"));
    EXPECT_EQ(several["lines_read"], 5);
    EXPECT_EQ(several["sources"][1]["name"], dir_ / "odd.txt");
    EXPECT_EQ(several["sources"][1]["bytes"], fs::file_size(dir_ / "odd.txt"));
    const nlohmann::json quoted = {{"count", 1}, {"line", 2}, {"key", "\"q\""}};
    EXPECT_EQ(several["sources"][1]["implausible"]["quoted"], quoted);
    EXPECT_TRUE(several["sources"][0]["implausible"].empty());
    EXPECT_EQ(several["implausible"].size(), 3U);
    EXPECT_EQ(several["implausible"]["quoted"]["source"], 1);
    EXPECT_EQ(several["implausible"]["quoted"]["line"], 2);
}

TEST_F(SeveralInputs, AreComparedWithTheModelInTheirOrder) {
    converted({"@glove.txt", "@own.txt", "@m"});
    const std::string names = "\"" + (dir_ / "glove.txt") + "\", \"" + (dir_ / "own.txt") + "\"";
    const std::string made = "the model was made from 2 sources, in this order: " + names;
    expect_unsound({"--source", "@glove.txt", "@m"}, "source: 1 given, but " + made);
    expect_unsound({"--source", "@own.txt", "--source", "@glove.txt", "@m"},
                   "FAILED  source: given in another order; " + made);
    expect_unsound({"--source", "@glove.txt", "--source", "@none", "@m"},
                   "none: cannot open: No such file or directory; " + made);
    converted({"@glove.txt", "@one"});
    expect_unsound({"--source", "@glove.txt", "--source", "@own.txt", "@one"},
                   "source: 2 given, but the model was made from one source, \"" +
                       (dir_ / "glove.txt") + "\"");

    const std::vector<std::string> with_stdin = {"--source", "@glove.txt", "--source", "-", "@m"};
    expect_unsound(with_stdin, "numbers: 1 rows differ; the first: row 0 (\"gloved\"), line 1 of -",
                   "gloved 7 9\nof 9 10\n");
    expect_unsound(with_stdin, "source keys: row 0 (\"gloved\") is not in any source", "of 9 10\n");
    expect_unsound(with_stdin, "not in the model; the first: \"new\" on line 3 of -",
                   "gloved 7 8\nof 9 10\nnew 1 2\n");
    expect_unsound({"--source", "@own.txt", "--source", "-", "@m"},
                   "has rank 0 and line 1 of -, row 2 (\"of\") has rank 1 and line 2 of ",
                   "the 1 2\nof 3 4\nking 5 7\n");

    // Without a report, in the order given.
    fs::remove(dir_ / "m/report.json");
    expect_sound({"--source", "@glove.txt", "--source", "@own.txt", "@m"});
    for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
             {"--source", "-", "--source", "-", "@m"}, {"--source", "", "@m"}}) {
        EXPECT_EQ(run_here("gloved-verify", wrong).exit_code, 2);
    }
    EXPECT_EQ(run_here("gloved-verify", {"--engines", "--answers", "10", "--source", "@glove.txt",
                                         "--source", "@own.txt", "@m"})
                  .exit_code,
              0);
}

}  // namespace
}  // namespace gloved::tests
