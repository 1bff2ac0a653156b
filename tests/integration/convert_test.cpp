// Conversions that succeed, and what they leave.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "tests/support/gzip.hpp"
#include "tests/support/process.hpp"
#include "tests/support/tar.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/word2vec.hpp"
#include "tests/support/zip.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSample = "data/glove.6B.100d.sample.txt.gz";

/// Runs gloved-convert with further options; the last two are INPUT and MODEL_DIR.
Finished convert(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), program("gloved-convert"));
    return run(arguments, input);
}

nlohmann::json report_of(const std::string& model) {
    return nlohmann::json::parse(read_file(model + "/report.json"));
}

/// The sample's text, unpacked by gzip itself.
std::string sample_text() { return run({"gzip", "-dc", source_path(kSample)}).out; }

TEST(Convert, TakesTheRealSampleHoweverItComes) {
    const TempDir dir;
    const std::string text = sample_text();
    ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 10'002);
    write_file(dir / "misnamed.zip", text);
    write_file(dir / "packed.txt", gzip(text.substr(0, 1'000'000)) + gzip(text.substr(1'000'000)));
    const auto packed = convert({source_path(kSample), dir / "packed"});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    EXPECT_EQ(packed.out, "");
    EXPECT_NE(packed.err.find("10002 words of 100 numbers from 10002 lines"), std::string::npos)
        << packed.err;
    ASSERT_EQ(convert({dir / "misnamed.zip", dir / "plain"}).exit_code, 0);
    ASSERT_EQ(convert({dir / "packed.txt", dir / "members"}).exit_code, 0);
    ASSERT_EQ(convert({"-", dir / "stdin"}, text).exit_code, 0);
    ASSERT_EQ(convert({"-", dir / "stdin-packed"}, gzip(text)).exit_code, 0);
    for (const std::string other : {"plain", "members", "stdin", "stdin-packed"}) {
        EXPECT_TRUE(read_file(dir / (other + "/keys")) == read_file(dir / "packed/keys")) << other;
        EXPECT_TRUE(read_file(dir / (other + "/values")) == read_file(dir / "packed/values"))
            << other;
    }

    const auto model = format::Model::open(dir / "packed");
    ASSERT_TRUE(model) << model.error().message;
    const auto the = model->find("the");
    ASSERT_TRUE(the);
    EXPECT_EQ(model->ranks()[*the], 0U);
    EXPECT_EQ(model->vector(*the)[0], -0.038194F);
    ASSERT_TRUE(model->find("messi"));
}

TEST(Convert, GivesTheSameModelForEveryFormatAndVerifiesIt) {
    const TempDir dir;
    const std::string body = "the 3 4\nnew-york 5 12\n\xC2\xA0 8 15\n";
    std::string fasttext = body;
    for (std::size_t at = 0; (at = fasttext.find('\n', at)) != std::string::npos; at += 2)
        fasttext.insert(at, " ");
    const std::string binary = "3 2\n" + record("the", {3, 4}) + "\n" +
                               record("new-york", {5, 12}) + "\n" + record("\xC2\xA0", {8, 15}) +
                               "\n";
    struct Case {
        std::string name;
        std::string content;
        std::string format;
        std::vector<std::string> options;
    };
    const std::vector<Case> cases = {
        {"glove", body, "glove", {}},
        {"bom", "\xEF\xBB\xBF" + body, "glove", {}},
        {"norms", "the 5.00 3 4\nnew-york 13.00 5 12\n\xC2\xA0 17.00 8 15\n", "norms", {}},
        {"word2vec", "3 2\n" + body, "word2vec", {}},
        {"fasttext", "3 2\n" + fasttext, "fasttext", {"--format", "fasttext"}},
        {"binary", binary, "word2vec-bin", {}},
        {"crlf", "the 3 4\r\nnew-york 5 12\r\n\xC2\xA0 8 15\r\n", "glove", {}},
        {"gzip", gzip(binary), "word2vec-bin", {}},
        {"zip", zip_archive({{"d/", ""}, {"d/vectors.bin", binary}}), "word2vec-bin", {}},
        {"zip64", zip64_archive("glove.txt", body), "glove", {}},
        {"member",
         zip_archive({{"other.txt", "a 1 2 3\n"}, {"this.txt", body}}),
         "glove",
         {"--member", "this.txt"}},
    };
    for (const auto& [name, content, format, options] : cases) {
        write_file(dir / ("in-" + name), content);
        std::vector<std::string> arguments = options;
        arguments.insert(arguments.end(), {dir / ("in-" + name), dir / name});
        const auto finished = convert(arguments);
        ASSERT_EQ(finished.exit_code, 0) << name << ": " << finished.err;
        EXPECT_TRUE(read_file(dir / (name + "/keys")) == read_file(dir / "glove/keys")) << name;
        EXPECT_TRUE(read_file(dir / (name + "/values")) == read_file(dir / "glove/values")) << name;
        const auto report = report_of(dir / name);
        EXPECT_EQ(report["format"], format) << name;
        EXPECT_EQ(report["source"]["bom"], name == "bom") << name;
        const auto verified =
            run({program("gloved-verify"), "--source", dir / ("in-" + name), dir / name});
        EXPECT_EQ(verified.exit_code, 0) << name << ": " << verified.out << verified.err;
        EXPECT_NE(verified.out.find("source numbers: equal bit for bit"), std::string::npos)
            << name;
    }
    const auto zip = report_of(dir / "member")["source"];
    EXPECT_EQ(zip["member"], "this.txt");
    EXPECT_EQ(zip["crc32"],
              fmt::format("{:08x}", ::crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                            static_cast<uInt>(body.size()))));
    EXPECT_TRUE(zip["xxh3"].is_null());
    EXPECT_EQ(zip["compression"], "zip");
    EXPECT_EQ(report_of(dir / "binary")["source"]["header_rows"], 3);
    EXPECT_TRUE(report_of(dir / "glove")["source"]["header_rows"].is_null());
    // The same text, unpacked by hand since: the member's name does not matter then.
    EXPECT_EQ(
        run({program("gloved-verify"), "--source", dir / "in-glove", dir / "member"}).exit_code, 0);
}

TEST(Convert, ReportsHowASourceIsPacked) {
    const TempDir dir;
    const std::string text = "the 3 4\nof 5 12\n";
    const std::string tar = tar_archive({{"a.txt", text}, {"b.txt", "b 1 2 3\n"}});
    for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{
             {"none", text},
             {"xz", xz(text)},
             {"zip", zip_archive({{"a.txt", text}, {"b.txt", "b 1 2 3\n"}})},
             {"tar", tar},
             {"tar.gz", gzip(tar)}}) {
        const std::string model = dir / name;
        write_file(model + ".in", content);
        std::vector<std::string> arguments = {model + ".in", model};
        const bool archive = name == "zip" || name.starts_with("tar");
        if (archive) arguments.insert(arguments.begin(), {"--member", "a.txt"});
        const auto finished = convert(arguments);
        ASSERT_EQ(finished.exit_code, 0) << finished.err;
        const auto source = report_of(model)["source"];
        EXPECT_EQ(source["compression"], name);
        EXPECT_EQ(source["bytes"], content.size());
        EXPECT_EQ(source["member"].is_null(), !archive);
        EXPECT_EQ(source["xxh3"].is_null(), name == "zip");
        EXPECT_EQ(source["crc32"].is_null(), name != "zip");
    }
}

TEST(Convert, SaysWhatItFoundAndWhatIsDoubtful) {
    const TempDir dir;
    const auto header = convert({"-", dir / "m"}, "2 3\na 1 2 3\nb 1 2 3\n");
    EXPECT_NE(header.err.find("-: word2vec text, 2 words of 3 numbers (by its header)"),
              std::string::npos)
        << header.err;
    const auto bom = convert({"-", dir / "m"},
                             "\xEF\xBB\xBF"
                             "a 1 2\n");
    EXPECT_NE(bom.err.find("-: the byte order mark (UTF-8) at its beginning is dropped"),
              std::string::npos)
        << bom.err;
    const auto skipped = convert({"--on-error", "skip", "-", dir / "m"}, "3 3\na 1 2 3\n");
    EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
    EXPECT_NE(skipped.err.find("warning: -: the header promises 3 words, 1 are there"),
              std::string::npos)
        << skipped.err;

    // As wide as a published file, and named like one, but short.
    std::string text;
    for (int i = 0; i < 10; ++i) {
        text += fmt::format("w{}", i);
        for (int k = 0; k < 25; ++k) text += " 0.1";
        text += '\n';
    }
    write_file(dir / "My.GloVe.txt", text);
    write_file(dir / "other.txt", text);
    write_file(dir / "archive", zip_archive({{"glove.txt", text}}));
    const std::string warning =
        "10 lines read; the nearest known file, glove.twitter.27B.25d, has 1,193,514";
    for (const std::string name : {"My.GloVe.txt", "archive"}) {
        const auto warned = convert({dir / name, dir / "m"});
        EXPECT_EQ(warned.exit_code, 0);
        EXPECT_NE(warned.err.find(warning), std::string::npos) << name << warned.err;
    }
    EXPECT_EQ(convert({dir / "other.txt", dir / "m"}).err.find("warning"), std::string::npos);
    EXPECT_EQ(convert({"--limit", "5", dir / "My.GloVe.txt", dir / "m"}).err.find("warning"),
              std::string::npos);
}

TEST(Convert, GivesTheSameBytesForAnyNumberOfThreads) {
    const TempDir dir;
    std::string text = sample_text();
    text += text;  // every word twice
    write_file(dir / "in", text);
    for (const int threads : {1, 2, 3}) {
        const auto finished = convert(
            {"--threads", std::to_string(threads), dir / "in", dir / std::to_string(threads)});
        ASSERT_EQ(finished.exit_code, 0) << finished.err;
        for (const std::string file : {"/keys", "/values", "/planes"}) {
            EXPECT_TRUE(read_file(dir / (std::to_string(threads) + file)) ==
                        read_file(dir / ("1" + file)))
                << threads;
        }
    }
    EXPECT_EQ(report_of(dir / "3")["duplicates"]["count"], 10'002);
}

/// The names of a model's files, all of which are read-only.
std::set<std::string> read_only_files(const std::string& model) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(model)) {
        names.insert(entry.path().filename());
        struct stat status {};
        EXPECT_EQ(::stat(entry.path().c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 07777, 0444U) << entry.path();
    }
    return names;
}

const std::set<std::string> kWithoutPlanes = {"keys", "report.json", "values"};
const std::set<std::string> kWithPlanes = {"keys", "planes", "report.json", "values"};

TEST(Convert, LeavesFourReadOnlyFilesAndNothingElse) {
    const TempDir dir;
    ASSERT_EQ(convert({"-", dir / "m"}, "a 1 2\nb 3 4\n").exit_code, 0);
    EXPECT_EQ(read_only_files(dir / "m"), kWithPlanes);
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
    const auto report = report_of(dir / "m");
    EXPECT_EQ(report["planes"], true);
    EXPECT_TRUE(report["seconds"].contains("planes"));
}

TEST(Convert, SaysThatNeighborsWentWithTheOldModel) {
    const TempDir dir;
    const std::string note = fmt::format(
        "gloved-convert: note: {0}: the model that it replaces had neighbors; run gloved-neighbors "
        "{0} again\n",
        dir / "m");
    EXPECT_EQ(convert({"-", dir / "m"}, "a 1 2\nb 3 4\n").err.find("neighbors"), std::string::npos);
    ASSERT_EQ(run({program("gloved-neighbors"), dir / "m"}).exit_code, 0);
    EXPECT_EQ(convert({"--planes-only", dir / "m"}).err.find("neighbors"), std::string::npos);
    EXPECT_EQ(convert({"-", dir / "m"}, "a nonsense\n").err.find("neighbors"), std::string::npos)
        << "the old model is still there";
    EXPECT_NE(convert({"-", dir / "m"}, "c 1 2\nd 3 4\n").err.find(note), std::string::npos);
    EXPECT_EQ(convert({"-", dir / "m"}, "c 1 2\nd 3 4\n").err.find("neighbors"), std::string::npos);
}

TEST(Convert, LeavesPlanesOutWhereNoneAreWanted) {
    const TempDir dir;
    ASSERT_EQ(convert({"-", dir / "m"}, "a 1 2\nb 3 4\n").exit_code, 0);
    const std::string values = read_file(dir / "m/values");
    // Over a model that has some, too.
    ASSERT_EQ(convert({"--planes", "none", "-", dir / "m"}, "a 1 2\nb 3 4\n").exit_code, 0);
    EXPECT_EQ(read_only_files(dir / "m"), kWithoutPlanes);
    EXPECT_TRUE(read_file(dir / "m/values") == values);
    const auto report = report_of(dir / "m");
    EXPECT_EQ(report["planes"], false);
    EXPECT_FALSE(report["seconds"].contains("planes"));
}

TEST(Convert, AddsPlanesToAModelAndChangesNothingElse) {
    const TempDir dir;
    write_file(dir / "in", sample_text());
    ASSERT_EQ(convert({dir / "in", dir / "m"}).exit_code, 0);
    const std::string planes = read_file(dir / "m/planes");
    ASSERT_EQ(convert({"--planes", "none", dir / "in", dir / "m"}).exit_code, 0);
    const std::string report = read_file(dir / "m/report.json");
    for (const char* threads : {"1", "3"}) {
        const auto added = convert({"--threads", threads, "--planes-only", dir / "m"});
        ASSERT_EQ(added.exit_code, 0) << added.err;
        EXPECT_EQ(added.out, "");
        EXPECT_NE(added.err.find("m: planes of 10002 words of 100 numbers, "), std::string::npos)
            << added.err;
        EXPECT_TRUE(read_file(dir / "m/planes") == planes);
        EXPECT_TRUE(read_file(dir / "m/report.json") == report);
        EXPECT_EQ(read_only_files(dir / "m"), kWithPlanes);
        // The second time over what is there, damaged, and beside what a dead process has left.
        fs::remove(dir / "m/planes");
        write_file(dir / "m/planes", planes.substr(0, 8) + "damaged");
        write_file(dir / "m/planes.new", planes.substr(0, 100));
    }
    ASSERT_EQ(convert({"--planes-only", dir / "m/"}).exit_code, 0);
    EXPECT_TRUE(read_file(dir / "m/planes") == planes);
    EXPECT_EQ(run({program("gloved-verify"), dir / "m"}).exit_code, 0);
}

TEST(Convert, AddsNoPlanesWhereItCannot) {
    const TempDir dir;
    const auto none = convert({"--planes-only", dir / "none"});
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_NE(none.err.find(dir / "none: cannot open the directory"), std::string::npos)
        << none.err;
    fs::create_directory(dir / "empty");
    const auto empty = convert({"--planes-only", dir / "empty"});
    EXPECT_EQ(empty.exit_code, 1);
    EXPECT_NE(empty.err.find(dir / "empty/values: cannot open"), std::string::npos) << empty.err;
    EXPECT_NE(empty.err.find("the directory is no model: gloved-convert makes"), std::string::npos)
        << empty.err;
    EXPECT_TRUE(fs::is_empty(dir / "empty"));

    ASSERT_EQ(convert({"-", dir / "m"}, "a 1 2\nb 3 4\n").exit_code, 0);
    const std::string planes = read_file(dir / "m/planes");
    // A file size limit stands in for a full disk: a file of two blocks is more than one.
    const auto full = run({"sh", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh",
                           program("gloved-convert"), "--planes-only", dir / "m"});
    EXPECT_EQ(full.exit_code, 1) << full.err;
    EXPECT_NE(full.err.find(dir / "m/planes.new: cannot "), std::string::npos) << full.err;
    EXPECT_TRUE(read_file(dir / "m/planes") == planes);
    EXPECT_EQ(read_only_files(dir / "m"), kWithPlanes);

    // While somebody else is at it.
    write_file(dir / "m/planes.new", "");
    const auto held =
        run({"flock", dir / "m/planes.new", program("gloved-convert"), "--planes-only", dir / "m"});
    EXPECT_EQ(held.exit_code, 1);
    EXPECT_NE(held.err.find("another gloved-convert makes planes there"), std::string::npos)
        << held.err;
    fs::remove(dir / "m/planes.new");

    // Damaged values: there is nothing to make planes of.
    const std::string values = read_file(dir / "m/values");
    fs::remove(dir / "m/values");
    write_file(dir / "m/values", values.substr(0, values.size() - 1));
    EXPECT_EQ(convert({"--planes-only", dir / "m"}).exit_code, 1);
    EXPECT_TRUE(read_file(dir / "m/planes") == planes);
}

TEST(Convert, TakesPlanesAsItsHelpSays) {
    for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
             {"--planes", "5", "-", "m"},
             {"--planes", "", "-", "m"},
             {"--planes-only", "m", "n"},
             {"--planes-only"},
             {"--planes-only", ""},
             {"--planes-only", "m", "--planes", "4"},
             {"--planes-only", "m", "--memory", "1G"},
             {"--planes-only", "m", "--export", "npy"},
             {"--planes-only", "m", "--threads", "0"},
             {"--export", "npy", "--planes", "none", "m", "n"},
         }) {
        const auto finished = convert(wrong);
        EXPECT_EQ(finished.exit_code, 2) << wrong[0] << ": " << finished.err;
        EXPECT_NE(finished.err.find("; see gloved-convert --help"), std::string::npos)
            << finished.err;
    }
}

// Who writes a model out needs no planes, and is not kept from it by those that are damaged.
TEST(Convert, ExportsWithoutPlanes) {
    const TempDir dir;
    ASSERT_EQ(convert({"-", dir / "m"}, "a 1 2\nb 3 4\n").exit_code, 0);
    fs::remove(dir / "m/planes");
    write_file(dir / "m/planes", "damaged");
    const auto exported = convert({"--export", "glove", dir / "m", "-"});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_EQ(exported.out, "a 1 2\nb 3 4\n");
}

TEST(Convert, KeepsKeysByteForByteAndSortsThemByBytes) {
    const TempDir dir;
    const std::string text =
        "\xC2\xA0.\xC2\xA0 1\nnew york 2\n\xFF\xFE 3\nab 4\na 5\na b 6\nabcdefgh 7\nabcdefgh\x01 "
        "8\nabcdefghi 9\n\x7F "
        "10\n";
    const auto finished = convert({"--dim", "1", "-", dir / "m"}, text);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(read_file(dir / "m/keys"),
              "a\na b\nab\nabcdefgh\nabcdefgh\x01\nabcdefghi\nnew "
              "york\n\x7F\n\xC2\xA0.\xC2\xA0\n\xFF\xFE\n");
}

TEST(Convert, ResolvesDuplicatesByRule) {
    const TempDir dir;
    const std::string text = "a 1 1\nb 2 2\na 3 3\nc 4 4\na 5 5\n";
    struct Case {
        std::string rule;
        float value_of_a;
        std::vector<std::uint32_t> ranks;  // of a, b, c
    };
    for (const auto& [rule, value, ranks] :
         {Case{"first", 1, {0, 1, 2}}, Case{"last", 5, {2, 0, 1}}}) {
        const auto finished = convert({"--duplicates", rule, "-", dir / rule}, text);
        ASSERT_EQ(finished.exit_code, 0) << finished.err;
        EXPECT_NE(finished.err.find("line 3: the word \"a\" stands on line " +
                                    std::string(rule == "first" ? "1" : "5")),
                  std::string::npos)
            << finished.err;
        const auto model = format::Model::open(dir / rule);
        ASSERT_TRUE(model);
        EXPECT_EQ(model->vector(0)[0], value);
        EXPECT_EQ(std::vector(model->ranks().begin(), model->ranks().end()), ranks);
        EXPECT_EQ(report_of(dir / rule)["duplicates"]["count"], 2);
        EXPECT_EQ(report_of(dir / rule)["duplicates"]["lines"].size(), 2U);
    }
    const auto refused = convert({"--duplicates", "error", "-", dir / "error"}, text);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("line 3: the word \"a\" stands on line 1 already (2 such lines)"),
              std::string::npos)
        << refused.err;
    EXPECT_FALSE(fs::exists(dir / "error"));
}

TEST(Convert, SkipsAndCountsByReason) {
    const TempDir dir;
    std::string text = "a 1 2\n\nb 1\nc nan 2\nd 1 x\ne 1 1e99\nf\tg 1 2\nh 0.5 1 2\nz 3 4\n";
    for (int i = 0; i < 30; ++i) text += "bad 1 y\n";
    const auto finished = convert({"--on-error", "skip", "--dim", "2", "-", dir / "m"}, text);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(read_file(dir / "m/keys"), "a\nh 0.5\nz\n");
    const auto report = report_of(dir / "m");
    EXPECT_EQ(report["implausible"],
              nlohmann::json({{"ends_in_number", {{"count", 1}, {"line", 8}, {"key", "h 0.5"}}}}));
    const auto& skipped = report["skipped"];
    EXPECT_EQ(skipped["count"], 36);
    EXPECT_EQ(skipped["first"].size(), 20U);
    EXPECT_EQ(skipped["reasons"], nlohmann::json({{"blank", 1},
                                                  {"too_few_fields", 1},
                                                  {"not_finite", 1},
                                                  {"bad_number", 31},
                                                  {"overflow", 1},
                                                  {"bad_key", 1}}));
    EXPECT_NE(finished.err.find("line 4 (byte 11): field 2 of 3 is \"nan\""), std::string::npos)
        << finished.err;
    const auto model = format::Model::open(dir / "m");
    ASSERT_TRUE(model);
    EXPECT_EQ(model->ranks()[1], 1U);
}

TEST(Convert, ReadsNoFurtherThanTheLimit) {
    const TempDir dir;
    const auto finished = convert({"--limit", "2", "-", dir / "m"}, "a 1 2\nb 3 4\nc x y\n");
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(read_file(dir / "m/keys"), "a\nb\n");
    EXPECT_TRUE(report_of(dir / "m")["source"]["xxh3"].is_null());
}

TEST(Convert, WarnsWhenTheLastNumberMayBeCut) {
    const TempDir dir;
    const auto finished = convert({"-", dir / "m"}, "a 1 2\nb 3 4.5");
    ASSERT_EQ(finished.exit_code, 0);
    EXPECT_NE(finished.err.find("warning: -: no newline at the end of the last line"),
              std::string::npos)
        << finished.err;
    EXPECT_EQ(report_of(dir / "m")["source"]["final_newline"], false);
}

TEST(Convert, ReportsBytesThatAreNoText) {
    const TempDir dir;
    ASSERT_EQ(convert({"-", dir / "m"}, "\xFF\xFE 1 2\nb 1 2\n\xFF\xFE 3 4\n").exit_code,
              1);  // UTF-16's mark
    ASSERT_EQ(convert({"-", dir / "m"}, "b 1 2\n\xFF\xFE 1 2\n\xFF\xFE 3 4\n").exit_code, 0);
    EXPECT_EQ(report_of(dir / "m")["duplicates"]["lines"][0]["kept_line"], 2);
}

TEST(Convert, ExplainsItself) {
    const auto help = convert({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("gloved-convert glove.6B.100d.txt.gz models/glove"), std::string::npos)
        << help.out;
    for (const std::string shown :
         {"--member glove.6B.300d.txt glove.6B.zip", "--export word2vec-bin", "--memory"}) {
        EXPECT_NE(help.out.find(shown), std::string::npos) << shown;
    }
    EXPECT_EQ(convert({"--version"}).exit_code, 0);
    EXPECT_EQ(convert({"--version"}).out.rfind("gloved-convert ", 0), 0U);
}

TEST(Convert, CleansUpWhenInterrupted) {
    const TempDir dir;
    ASSERT_EQ(convert({"-", dir / "m"}, "old 1 2\n").exit_code, 0);
    const std::string before = read_file(dir / "m/values");
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
        Background conversion({program("gloved-convert"), dir / "fifo", dir / "m"});
        FILE* pipe = std::fopen((dir / "fifo").c_str(), "w");
        ASSERT_NE(pipe, nullptr);
        for (int i = 0; i < 200'000; ++i) std::fprintf(pipe, "w%d 0.5 0.25\n", i);
        std::fflush(pipe);  // and then silence: the program waits in the middle of its input
        conversion.signal(number);
        const Finished finished = conversion.wait(std::chrono::seconds(10));
        std::fclose(pipe);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.err.find("interrupted"), std::string::npos) << finished.err;
        EXPECT_TRUE(read_file(dir / "m/values") == before);
        ::unlink((dir / "fifo").c_str());
        EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
    }
}

TEST(Convert, LeavesTheOldModelWhenTheDiskIsFull) {
    const TempDir dir;
    ASSERT_EQ(convert({"-", dir / "m"}, "old 1 2\n").exit_code, 0);
    const std::string before = read_file(dir / "m/values");
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += fmt::format("w{} 0.5 0.25 0.125\n", i);
    write_file(dir / "in", text);
    // A file size limit stands in for a full disk: SIGXFSZ ignored, so that writing fails.
    const auto finished = run({"sh", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh",
                               program("gloved-convert"), dir / "in", dir / "m"});
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_NE(finished.err.find("File too large"), std::string::npos) << finished.err;
    EXPECT_TRUE(read_file(dir / "m/values") == before);
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace gloved::tests
