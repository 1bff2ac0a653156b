// Every download of odd_files.tsv: taken or refused as the table says, and as the rules below want
// of each.
#include "tests/integration/odd_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

const std::vector<OddFile>& odd_files() {
    static const std::vector<OddFile> files =
        read_odd_files(source_path("tests/integration/odd_files.tsv"));
    return files;
}

/// Where the fault is: a line or a word, a byte, a member of an archive, or the file as a whole.
bool names_a_place(const std::string& message) {
    static const std::regex place(
        R"(: (line|word|row) \d+ \(byte \d+\): |: (line|word|row) \d+: the word | byte \d+)"
        R"(| the member "| member \S+ |/list: )");
    static const std::regex whole_file(
        R"(: (the source is empty|this is |this array |this holds |this begins like )"
        R"(|the header promises |the (zip|tar) archive |--member |there are no words )"
        R"(|its |it holds |it ends |not a readable |the numbers of |--words |--tensor ))");
    return std::regex_search(message, place) || std::regex_search(message, whole_file);
}

/// What to do about it. A new remedy is added here when a message needs it.
bool names_a_remedy(const std::string& message) {
    static const char* const remedies[] = {"fetch ",
                                           "fetch it again",
                                           "unpack ",
                                           "convert it: ",
                                           "replace them ",
                                           "put the words before ",
                                           "write text in ",
                                           "write its rows as text ",
                                           "take the vectors.txt ",
                                           "replace each run of blanks ",
                                           "remove blanks ",
                                           "it is converted already",
                                           "the command before the pipe failed",
                                           "leave --member out",
                                           "leave it out",
                                           "leave --format out",
                                           "write it again ",
                                           "write the one tensor ",
                                           "give --words ",
                                           "give the ",
                                           "it holds \"",
                                           "--member NAME",
                                           "--tensor NAME",
                                           "--format ",
                                           "--dim ",
                                           "--on-error skip",
                                           "--duplicates first"};
    return std::any_of(std::begin(remedies), std::end(remedies), [&](const char* remedy) {
        return message.find(remedy) != std::string::npos;
    });
}

std::set<std::string> listing(const std::string& path) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) names.insert(entry.path());
    return names;
}

/// A model that a refused conversion must leave as it is, made once.
const std::string& old_model() {
    static const TempDir dir;
    static const std::string path = [] {
        const std::string model = dir / "old";
        EXPECT_EQ(run({program("gloved-convert"), "-", model}, "old 1 2\n").exit_code, 0);
        return model;
    }();
    return path;
}

class OddFiles : public testing::TestWithParam<OddFile> {
  protected:
    /// `piped`: by a pipe, in which nothing can be sought.
    Finished convert(const std::string& model, bool piped = false) const {
        constexpr std::string_view kWords = "--words=";
        std::vector<std::string> arguments = {program("gloved-convert"), "--threads", "2"};
        for (std::string option : GetParam().options) {
            if (option.starts_with(kWords)) {
                write_file(words_dir_ / "list", content_of(option.substr(kWords.size())));
                option = "--words=" + (words_dir_ / "list");
            }
            arguments.push_back(option);
        }
        arguments.insert(arguments.end(), {piped ? "-" : dir_ / "download", dir_ / model});
        return run(arguments, piped ? read_file(dir_ / "download") : "");
    }
    void expect_fragments(const std::string& message) const {
        for (const std::string& fragment : GetParam().fragments) {
            EXPECT_NE(message.find(fragment), std::string::npos)
                << "no «" << fragment << "» in: " << message;
        }
    }
    void expect_taken() {
        const Finished finished = convert("m");
        ASSERT_EQ(finished.exit_code, 0) << finished.err;
        expect_fragments(finished.err);
        EXPECT_EQ(read_file(dir_ / "m/keys"), GetParam().words);
        EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 2);
        const Finished verified =
            run({program("gloved-verify"), "--source", dir_ / "download", dir_ / "m"});
        EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
        EXPECT_NE(verified.out.find("source numbers: equal bit for bit"), std::string::npos)
            << verified.out;
        const Finished piped = convert("piped", true);
        // The columns of an array in Fortran order are read at the same time.
        if (GetParam().content.find("'fortran_order': True") != std::string::npos) {
            EXPECT_EQ(piped.exit_code, 1);
            return;
        }
        EXPECT_EQ(piped.exit_code, 0) << piped.err;
        EXPECT_EQ(read_file(dir_ / "piped/keys"), GetParam().words);
    }
    void expect_refused() {
        EXPECT_EQ(convert("m", true).exit_code, 1);
        // Twice: where there is no model, and where there is one.
        const Finished fresh = convert("m");
        EXPECT_EQ(fresh.exit_code, 1) << fresh.err;
        EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1)
            << "something is left";
        fs::copy(old_model(), dir_ / "m", fs::copy_options::recursive);
        const auto files = listing(dir_.path());
        const std::string values = read_file(dir_ / "m/values");
        const Finished finished = convert("m");
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_EQ(finished.err, fresh.err);
        EXPECT_EQ(listing(dir_.path()), files) << "something is left";
        EXPECT_EQ(read_file(dir_ / "m/keys"), "old\n");
        EXPECT_TRUE(read_file(dir_ / "m/values") == values);

        EXPECT_EQ(finished.out, "");
        expect_fragments(finished.err);
        // The last line is the fault; before it stands what was found out.
        const std::size_t last = finished.err.rfind('\n', finished.err.size() - 2) + 1;
        const std::string message = finished.err.substr(last);
        EXPECT_EQ(message.find("gloved-convert: " + (dir_ / "download") + ": "), 0U)
            << finished.err;
        EXPECT_TRUE(names_a_place(message)) << message;
        EXPECT_TRUE(names_a_remedy(message)) << message;
    }

    const TempDir dir_;
    const TempDir words_dir_;
};

TEST_P(OddFiles, AreTakenOrRefusedAsTheTableSays) {
    write_file(dir_ / "download", content_of(GetParam().content));
    if (GetParam().exit_status == 0) {
        expect_taken();
    } else {
        expect_refused();
    }
}

INSTANTIATE_TEST_SUITE_P(Convert, OddFiles, testing::ValuesIn(odd_files()),
                         [](const auto& tested) { return tested.param.name; });

TEST(OddFilesTable, IsWholeAndEachMessageIsLookedAt) {
    EXPECT_GE(odd_files().size(), 80U);
    for (const OddFile& file : odd_files()) {
        EXPECT_EQ(file.exit_status == 0, !file.words.empty()) << file.name;
        EXPECT_TRUE(file.exit_status == 0 || !file.fragments.empty()) << file.name;
    }
}

}  // namespace
}  // namespace gloved::tests
