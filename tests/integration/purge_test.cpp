// What the package's purge removes: every file that gloved makes, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/format/own_files.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

/// Everything below a directory: the bytes of files, where links lead, and empty texts for the
/// rest.
std::map<std::string, std::string> tree(const std::string& directory) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        const std::string path = entry.path();
        found[path.substr(directory.size() + 1)] = entry.is_symlink()
                                                       ? fs::read_symlink(path).string()
                                                   : entry.is_regular_file() ? read_file(path)
                                                                             : "";
    }
    return found;
}

class Purge : public testing::Test {
  protected:
    Purge() { fs::create_directory(models_); }

    /// Converts three words to a model of that name.
    void make_model(const std::string& name) const {
        const auto made =
            run({program("gloved-convert"), "-", models_ + "/" + name}, "a 1 2\nb 3 4\nc 5 6\n");
        ASSERT_EQ(made.exit_code, 0) << made.err;
    }

    /// What postrm does, as it does it: under set -e, in dash where there is one. Returns what is
    /// said.
    std::string purge() const {
        const auto done = run({"sh", "-c", "set -e; . \"$1\"; remove_models \"$2\"; echo done",
                               "sh", source_path("packaging/remove_models.sh"), models_});
        EXPECT_EQ(done.exit_code, 0) << done.err;
        EXPECT_EQ(done.out, "done\n");
        return done.err;
    }

    TempDir dir_;
    std::string models_ = dir_ / "models";
};

TEST_F(Purge, RemovesModelsWhole) {
    for (const std::string name : {"glove", "-odd name", "new\nline", ".hidden", "group/deeper"}) {
        fs::create_directories(fs::path(models_ + "/" + name).parent_path());
        make_model(name);
    }
    fs::rename(models_ + "/group/deeper", models_ + "/deeper");
    fs::remove(models_ + "/group");
    EXPECT_EQ(purge(), "");
    EXPECT_FALSE(fs::exists(models_));
}

// The list of files is the program's own, so that purge cannot forget one.
TEST_F(Purge, RemovesEveryFileThatAModelCanHold) {
    for (const format::OwnFile& file : format::own_files()) {
        make_model("m");
        const std::string path = models_ + "/m/" + file.name;
        if (!fs::exists(path)) write_file(path, std::string(file.beginning));
        // Cut short anywhere behind its beginning.
        fs::remove(path);
        write_file(path, std::string(file.beginning));
        EXPECT_EQ(purge(), "") << file.name;
        EXPECT_FALSE(fs::exists(models_)) << file.name;
        fs::create_directory(models_);
    }
}

TEST_F(Purge, RemovesWhatConversionsThatWereKilledHaveLeft) {
    make_model("m");
    ASSERT_EQ(run({program("gloved-neighbors"), models_ + "/m"}).exit_code, 0);
    int number = 0;
    for (const std::vector<std::string>& left :
         std::vector<std::vector<std::string>>{{},
                                               {"values"},
                                               {"values", "keys"},
                                               {"values", "keys", "planes"},
                                               {"values", "report.json"}}) {
        const std::string stray = models_ + "/.m.gloved-123-" + std::to_string(number++);
        fs::create_directory(stray);
        for (const std::string& name : left)
            fs::copy_file(models_ + "/m/" + name, stray + "/" + name);
        write_file(stray + "/spool", "");
    }
    fs::copy(models_ + "/m", models_ + "/.m.gloved-123-9-0");
    // A stray of a model that is called so itself.
    fs::create_directory(models_ + "/.m.gloved-b.gloved-123-0");
    write_file(models_ + "/.m.gloved-b.gloved-123-0/keys", "");
    EXPECT_EQ(purge(), "");
    EXPECT_FALSE(fs::exists(models_));
}

TEST_F(Purge, LeavesAllElseAndNamesIt) {
    write_file(models_ + "/keys", "at the top");
    write_file(models_ + "/-rf", "an odd name");
    write_file(models_ + "/line\nfeed", "another");
    fs::create_directory(models_ + "/lost+found");
    fs::create_directory(models_ + "/.m.gloved-1-0");
    write_file(models_ + "/.m.gloved-1-0/values", "in a stray's place");
    fs::create_directory(models_ + "/.m.gloved-backup");
    for (const std::string name : {"keys", "values", "planes", "planes.new", "neighbors",
                                   "neighbors.new", "report.json", "spool"}) {
        fs::create_directory(models_ + "/own " + name);
        write_file(models_ + "/own " + name + "/" + name, "notes");
        fs::create_directories(models_ + "/folder/" + name + "/" + name);
    }
    fs::create_directory(models_ + "/touched");
    write_file(models_ + "/touched/values", "");
    write_file(models_ + "/touched/report.json", "{}");
    fs::create_directory_symlink(dir_.path(), models_ + "/link");
    const std::string elsewhere = dir_ / "elsewhere";
    fs::rename(models_, elsewhere);
    fs::create_directory(models_);
    make_model("m");
    fs::rename(models_ + "/m", dir_ / "m");
    fs::create_directory_symlink(dir_ / "m", models_ + "/model");
    fs::copy(dir_ / "m", models_ + "/mixed");
    fs::remove(models_ + "/mixed/report.json");
    fs::remove(models_ + "/mixed/planes");
    write_file(models_ + "/mixed/report.json", "{\"mine\": 1}");
    fs::create_symlink("/etc/hostname", models_ + "/mixed/planes");
    write_file(models_ + "/mixed/values.txt", "mine");
    for (const auto& entry : fs::directory_iterator(elsewhere))
        fs::rename(entry.path(), fs::path(models_) / entry.path().filename());
    fs::remove(elsewhere);

    const auto outside = tree(dir_ / "m");
    auto wanted = tree(models_);
    wanted.erase("mixed/keys");
    wanted.erase("mixed/values");
    const std::string said = purge();
    EXPECT_EQ(tree(models_), wanted);
    EXPECT_EQ(tree(dir_ / "m"), outside);
    for (const std::string name :
         {"/keys", "/-rf", "/line\\nfeed", "/lost+found", "/.m.gloved-1-0/values",
          "/.m.gloved-backup", "/own\\ planes/planes", "/own\\ neighbors.new/neighbors.new",
          "/folder/spool/spool", "/touched/values", "/link", "/model", "/mixed/report.json",
          "/mixed/planes", "/mixed/values.txt"}) {
        EXPECT_NE(said.find("\n  " + models_ + name + "\n"), std::string::npos)
            << name << " is not in: " << said;
    }
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1 + 29) << said;
}

}  // namespace
}  // namespace gloved::tests
