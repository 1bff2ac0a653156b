// gloved-neighbors, run as a user would: parts, kills, damage, and the answers themselves.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;
using format::Row;

constexpr std::size_t kPartRows = 512;
constexpr std::size_t kRows = 2 * kPartRows + 100;
constexpr std::size_t kDim = 20;

/// A model of three parts, and its neighbors file by a run that nothing disturbed.
class NeighborsProgram : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        shared_ = new TempDir;
        auto entries = random_entries(kRows, kDim, 1);
        entries[7].second.assign(kDim, 0.0F);
        entries[9].second = entries[8].second;
        make_model(*shared_ / "m", entries);
        const Finished whole = run(command({}, *shared_ / "m"));
        ASSERT_EQ(whole.exit_code, 0) << whole.err;
        wanted_ = new std::string(read_file(*shared_ / "m/neighbors"));
    }
    static void TearDownTestSuite() {
        delete wanted_;
        delete shared_;
    }

    NeighborsProgram() {
        fs::copy(*shared_ / "m", model_);
        fs::remove(model_ + "/neighbors");
    }

    static std::vector<std::string> command(std::vector<std::string> options,
                                            const std::string& model) {
        options.insert(options.begin(),
                       {program("gloved-neighbors"), "--part-rows", std::to_string(kPartRows)});
        options.push_back(model);
        return options;
    }
    Finished find(const std::vector<std::string>& options = {}) const {
        return run(command(options, model_));
    }
    void expect_made(const Finished& finished) const {
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
        EXPECT_TRUE(read_file(model_ + "/neighbors") == *wanted_);
        EXPECT_FALSE(fs::exists(parts_));
    }
    /// Computes the second and third part.
    void make_later_parts() const {
        for (const char* share : {"2/3", "3/3"}) {
            const Finished finished = find({"--part", share});
            ASSERT_EQ(finished.exit_code, 0) << finished.err;
        }
    }
    std::string part(std::size_t number) const {
        const auto model = format::Model::open(model_);
        const std::size_t first = number * kPartRows;
        return fmt::format("{}/neighbors-{}-k10-{}-{}", parts_, format::hex(model->generation()),
                           first, std::min(first + kPartRows, kRows));
    }

    static TempDir* shared_;
    static std::string* wanted_;
    const TempDir dir_;
    const std::string model_ = dir_ / "m";
    const std::string parts_ = dir_ / "m.neighbors-parts";
};

TempDir* NeighborsProgram::shared_ = nullptr;
std::string* NeighborsProgram::wanted_ = nullptr;

TEST_F(NeighborsProgram, FindsWhatAPlainSearchFinds) {
    fs::copy(*shared_ / "m/neighbors", model_ + "/neighbors");
    const auto model = format::Model::open(model_);
    ASSERT_TRUE(model);
    const auto opened = format::Neighbors::open(*model);
    ASSERT_TRUE(opened && *opened);
    ASSERT_TRUE((*opened)->verify());
    std::mt19937_64 random(1);
    std::vector<std::size_t> rows = {*model->find("w7"), *model->find("w8"), *model->find("w9"), 0,
                                     kRows - 1,          kPartRows};
    while (rows.size() < 30) rows.push_back(random() % kRows);
    for (const std::size_t row : rows) {
        std::vector<Row> wanted;
        const auto vector = model->vector(row);
        if (std::ranges::any_of(vector, [](float value) { return value != 0; })) {
            const auto scores = oracle_scores(*model, vector);
            const auto hits =
                oracle_top(scores, 10, [&](std::uint32_t other, double) { return other != row; });
            for (const auto& hit : hits) wanted.push_back(hit.row);
        }
        EXPECT_TRUE(std::ranges::equal((*opened)->of(row), wanted)) << row;
    }
}

TEST_F(NeighborsProgram, SharesGiveTheSameBytes) {
    make_later_parts();
    EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
    const Finished early = find({"--join"});
    EXPECT_EQ(early.exit_code, 1);
    EXPECT_EQ(early.err, fmt::format("gloved-neighbors: {}: this part, of rows 0 to 511, is "
                                     "missing; compute it (--part) before --join\n",
                                     part(0)));
    ASSERT_EQ(find({"--part", "1/3", "--threads", "1"}).exit_code, 0);
    expect_made(find({"--join"}));
}

TEST_F(NeighborsProgram, ARunGoesOnFromPartsThatAreThere) {
    make_later_parts();
    const auto made = fs::last_write_time(part(1));
    const Finished finished = find();
    EXPECT_NE(finished.err.find("2 of 3 parts are there already"), std::string::npos)
        << finished.err;
    EXPECT_NE(finished.err.find("512 words in"), std::string::npos) << finished.err;
    EXPECT_LT(made, fs::last_write_time(model_ + "/neighbors"));
    expect_made(finished);
}

TEST_F(NeighborsProgram, ANewRunAfterAKillGivesTheSameBytes) {
    std::mt19937_64 random(std::random_device{}());
    const char* const asked = std::getenv("GLOVED_KILL_ROUNDS");
    const int rounds = asked == nullptr ? 10 : std::atoi(asked);
    auto longest = std::chrono::microseconds(1);
    for (int round = 0; round <= rounds; ++round) {
        const auto begun = std::chrono::steady_clock::now();
        if (round != 0) {
            Background killed(command({}, model_));
            std::this_thread::sleep_for(longest * static_cast<int>(random() % 1000) / 1000);
            killed.signal(SIGKILL);
            killed.wait();
        }
        expect_made(find());
        if (round == 0) {
            longest = std::chrono::duration_cast<std::chrono::microseconds>(
                std::chrono::steady_clock::now() - begun);
        }
        EXPECT_FALSE(fs::exists(model_ + "/neighbors.new"));
        fs::remove(model_ + "/neighbors");
    }
}

TEST_F(NeighborsProgram, ASignalKeepsFinishedParts) {
    // Many small parts, so that the run still computes when the first is there.
    const std::string first = part(0).substr(0, part(0).rfind('-')) + "-4";
    Background stopped({program("gloved-neighbors"), "--threads", "1", "--part-rows", "4", model_});
    while (!fs::exists(first) && stopped.running())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stopped.signal(SIGTERM);
    EXPECT_EQ(stopped.wait().exit_code, 1);
    EXPECT_TRUE(fs::exists(first));
    expect_made(find());
}

TEST_F(NeighborsProgram, ADamagedPartIsComputedAgainAndNeverJoined) {
    ASSERT_EQ(find({"--part", "1/1"}).exit_code, 0);
    const std::string sound = read_file(part(1));
    std::string flipped = sound;
    flipped[format::kHeaderBytes + 12345] ^= 1;
    for (const std::string& damaged : {flipped, sound.substr(0, 4100), std::string()}) {
        fs::remove(part(1));
        write_file(part(1), damaged);
        const Finished joined = find({"--join"});
        EXPECT_EQ(joined.exit_code, 1);
        EXPECT_NE(joined.err.find(part(1) + ": "), std::string::npos) << joined.err;
        EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
        EXPECT_TRUE(fs::exists(part(0)));
    }
    fs::remove(part(1));
    write_file(part(1), flipped);
    const Finished finished = find();
    EXPECT_NE(finished.err.find("; this part is computed again"), std::string::npos)
        << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsProgram, LeavesFilesOfOthersAlone) {
    fs::create_directory(parts_);
    write_file(parts_ + "/notes", "years of them");
    write_file(part(2), "a thesis with an unlucky name");
    const Finished finished = find();
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find(part(2) + ": gloved did not make this file"), std::string::npos)
        << finished.err;
    EXPECT_EQ(read_file(part(2)), "a thesis with an unlucky name");
    fs::remove(part(2));
    write_file(part(2) + "-notes", "more of them");
    EXPECT_EQ(find().exit_code, 0);
    EXPECT_TRUE(read_file(model_ + "/neighbors") == *wanted_);
    EXPECT_EQ(read_file(parts_ + "/notes"), "years of them");
    EXPECT_EQ(read_file(part(2) + "-notes"), "more of them");
    EXPECT_EQ(std::distance(fs::directory_iterator(parts_), fs::directory_iterator()), 2);
}

/// Takes the best neighbour of every row from a part, and makes its checksums right.
std::string forge(const std::string& part) {
    auto header = *format::decode_neighbors_header(std::as_bytes(std::span(part)));
    std::vector<Row> lists(header.lists_bytes() / sizeof(Row));
    std::memcpy(lists.data(), part.data() + format::kHeaderBytes, header.lists_bytes());
    for (auto list = lists.begin(); list != lists.end(); list += header.k) {
        std::rotate(list, list + 1, list + header.k);
        list[header.k - 1] = format::kNoRow;
    }
    header.checksum = format::checksum(std::as_bytes(std::span(lists)));
    const auto head = format::encode_neighbors_header(header);
    std::string forged = part;
    std::memcpy(forged.data(), head.data(), head.size());
    std::memcpy(forged.data() + head.size(), lists.data(), header.lists_bytes());
    return forged;
}

TEST_F(NeighborsProgram, APartThatOthersMayWriteIsComputedAgainAndNeverJoined) {
    ASSERT_EQ(find({"--part", "1/1"}).exit_code, 0);
    const std::string forged = forge(read_file(part(1)));
    fs::remove(part(1));
    write_file(part(1), forged);
    const bool is_root = ::geteuid() == 0;
    const auto check = [&](const std::string& why) {
        const Finished joined = find({"--join"});
        EXPECT_EQ(joined.exit_code, 1);
        EXPECT_EQ(
            joined.err,
            fmt::format("gloved-neighbors: {}: {}, so it is not used; remove it\n", part(1), why));
    };
    for (const mode_t mode : {0666U, 0660U, 0602U}) {
        ASSERT_EQ(::chmod(part(1).c_str(), mode), 0);
        check(fmt::format("can be written by {} (mode {:04o})",
                          mode == 0660 ? "its group" : "everybody", mode));
    }
    ASSERT_EQ(::chmod(part(1).c_str(), 0644), 0);
    if (is_root) {
        ASSERT_EQ(::chown(part(1).c_str(), 65534, 0), 0);
        check("belongs to user 65534, who is neither this user nor root");
    } else {
        ASSERT_EQ(::chmod(part(1).c_str(), 0666), 0);
    }
    const Finished finished = find();
    EXPECT_NE(finished.err.find("so it is not used; remove it; this part is computed again"),
              std::string::npos)
        << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsProgram, ADirectoryThatOthersMayWriteHasNoParts) {
    make_later_parts();
    const auto refused = [&](const std::vector<std::string>& options, const std::string& path,
                             const std::string& why) {
        const Finished finished = find(options);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_EQ(finished.err,
                  fmt::format("gloved-neighbors: {}: {}, so parts there may be anybody's; remove "
                              "it, or choose another directory with --parts\n",
                              path, why));
        EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
    };
    for (const mode_t mode : {01777U, 0775U, 0707U}) {
        ASSERT_EQ(::chmod(parts_.c_str(), mode), 0);
        const auto why = fmt::format("can be written by {} (mode {:04o})",
                                     mode == 0775 ? "its group" : "everybody", mode);
        refused({}, parts_, why);
        refused({"--part", "1/3"}, parts_, why);
        refused({"--join", "--parts", parts_}, parts_, why);
    }
    ASSERT_EQ(::chmod(parts_.c_str(), 0755), 0);
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(parts_.c_str(), 65534, 0), 0);
        refused({}, parts_, "belongs to user 65534, who is neither this user nor root");
        ASSERT_EQ(::chown(parts_.c_str(), 0, 0), 0);
    }
    // A link of the default name may lead anywhere; one that the user names is the user's.
    fs::rename(parts_, dir_ / "elsewhere");
    fs::create_symlink(dir_ / "elsewhere", parts_);
    EXPECT_EQ(find().exit_code, 1);
    const Finished finished = find({"--parts", parts_});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.err.find("2 of 3 parts are there already"), std::string::npos)
        << finished.err;
    EXPECT_TRUE(read_file(model_ + "/neighbors") == *wanted_);
}

TEST_F(NeighborsProgram, AGroupMaySharePartsInADirectoryThatSaysSo) {
    fs::create_directory(parts_);
    ASSERT_EQ(::chmod(parts_.c_str(), 02770), 0);
    make_later_parts();
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(part(1).c_str(), 65534, 0), 0);
    }
    ASSERT_EQ(::chmod(part(2).c_str(), 0660), 0);
    const Finished finished = find();
    EXPECT_NE(finished.err.find("2 of 3 parts are there already"), std::string::npos)
        << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsProgram, APartThatEverybodyMayWriteIsNoGroupsPart) {
    fs::create_directory(parts_);
    ASSERT_EQ(::chmod(parts_.c_str(), 02775), 0);
    make_later_parts();
    ASSERT_EQ(::chmod(part(2).c_str(), 0666), 0);
    const Finished finished = find();
    EXPECT_NE(
        finished.err.find(part(2) + ": can be written by everybody (mode 0666), so it is not"),
        std::string::npos)
        << finished.err;
    EXPECT_NE(finished.err.find("1 of 3 parts are there already"), std::string::npos)
        << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsProgram, MakesADirectoryAndPartsThatNobodyElseMayWrite) {
    ASSERT_EQ(run({"sh", "-c", "umask 0; exec \"$@\"", "sh", program("gloved-neighbors"),
                   "--part-rows", std::to_string(kPartRows), "--part", "1/3", model_})
                  .exit_code,
              0);
    EXPECT_EQ(fs::status(parts_).permissions(), fs::perms(0700));
    EXPECT_EQ(fs::status(part(0)).permissions(), fs::perms(0444));
    EXPECT_EQ(fs::status(parts_ + "/.lock").permissions(), fs::perms(0600));
}

TEST_F(NeighborsProgram, TwoRunsDoNotMix) {
    fs::create_directory(parts_);
    const UniqueFd held(::open((parts_ + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(held);
    ASSERT_EQ(::flock(held.get(), LOCK_SH), 0);
    const Finished finished = find();
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("another gloved-neighbors works there"), std::string::npos)
        << finished.err;
    EXPECT_EQ(find({"--part", "1/3"}).exit_code, 0);
}

TEST_F(NeighborsProgram, PartsOfAModelThatWasReplacedGo) {
    make_later_parts();
    const std::string old_part = part(1);
    write_file(parts_ + "/.neighbors-0123456789abcdef-k10-0-512.gloved-1-0", "");
    // Not gloved's.
    write_file(parts_ + "/neighbors-0123456789abcdef-k10-0-512", "a thesis");
    fs::remove_all(model_);
    make_model(model_, random_entries(kRows, kDim, 2));
    ASSERT_EQ(find({"--part", "1/3"}).exit_code, 0);
    EXPECT_TRUE(fs::exists(old_part));  // somebody may use it
    ASSERT_EQ(find({"--k", "12", "--part", "1/1"}).exit_code, 0);
    const Finished finished = find();
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(parts_))
        left.push_back(entry.path().filename());
    // Parts of this model stay, and go once their file is stored.
    EXPECT_EQ(left.size(), 4U);
    EXPECT_EQ(read_file(parts_ + "/neighbors-0123456789abcdef-k10-0-512"), "a thesis");
    fs::remove(parts_ + "/neighbors-0123456789abcdef-k10-0-512");
    EXPECT_EQ(find({"--k", "12"}).exit_code, 0);
    EXPECT_FALSE(fs::exists(parts_));
}

TEST_F(NeighborsProgram, PartsOfFewerNeighboursThanAreStoredGo) {
    ASSERT_EQ(find({"--k", "5", "--part", "2/3"}).exit_code, 0);
    expect_made(find());
}

TEST_F(NeighborsProgram, PartsOfOtherModelsStayInADirectoryThatTheUserNames) {
    ASSERT_EQ(find({"--part", "1/1", "--parts", dir_ / "p"}).exit_code, 0);
    make_model(dir_ / "other", random_entries(kRows, kDim, 2));
    ASSERT_EQ(run(command({"--parts", dir_ / "p"}, dir_ / "other")).exit_code, 0);
    const Finished finished = find({"--parts", dir_ / "p"});
    EXPECT_NE(finished.err.find("3 of 3 parts are there already"), std::string::npos)
        << finished.err;
    EXPECT_TRUE(fs::is_empty(dir_ / "p"));
}

TEST_F(NeighborsProgram, OfTheWorkingDirectoryKeepsItsPartsBesideIt) {
    const Finished finished =
        run({"sh", "-c", "cd \"$1\" && exec \"$2\" --part-rows 512 --part 1/3 .", "sh", model_,
             program("gloved-neighbors")});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_TRUE(fs::exists(part(0)));
}

TEST_F(NeighborsProgram, KeepsAFileThatHasEnoughAndReplacesOneThatHasNot) {
    ASSERT_EQ(find().exit_code, 0);
    const auto made = fs::last_write_time(model_ + "/neighbors");
    const Finished again = find({"--k", "5"});
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_NE(again.err.find("10 neighbours of 1124 words are there already"), std::string::npos)
        << again.err;
    EXPECT_EQ(fs::last_write_time(model_ + "/neighbors"), made);
    ASSERT_EQ(find({"--k", "12"}).exit_code, 0);
    const auto model = format::Model::open(model_);
    const auto opened = format::Neighbors::open(*model);
    ASSERT_TRUE(opened && *opened);
    EXPECT_EQ((*opened)->k(), 12U);
    // A list for a smaller k is its beginning.
    std::vector<Row> shorter;
    for (std::size_t row = 0; row < kRows; ++row) {
        const auto list = (*opened)->lists().subspan(row * 12, 10);
        shorter.insert(shorter.end(), list.begin(), list.end());
    }
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(shorter.data()), shorter.size() * 4),
              wanted_->substr(format::kHeaderBytes, shorter.size() * 4));
}

TEST_F(NeighborsProgram, MakesADamagedFileAgain) {
    ASSERT_EQ(find().exit_code, 0);
    fs::resize_file(model_ + "/neighbors", 5000);
    const Finished finished = find();
    EXPECT_NE(finished.err.find("truncated or appended to"), std::string::npos) << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsProgram, MakesAFileWithDamagedListsAgain) {
    std::string flipped = *wanted_;
    flipped[format::kHeaderBytes + 12345] ^= 1;
    write_file(model_ + "/neighbors", flipped);
    const Finished finished = find();
    EXPECT_NE(finished.err.find("the lists have checksum"), std::string::npos) << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsProgram, RefusesBeforeItComputes) {
    write_file(model_ + "/neighbors", "a thesis with an unlucky name");
    const Finished foreign = find();
    EXPECT_EQ(foreign.exit_code, 1);
    EXPECT_NE(foreign.err.find(model_ + "/neighbors: gloved did not make this file"),
              std::string::npos)
        << foreign.err;
    EXPECT_FALSE(fs::exists(parts_));
    EXPECT_EQ(read_file(model_ + "/neighbors"), "a thesis with an unlucky name");
    fs::remove(model_ + "/neighbors");

    EXPECT_EQ(find({"--output", dir_ / "missing/o.tsv"}).exit_code, 1);
    EXPECT_EQ(find({"--compare", dir_ / "missing"}).exit_code, 1);
    EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
    EXPECT_FALSE(fs::exists(parts_));

    fs::create_directory(parts_);
    write_file(part(2), "a thesis with an unlucky name");
    EXPECT_EQ(find().exit_code, 1);
    EXPECT_FALSE(fs::exists(part(0)));
}

/// A model that this user may only read, and runs on it.
class NeighborsReadOnly : public NeighborsProgram {
  protected:
    NeighborsReadOnly() { fs::permissions(model_, fs::perms(0555)); }
    ~NeighborsReadOnly() override { fs::permissions(model_, fs::perms(0755)); }

    Finished find_as_reader(const std::vector<std::string>& options) const {
        auto asked = command(options, model_);
        if (::geteuid() == 0) {
            // Root may write what it likes, so without its capability.
            asked.insert(asked.begin(), {"setpriv", "--bounding-set", "-dac_override", "--inh-caps",
                                         "-dac_override"});
        }
        return run(asked);
    }
    /// What the options print of a model that has its neighbors.
    Finished find_stored(const std::vector<std::string>& options) const {
        return run(command(options, *shared_ / "m"));
    }
};

TEST_F(NeighborsReadOnly, SaysSoBeforeItComputes) {
    for (const auto& options : {std::vector<std::string>{}, {"--join"}}) {
        const Finished finished = find_as_reader(options);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_EQ(finished.err,
                  fmt::format("gloved-neighbors: {}/neighbors.new: cannot create: Permission "
                              "denied; gloved-neighbors --output, --hubs, --mutual and --compare "
                              "work without storing\n",
                              model_));
        EXPECT_FALSE(fs::exists(parts_));
    }
}

TEST_F(NeighborsReadOnly, IsToldOfWithoutStoring) {
    const std::string said = fmt::format(
        "gloved-neighbors: {}/neighbors.new: cannot create: Permission denied; the lists are not "
        "stored",
        model_);
    for (const auto& options :
         {std::vector<std::string>{"--output", "-"}, {"--hubs"}, {"--mutual", "--output", "-"}}) {
        const Finished finished = find_as_reader(options);
        EXPECT_EQ(finished.exit_code, 0);
        EXPECT_TRUE(finished.out == find_stored(options).out) << options[0];
        EXPECT_TRUE(finished.err.starts_with(said + "\n")) << finished.err;
    }
    const Finished compared = find_as_reader({"--compare", model_});
    EXPECT_EQ(compared.exit_code, 0) << compared.err;
    EXPECT_NE(compared.out.find("mean share in common\t1.0000\n"), std::string::npos)
        << compared.out;
    EXPECT_FALSE(fs::exists(parts_));

    // A directory of parts saves computing them again.
    const std::vector<std::string> kept = {"--hubs", "--parts", dir_ / "p"};
    const Finished first = find_as_reader(kept);
    EXPECT_TRUE(
        first.err.starts_with(fmt::format("{}, and {} keeps the parts\n", said, dir_ / "p")))
        << first.err;
    const Finished second = find_as_reader(kept);
    EXPECT_NE(second.err.find("3 of 3 parts are there already"), std::string::npos) << second.err;
    EXPECT_TRUE(second.out == find_stored({"--hubs"}).out);
    EXPECT_TRUE(find_as_reader({"--join", "--output", "-", "--parts", dir_ / "p"}).out ==
                find_stored({"--output", "-"}).out);
    EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
}

TEST_F(NeighborsProgram, WithoutRoomForTheFileKeepsTheParts) {
    // Each part has less, the file more.
    auto asked = command({}, model_);
    asked.insert(asked.begin(), {"prlimit", "--fsize=30000"});
    const Finished finished = run(asked);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find(model_ + "/neighbors.new: "), std::string::npos) << finished.err;
    EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
    EXPECT_FALSE(fs::exists(model_ + "/neighbors.new"));
    const Finished again = find();
    EXPECT_NE(again.err.find("3 of 3 parts are there already"), std::string::npos) << again.err;
    expect_made(again);
}

TEST_F(NeighborsProgram, FindsWhatAPlainSearchFindsInAHardModel) {
    const std::string hard = dir_ / "hard";
    ASSERT_EQ(
        run({program("gloved-make-hard-model"), "--rows", "1500", "--dim", "20", "--out", hard})
            .exit_code,
        0);
    ASSERT_EQ(run(command({"--threads", "2"}, hard)).exit_code, 0);
    const std::string made = read_file(hard + "/neighbors");
    const Finished checked = run({program("gloved-verify"), "--neighbors", "all", hard});
    EXPECT_EQ(checked.exit_code, 0) << checked.out;
    EXPECT_NE(checked.out.find("ok      lists of neighbors: 1500 of 1500"), std::string::npos)
        << checked.out;
    fs::remove(hard + "/neighbors");
    ASSERT_EQ(run(command({"--threads", "1"}, hard)).exit_code, 0);
    EXPECT_TRUE(read_file(hard + "/neighbors") == made);
}

TEST_F(NeighborsProgram, NeverStoresListsInAModelThatReplacedTheirs) {
    // Many small parts, so that the run still computes when the first is there.
    const std::string first = part(0).substr(0, part(0).rfind('-')) + "-4";
    make_model(dir_ / "new", random_entries(10, 3, 2));
    Background finding({program("gloved-neighbors"), "--part-rows", "4", model_});
    while (!fs::exists(first) && finding.running())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fs::rename(model_, dir_ / "aside");
    fs::rename(dir_ / "new", model_);
    const Finished finished = finding.wait();
    ASSERT_FALSE(fs::exists(dir_ / "aside/neighbors")) << "the run was over before";
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find(model_ + ": the model was replaced while its neighbors were made"),
              std::string::npos)
        << finished.err;
    EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
    EXPECT_FALSE(fs::exists(model_ + "/neighbors.new"));
}

TEST_F(NeighborsProgram, HasListsAsLongAsThereAreOthers) {
    const TempDir dir;
    const auto model = make_model(dir / "m", {{"a", {1, 0}}, {"b", {0, 0}}, {"c", {1, 1}}});
    const Finished finished = run({program("gloved-neighbors"), "--k", "1024", dir / "m"});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const auto opened = format::Neighbors::open(model);
    ASSERT_TRUE(opened && *opened);
    EXPECT_TRUE((*opened)->verify());
    EXPECT_TRUE(std::ranges::equal((*opened)->of(0), std::vector<Row>{2, 1}));
    EXPECT_TRUE((*opened)->of(1).empty());
    EXPECT_TRUE(std::ranges::equal((*opened)->of(2), std::vector<Row>{0, 1}));
    const TempDir single;
    const auto one = make_model(single / "m", {{"a", {1, 0}}});
    ASSERT_EQ(run({program("gloved-neighbors"), single / "m"}).exit_code, 0);
    const auto lonely = format::Neighbors::open(one);
    ASSERT_TRUE(lonely && *lonely);
    EXPECT_TRUE((*lonely)->of(0).empty());
}

/// A model of four words, one of which is zero.
class NeighborsOutput : public testing::Test {
  protected:
    NeighborsOutput() {
        make_model(dir_ / "m",
                   {{"east", {1, 0}}, {"zero", {0, 0}}, {"north", {0, 1}}, {"north-east", {1, 1}}});
    }
    Finished find(std::vector<std::string> options, const std::string& input = {}) const {
        options.insert(options.begin(), program("gloved-neighbors"));
        options.push_back(dir_ / "m");
        return run(options, input);
    }
    static std::string numbers(const std::vector<std::int32_t>& values) {
        return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
    }

    const TempDir dir_;
};

// Rows: 0 east, 1 north, 2 north-east, 3 zero.
TEST_F(NeighborsOutput, HasTheStoredListsInEachFormat) {
    const Finished tsv = find({"--output", "-"});
    EXPECT_EQ(tsv.exit_code, 0) << tsv.err;
    EXPECT_EQ(tsv.out,
              "east\tnorth-east\t0.707107\neast\tnorth\t0.000000\neast\tzero\t0.000000\n"
              "north\tnorth-east\t0.707107\nnorth\teast\t0.000000\nnorth\tzero\t0.000000\n"
              "north-east\teast\t0.707107\nnorth-east\tnorth\t0.707107\n"
              "north-east\tzero\t0.000000\n");
    EXPECT_EQ(find({"--output", "-", "--k", "1", "--format", "csv"}).out,
              "word,neighbour,score\neast,north-east,0.707107\nnorth,north-east,0.707107\n"
              "north-east,east,0.707107\nzero,,\n");
    EXPECT_EQ(find({"--output", "-", "--k", "1", "--format", "edges"}).out,
              "0\t2\t0.707107\n1\t2\t0.707107\n2\t0\t0.707107\n");
    ASSERT_EQ(find({"--output", dir_ / "o.ivecs", "--k", "2"}).exit_code, 0);
    EXPECT_EQ(read_file(dir_ / "o.ivecs"), numbers({2, 2, 1, 2, 2, 0, 2, 0, 1, 2, -1, -1}));
    ASSERT_EQ(find({"--output", dir_ / "o.npy", "--k", "2"}).exit_code, 0);
    const std::string array = read_file(dir_ / "o.npy");
    EXPECT_NE(array.find("'descr': '<i4'"), std::string::npos);
    EXPECT_NE(array.find("'shape': (4, 2)"), std::string::npos);
    EXPECT_EQ(array.substr(array.size() - 32), numbers({2, 1, 2, 0, 0, 1, -1, -1}));
}

TEST_F(NeighborsOutput, SaysThatANameIsNotThatOfItsForm) {
    const auto said = [&](std::vector<std::string> options, const std::string& name) {
        options.insert(options.end(), {"--output", dir_ / name});
        const Finished finished = find(options, "north\n");
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
        return finished.err.find(fmt::format("{}: TABs stand between its values, not commas",
                                             dir_ / name)) != std::string::npos;
    };
    EXPECT_TRUE(said({"--format", "tsv"}, "o.csv"));
    EXPECT_TRUE(said({"--queries", "-", "--format", "edges"}, "o.csv"));
    EXPECT_FALSE(said({}, "o.csv"));
    EXPECT_FALSE(said({"--queries", "-"}, "o.csv"));
    EXPECT_FALSE(said({"--hubs"}, "o.csv"));
    EXPECT_FALSE(said({"--format", "npy"}, "o.csv"));
    EXPECT_FALSE(said({}, "o.tsv"));
}

TEST_F(NeighborsOutput, SkipsWordsAndIgnoresCase) {
    const auto ask = [&](const std::string& format) {
        return find({"--queries", "-", "--unknown", "skip", "--case", "ignore", "--k", "1",
                     "--output", "-", "--format", format},
                    "NORTH\nwe,st\nEast\n");
    };
    const Finished table = ask("csv");
    EXPECT_EQ(table.out,
              "word,neighbour,score\nNORTH,north-east,0.707107\n\"we,st\",,\n"
              "East,north-east,0.707107\n");
    EXPECT_NE(table.err.find("1 word is not in the model and without numbers: \"we,st\" (line 2)"),
              std::string::npos)
        << table.err;
    EXPECT_EQ(ask("edges").out, "0\t2\t0.707107\n2\t2\t0.707107\n");
    EXPECT_EQ(ask("ivecs").out, numbers({1, 2, 1, -1, 1, 2}));
    EXPECT_EQ(find({"--unknown", "skip"}).exit_code, 2);
    const Finished unknown = find({"--queries", "-", "--output", "-"}, "north\nwest\n");
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_NE(unknown.err.find("line 2: \"west\" is not in the model"), std::string::npos);
    EXPECT_NE(unknown.err.find("--unknown skip"), std::string::npos);
}

TEST_F(NeighborsOutput, AnswersQueriesInEachFormat) {
    // A word is not its own neighbour; a vector may be any word's.
    EXPECT_EQ(find({"--queries", "-", "--output", "-", "--k", "1"}, "north\nzero\neast\n").out,
              "north\tnorth-east\t0.707107\neast\tnorth-east\t0.707107\n");
    EXPECT_EQ(find({"--queries", "-", "--query-format", "glove", "--output", "-", "--k", "1"},
                   "up 0 2\nnothing 0 0\n")
                  .out,
              "up\tnorth\t1.000000\n");
    EXPECT_EQ(find({"--queries", "-", "--query-format", "numbers", "--output", "-", "--k", "1",
                    "--format", "edges"},
                   "0 2\n3 0\n")
                  .out,
              "0\t1\t1.000000\n1\t0\t1.000000\n");
    const float up[] = {0, 2};
    const std::string record =
        numbers({2}) + std::string(reinterpret_cast<const char*>(up), sizeof up);
    write_file(dir_ / "q.fvecs", record + record);
    ASSERT_EQ(
        find({"--queries", dir_ / "q.fvecs", "--output", dir_ / "o.ivecs", "--k", "6"}).exit_code,
        0);
    EXPECT_EQ(read_file(dir_ / "o.ivecs"), numbers({6, 1, 2, 0, 3, -1, -1, 6, 1, 2, 0, 3, -1, -1}));
    EXPECT_FALSE(fs::exists(dir_ / "m/neighbors"));
}

TEST_F(NeighborsOutput, TellsOfHubsPairsAndOtherModels) {
    const Finished hubs = find({"--hubs", "--k", "1", "--show", "2"});
    EXPECT_EQ(hubs.exit_code, 0) << hubs.err;
    EXPECT_EQ(hubs.out,
              "words\t4\nneighbours\t1\nmean occurrences\t0.750\nstandard deviation\t0.829\n"
              "skewness\t0.493\nnobody's neighbour\t2\t50.00 %\n"
              "places of the most frequent 1 %\t66.67 %\n\noccurrences\tword\n"
              "2\tnorth-east\n1\teast\n");
    ASSERT_EQ(find({"--hubs", "--k", "1", "--output", dir_ / "hubs"}).exit_code, 0);
    EXPECT_EQ(read_file(dir_ / "hubs"), "2\tnorth-east\n1\teast\n0\tzero\n0\tnorth\n");
    ASSERT_EQ(find({"--hubs", "--k", "1", "--output", dir_ / "hubs.csv"}).exit_code, 0);
    EXPECT_EQ(read_file(dir_ / "hubs.csv"),
              "occurrences,word\n2,north-east\n1,east\n0,zero\n0,north\n");
    EXPECT_EQ(find({"--mutual", "--k", "1", "--output", "-", "--format", "csv"}).out,
              "word,neighbour,score\neast,north-east,0.707107\n");
    EXPECT_EQ(find({"--mutual", "--k", "1", "--output", "-"}).out, "east\tnorth-east\t0.707107\n");
    EXPECT_EQ(find({"--mutual", "--k", "1", "--output", "-", "--format", "edges"}).out,
              "0\t2\t0.707107\n");
    ASSERT_EQ(find({"--mutual", "--k", "2", "--output", dir_ / "pairs.npy"}).exit_code, 0);
    const std::string array = read_file(dir_ / "pairs.npy");
    EXPECT_NE(array.find("'shape': (3, 2)"), std::string::npos);
    EXPECT_EQ(array.substr(array.size() - 24), numbers({0, 1, 0, 2, 1, 2}));

    make_model(dir_ / "other", {{"east", {1, 0}}, {"north", {0, 1}}, {"south-east", {1, -1}}});
    const Finished compared = find({"--compare", dir_ / "other", "--k", "1"});
    EXPECT_EQ(compared.exit_code, 0) << compared.err;
    EXPECT_EQ(compared.out,
              "words in both\t2\nwords\t4\t3\nneighbours\t1\nmean share in common\t0.0000\n"
              "median\t0.0000\nall in common\t0\t0.00 %\nnone in common\t2\t100.00 %\n\n"
              "shared\tword\n0\teast\n0\tnorth\n");
    ASSERT_EQ(
        find({"--compare", dir_ / "other", "--k", "2", "--output", dir_ / "common"}).exit_code, 0);
    EXPECT_EQ(read_file(dir_ / "common"), "1\teast\n1\tnorth\n");
    make_model(dir_ / "strangers", {{"x", {1, 0}}, {"y", {0, 1}}});
    const Finished strangers = find({"--compare", dir_ / "strangers"});
    EXPECT_EQ(strangers.exit_code, 1);
    EXPECT_NE(strangers.err.find("have no words with neighbours in common"), std::string::npos);
}

TEST_F(NeighborsOutput, SaysWhatIsWrong) {
    const auto fails = [&](const std::vector<std::string>& options, const std::string& input,
                           int status, const std::string& what) {
        const Finished finished = find(options, input);
        EXPECT_EQ(finished.exit_code, status) << what;
        EXPECT_NE(finished.err.find(what), std::string::npos) << finished.err;
    };
    fails({"--queries", "-"}, "north\n", 2, "--queries needs --output");
    fails({"--format", "npy"}, "", 2, "--format");
    fails({"--output", "-", "--part", "1/2"}, "", 2, "--part");
    fails({"--mutual"}, "", 2, "--mutual needs --output");
    fails({"--show", "3"}, "", 2, "--show needs --hubs or --compare");
    fails({"--show", "3", "--hubs", "--output", dir_ / "o"}, "", 2, "and no --output");
    fails({"--hubs", "--output", dir_ / "o.npy"}, "", 2, "--hubs and --compare write text");
    fails({"--hubs", "--mutual", "--output", "-"}, "", 2, "--hubs");
    fails({"--queries", "-", "--output", "-"}, "north\nsouth\n", 1,
          "-: line 2: \"south\" is not in the model");
    fails({"--queries", "-", "--output", "-"}, "", 1, "holds no words");
    fails({"--queries", "-", "--query-format", "numbers", "--output", "-"}, "1 2 3\n", 1,
          "-: has 3 numbers a query; the model's words have 2");
    write_file(dir_ / "q.fvecs", numbers({3, 0, 0, 0}));
    fails({"--queries", dir_ / "q.fvecs", "--output", "-"}, "", 1,
          "record 0 says that it has 3 numbers; the model's words have 2");
    fs::remove(dir_ / "q.fvecs");
    write_file(dir_ / "q.fvecs", numbers({2, 0}));
    fails({"--queries", dir_ / "q.fvecs", "--output", "-"}, "", 1, "ends within record 0");
    fails({"--queries", "-", "--query-format", "glove", "--output", dir_ / "o"}, "x nan 1\n", 1,
          "line 1");
    fails({"--output", dir_ / "m/o.tsv"}, "", 1, "lies in a model's directory");
    fails({"--output", dir_ / "missing/o.tsv"}, "", 1, "missing");
    EXPECT_FALSE(fs::exists(dir_ / "o"));
}

TEST_F(NeighborsProgram, SaysWhatIsWrong) {
    const auto usage = [&](const std::vector<std::string>& options, const std::string& what) {
        const Finished finished = find(options);
        EXPECT_EQ(finished.exit_code, 2) << what;
        EXPECT_NE(finished.err.find(what), std::string::npos) << finished.err;
    };
    usage({"--k", "1025"}, "--k");
    usage({"--part", "4/3"}, "--part takes I/N, with I from 1 to N, such as 2/8");
    usage({"--part", "0/3"}, "--part takes I/N");
    usage({"--part", "1/3x"}, "--part takes I/N");
    usage({"--join", "--part", "1/3"}, "--join");
    usage({"--engine", "abacus"}, "--engine");
    const Finished inside = find({"--parts", model_});
    EXPECT_EQ(inside.exit_code, 1);
    EXPECT_NE(inside.err.find(model_ + ": is a model's directory; choose another directory"),
              std::string::npos)
        << inside.err;
    EXPECT_FALSE(fs::exists(model_ + "/.lock"));
    const Finished missing = run({program("gloved-neighbors"), dir_ / "no such model"});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("no such model"), std::string::npos);
    const Finished nowhere = find({"--parts", dir_ / "missing/parts"});
    EXPECT_EQ(nowhere.exit_code, 1);
    EXPECT_NE(nowhere.err.find("missing/parts: cannot create the directory of the parts"),
              std::string::npos)
        << nowhere.err;
}

}  // namespace
}  // namespace gloved::tests
