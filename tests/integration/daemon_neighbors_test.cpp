// Answers from a model's neighbors file: the engine's bytes, and what a damaged file cannot do.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;
using format::Row;

constexpr std::size_t kRows = 200;
constexpr std::size_t kLength = 10;

class StoredAnswers : public testing::Test {
  protected:
    StoredAnswers() {
        auto entries = random_entries(kRows, 6, 1);
        entries[3].second.assign(6, 0.0F);
        entries[5].second = entries[4].second;
        make_model(model_, entries);
        EXPECT_EQ(run({program("gloved-neighbors"), model_}).exit_code, 0);
        file_ = read_file(path_);
    }

    /// Replaces the file by one in which `change` was made to the list of w7, under right
    /// checksums.
    void damage(const std::function<void(std::span<Row> list)>& change) const {
        std::string file = file_;
        const auto row = *format::Model::open(model_)->find("w7");
        std::vector<Row> list(kLength);
        char* const at = file.data() + format::kHeaderBytes + row * kLength * sizeof(Row);
        std::memcpy(list.data(), at, kLength * sizeof(Row));
        change(list);
        std::memcpy(at, list.data(), kLength * sizeof(Row));
        seal_neighbors(file, kRows * kLength * sizeof(Row));
        fs::remove(path_);
        write_file(path_, file);
    }

    const TempDir dir_;
    const std::string model_ = dir_ / "m";
    const std::string path_ = model_ + "/neighbors";
    std::string file_;
};

/// A reply without what may differ: the status line, or the members before the hits of JSON.
std::string hits_of(const ReplyText& reply) {
    if (!reply.lines.empty()) return fmt::format("{}", fmt::join(reply.lines, "\n"));
    const std::size_t hits = reply.status.find("\"results\":");
    return hits == std::string::npos ? reply.status : reply.status.substr(hits);
}

TEST_F(StoredAnswers, AreTheEnginesBytes) {
    Daemon daemon(model_);
    Daemon plain(model_, {"--neighbors", "off"});
    Connection stored(daemon.socket_path());
    Connection engine(plain.socket_path());
    for (const char* const form : {"text", "json"}) {
        stored.ask(fmt::format("FORMAT {}", form));
        engine.ask(fmt::format("FORMAT {}", form));
        for (std::size_t word = 0; word < kRows; ++word) {
            for (const char* const options : {"", "k=7 fields=row,norm "}) {
                const std::string request = fmt::format("NEAR {}w{}", options, word);
                const std::string hits = hits_of(stored.ask(request));
                EXPECT_EQ(hits, hits_of(engine.ask(request))) << request;
                EXPECT_NE(hits.find(word == 3 ? "zero_vector" : "w"), std::string::npos) << hits;
            }
        }
    }
}

TEST_F(StoredAnswers, AreInTheOrderOfPipelinedRequests) {
    Daemon daemon(model_);
    Daemon plain(model_, {"--neighbors", "off"});
    Connection stored(daemon.socket_path());
    Connection engine(plain.socket_path());
    // Every third request is the engine's: stored answers behind it must wait.
    std::string requests;
    for (std::size_t word = 0; word < kRows; ++word)
        requests += fmt::format("NEAR {}w{}\n", word % 3 == 0 ? "norm=unit " : "", word);
    stored.send(requests);
    engine.send(requests);
    for (std::size_t word = 0; word < kRows; ++word) {
        const ReplyText reply = stored.read_reply();
        EXPECT_EQ(hits_of(reply), hits_of(engine.read_reply())) << word;
        if (word == 3) continue;  // an error
        EXPECT_EQ(field(reply, "engine"), word % 3 == 0 ? "cpu" : "neighbors") << word;
    }
}

TEST_F(StoredAnswers, OfAModelWithFewerOthersAreAllOfThem) {
    auto entries = random_entries(5, 6, 3);
    entries[2].second.assign(6, 0.0F);  // has no neighbours, but is one with the score 0
    make_model(dir_ / "few", entries);
    ASSERT_EQ(run({program("gloved-neighbors"), dir_ / "few"}).exit_code, 0);
    Daemon daemon(dir_ / "few");
    Daemon plain(dir_ / "few", {"--neighbors", "off"});
    Connection stored(daemon.socket_path());
    Connection engine(plain.socket_path());
    for (std::size_t word = 0; word < 5; ++word) {
        for (const std::size_t k : {1U, 3U, 4U, 9U, 10U}) {
            const std::string request = fmt::format("NEAR k={} w{}", k, word);
            const ReplyText reply = stored.ask(request);
            EXPECT_EQ(hits_of(reply), hits_of(engine.ask(request))) << request;
            if (word == 2) continue;
            EXPECT_EQ(reply.lines.size(), std::min<std::size_t>(k, 4)) << request;
            EXPECT_EQ(field(reply, "engine"), "neighbors") << request;
        }
    }
}

TEST_F(StoredAnswers, AreGivenWhereTheFileHasThem) {
    Daemon daemon(model_);
    Connection connection(daemon.socket_path());
    for (const char* const request :
         {"NEAR w7", "NEAR k=1 w7", "NEAR k=10 norm=raw exclude=inputs w7",
          "NEAR fields=rank w7"}) {
        EXPECT_EQ(field(connection.ask(request), "engine"), "neighbors") << request;
    }
    for (const char* const request :
         {"NEAR k=11 w7", "NEAR norm=unit w7", "NEAR exclude=none w7", "NEAR top=100 w7",
          "NEAR min=0.1 w7", "NEAR prefix=w w7", "NEAR engine=cpu w7", "NEAR engine=auto w7",
          "NEAR 2 * w7", "NEAR - w7", "NEAR w7 + w8", "ANALOGY w7 w8 w9"}) {
        EXPECT_EQ(field(connection.ask(request), "engine"), "cpu") << request;
    }
    const ReplyText certified = connection.ask("NEAR k=4 certify=1 w7");
    EXPECT_EQ(field(certified, "pass"), "neighbors");
    EXPECT_EQ(field(certified, "rescored"), "4");
    EXPECT_EQ(field(certified, "rejected_below"), "");
    const std::string kth = field(certified, "kth");
    ASSERT_EQ(certified.lines.size(), 4U);
    EXPECT_EQ(fmt::format("{:.6f}", std::stod(kth)),
              certified.lines[3].substr(certified.lines[3].find('\t') + 1));
    EXPECT_EQ(connection.ask("NEAR w3").status.rfind("ERR zero_vector", 0), 0U);
    EXPECT_EQ(connection.ask("NEAR w-none").status.rfind("ERR unknown_word", 0), 0U);
    std::string statistics;
    for (const std::string& line : connection.ask("STATS").lines) statistics += line + "\n";
    EXPECT_NE(statistics.find("neighbors_k\t10\n"), std::string::npos);
    EXPECT_NE(statistics.find("answers_neighbors\t5\n"), std::string::npos) << statistics;
}

TEST_F(StoredAnswers, AreOfFewHits) {
    ASSERT_EQ(run({program("gloved-neighbors"), "--k", "150", model_}).exit_code, 0);
    Daemon daemon(model_);
    Connection connection(daemon.socket_path());
    EXPECT_EQ(field(connection.ask("NEAR k=128 w7"), "engine"), "neighbors");
    EXPECT_EQ(field(connection.ask("NEAR k=129 w7"), "engine"), "cpu");
}

TEST_F(StoredAnswers, CannotBeInventedByADamagedFile) {
    Daemon plain(model_, {"--neighbors", "off"});
    const auto wanted = Connection(plain.socket_path()).ask("NEAR w7").lines;
    const Row own = *format::Model::open(model_)->find("w7");
    const std::vector<std::function<void(std::span<Row>)>> damages = {
        [](std::span<Row> list) { list[2] = kRows; },
        [](std::span<Row> list) { list[9] = format::kNoRow - 1; },
        [](std::span<Row> list) { list[9] = format::kNoRow; },
        [&](std::span<Row> list) { list[0] = own; },
        [](std::span<Row> list) { list[4] = list[3]; },
        [](std::span<Row> list) { std::swap(list[0], list[9]); },
        [](std::span<Row> list) { list[0] = format::kNoRow; },
    };
    for (std::size_t i = 0; i < damages.size(); ++i) {
        damage(damages[i]);
        Daemon daemon(model_);
        Connection connection(daemon.socket_path());
        const ReplyText reply = connection.ask("NEAR w7");
        EXPECT_EQ(reply.lines, wanted) << i;
        EXPECT_EQ(field(reply, "engine"), "cpu") << i;
        EXPECT_EQ(field(connection.ask("NEAR w8"), "engine"), "neighbors") << i;
        const Finished finished = daemon.stop();
        EXPECT_NE(finished.err.find(path_ + " or a vector is damaged; the engine answers instead"),
                  std::string::npos)
            << finished.err;
    }
}

// A start trusts the vectors.
TEST_F(StoredAnswers, AreNotMadeOfDamagedVectors) {
    const auto sound = format::Model::open(model_);
    const auto neighbors = format::Neighbors::open(*sound);
    const Row nearest[] = {(**neighbors).of(*sound->find("w7"))[0]};
    damage_rows(model_, nearest);
    Daemon daemon(model_);
    Daemon plain(model_, {"--neighbors", "off"});
    const ReplyText reply = Connection(daemon.socket_path()).ask("NEAR k=1 w7");
    EXPECT_EQ(field(reply, "engine"), "cpu");
    EXPECT_EQ(reply.lines, Connection(plain.socket_path()).ask("NEAR k=1 w7").lines);
}

TEST_F(StoredAnswers, OfAFileThatWasCutShortAreNotUsed) {
    Daemon plain(model_, {"--neighbors", "off"});
    const auto wanted = Connection(plain.socket_path()).ask("NEAR k=1 w99").lines;
    Daemon daemon(model_);
    Connection connection(daemon.socket_path());
    fs::permissions(path_, fs::perms::owner_write, fs::perm_options::add);
    // The rest of the last page reads as zeros: for w99, the last row, as the row 0.
    ASSERT_EQ(::truncate(path_.c_str(), 8192 + 100), 0);
    const ReplyText reply = connection.ask("NEAR k=1 w99");
    EXPECT_EQ(reply.lines, wanted);
    EXPECT_EQ(field(reply, "engine"), "cpu");
}

TEST_F(StoredAnswers, ComeFromTheFileThatAReloadFinds) {
    fs::rename(path_, dir_ / "aside");
    Daemon daemon(model_);
    Connection connection(daemon.socket_path());
    EXPECT_EQ(field(connection.ask("NEAR w7"), "engine"), "cpu");
    fs::rename(dir_ / "aside", path_);
    EXPECT_EQ(connection.ask("RELOAD").status.rfind("OK", 0), 0U);
    EXPECT_EQ(field(connection.ask("NEAR w7"), "engine"), "neighbors");
    // A reload reads all of it, and keeps what it has if that is wrong.
    std::string flipped = file_;
    flipped[format::kHeaderBytes + 5] ^= 1;
    fs::remove(path_);
    write_file(path_, flipped);
    const ReplyText refused = connection.ask("RELOAD");
    EXPECT_NE(refused.status.find("the lists have checksum"), std::string::npos) << refused.status;
    EXPECT_NE(refused.status.find("or start gloved with --neighbors off"), std::string::npos)
        << refused.status;
    EXPECT_EQ(field(connection.ask("NEAR w7"), "engine"), "neighbors");
}

TEST_F(StoredAnswers, OfAnotherModelAreRefused) {
    make_model(dir_ / "other", random_entries(kRows, 6, 2));
    write_file(dir_ / "other/neighbors", file_);
    const std::vector<std::string> check = {program("gloved"), "--check", "--model",
                                            dir_ / "other"};
    const Finished refused = run(check);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find(dir_ / "other/neighbors" + std::string(": of another model")),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("make it again with gloved-neighbors, or start gloved with "
                               "--neighbors off"),
              std::string::npos)
        << refused.err;
    auto without = check;
    without.insert(without.end(), {"--neighbors", "off"});
    EXPECT_EQ(run(without).exit_code, 0);
}

}  // namespace
}  // namespace gloved::tests
