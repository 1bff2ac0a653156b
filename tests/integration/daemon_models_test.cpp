// Several models in one daemon, and models that are reloaded.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

std::string generation_of(const format::Model& model) { return format::hex(model.generation()); }

/// The value of a line «key TAB value» of STATS.
std::string stat(Connection& connection, const std::string& key) {
    for (const std::string& line : connection.ask("STATS").lines) {
        if (line.rfind(key + "\t", 0) == 0) return line.substr(key.size() + 1);
    }
    return "";
}

class Models : public testing::Test {
  protected:
    TempDir dir_;
    format::Model small_ = make_model(dir_ / "small", random_entries(50, 4, 1));
    format::Model large_ = make_model(dir_ / "large", random_entries(90, 7, 2));
    Daemon daemon_{dir_ / "small", {"--model", "other=" + (dir_ / "large")}};
    Connection connection_{daemon_.socket_path()};
};

TEST_F(Models, AreListedTheDefaultFirst) {
    EXPECT_EQ(
        connection_.ask("MODELS").lines,
        (std::vector<std::string>{fmt::format("small\t50\t4\t{}\tcpu", generation_of(small_)),
                                  fmt::format("other\t90\t7\t{}\tcpu", generation_of(large_))}));
}

TEST_F(Models, AreChosenByConnectionAndByRequest) {
    Connection bystander(daemon_.socket_path());
    EXPECT_EQ(field(connection_.ask("NEAR w1"), "model"), "small");
    EXPECT_EQ(connection_.ask("HAS w1 w70").lines, (std::vector<std::string>{"w1\t1", "w70\t0"}));
    const auto used = connection_.ask("USE other");
    EXPECT_EQ(used.status,
              fmt::format("OK 0 rows=90 model=other generation={}", generation_of(large_)));
    EXPECT_EQ(connection_.ask("HAS w1 w70").lines, (std::vector<std::string>{"w1\t1", "w70\t1"}));
    for (const char* request :
         {"NEAR w70", "SIM w1 w70", "MATRIX w70", "VEC w70", "PREFIX w7", "RANK w1 w70"}) {
        const auto reply = connection_.ask(request);
        EXPECT_EQ(field(reply, "model"), "other") << reply.status;
        EXPECT_EQ(field(reply, "generation"), generation_of(large_)) << reply.status;
        EXPECT_EQ(field(reply, "rows"), "90") << reply.status;
    }
    EXPECT_EQ(field(connection_.ask("NEAR model=small w1"), "model"), "small");
    EXPECT_EQ(connection_.ask("NEAR model=small w70").status.rfind("ERR unknown_word \"w70\"", 0),
              0U);
    EXPECT_EQ(stat(connection_, "dim"), "7");
    EXPECT_EQ(connection_.ask("STATS model=small").lines.at(4), "model\tsmall");
    // What one connection uses says nothing about another.
    EXPECT_EQ(field(bystander.ask("w1"), "model"), "small");
}

TEST_F(Models, ThatAreNotThereAreSaidToBe) {
    const std::string wanted = "ERR unknown_model no model \"third\" here: there is small, other";
    for (const char* request : {"USE third", "NEAR model=third w1", "SIM model=third w1 w2",
                                "STATS model=third", "RELOAD third", "HAS model=third w1"}) {
        EXPECT_EQ(connection_.ask(request).status, wanted) << request;
    }
    EXPECT_EQ(field(connection_.ask("NEAR w1"), "model"), "small");
}

TEST_F(Models, OfOneNameAreRefused) {
    const Finished twice = run({program("gloved"), "--model", dir_ / "small", "--model",
                                "small=" + (dir_ / "large"), "--socket", dir_ / "s"});
    EXPECT_EQ(twice.exit_code, 2);
    EXPECT_NE(twice.err.find("two models are called small"), std::string::npos) << twice.err;
}

TEST_F(Models, AreNewOnEveryLoopOnceReloadIsAnswered) {
    const Daemon daemon(dir_ / "small", {"--io-threads", "4"});
    std::vector<std::unique_ptr<Connection>> connections;
    for (int i = 0; i < 8; ++i)
        connections.push_back(std::make_unique<Connection>(daemon.socket_path()));
    EXPECT_EQ(stat(*connections[0], "io_threads"), "4");
    for (unsigned round = 0; round < 20; ++round) {
        const format::Model next = make_model(dir_ / "small", random_entries(60, 5, round));
        Connection& asker = *connections[round % connections.size()];
        ASSERT_EQ(asker.ask("RELOAD").status, "OK 1");
        for (auto& connection : connections) {
            ASSERT_EQ(field(connection->ask("SIM w1 w2"), "generation"), generation_of(next))
                << "round " << round;
        }
    }
}

TEST_F(Models, AreLoadedAnewBetweenRequests) {
    const std::string before = generation_of(small_);
    const format::Model next = make_model(dir_ / "small", random_entries(60, 5, 3));
    ASSERT_NE(generation_of(next), before);
    ASSERT_TRUE(connection_.send("NEAR w1\nRELOAD small\nNEAR w1\n"));
    // The old one answers until the new one is there.
    EXPECT_EQ(field(connection_.read_reply(), "generation"), before);
    const auto loaded = connection_.read_reply();
    EXPECT_EQ(loaded.status, "OK 1");
    EXPECT_EQ(loaded.lines,
              std::vector<std::string>{fmt::format("small\t60\t5\t{}\tcpu", generation_of(next))});
    EXPECT_EQ(field(connection_.read_reply(), "generation"), generation_of(next));
    EXPECT_EQ(connection_.ask("VEC w59").lines.size(), 1U);
    EXPECT_EQ(stat(connection_, "reloads"), "1");

    // The old one goes when its last answer is given, mapping and all.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto old_mappings = [&] {
        std::ifstream maps("/proc/" + std::to_string(daemon_.process().pid()) + "/maps");
        int found = 0;
        for (std::string line; std::getline(maps, line);) {
            found += line.find("(deleted)") != std::string::npos &&
                             line.find("values") != std::string::npos
                         ? 1
                         : 0;
        }
        return found;
    };
    while ((stat(connection_, "retired_models") != "0" || old_mappings() != 0) &&
           std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(stat(connection_, "retired_models"), "0");
    EXPECT_EQ(old_mappings(), 0);
}

// Each holds memory, so there are never many at once: not even when nobody waits for their end.
TEST_F(Models, AreLoadedOneAtATimeHoweverOftenItIsAsked) {
    std::string all;
    for (int i = 0; i < 30; ++i) all += "RELOAD\nHAS w1\n";
    connection_.ask("NEAR w1");
    // Meanwhile the files change again and again, so that most reloads replace more than lists.
    const std::jthread writer([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            for (const char* name : {"small/values", "large/values"}) {
                std::filesystem::last_write_time(dir_ / name,
                                                 std::filesystem::file_time_type::clock::now());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    ASSERT_TRUE(connection_.send(all));
    for (int i = 0; i < 30; ++i) {
        ASSERT_EQ(connection_.read_reply().lines.size(), 2U);
        ASSERT_EQ(connection_.read_reply().lines, std::vector<std::string>{"w1\t1"});
        if (i % 5 == 0) {
            Connection other(daemon_.socket_path());
            EXPECT_LE(std::stoi(stat(other, "retired_models")), 1);
        }
    }
    EXPECT_EQ(stat(connection_, "reloads"), "60");
    EXPECT_EQ(stat(connection_, "batches"), "0");  // of an engine that was replaced
}

// Whoever takes an answer slowly may hold one that was replaced, until the next one wants its room.
TEST_F(Models, ThatWereReplacedAreNotHeldByMoreThanOneSlowReader) {
    std::string large = "MATRIX";
    for (int i = 0; i < 4096; ++i) large += " w1";
    Connection first(daemon_.socket_path());
    Connection second(daemon_.socket_path());
    // As if the files had been written again.
    const auto touch = [&] {
        std::filesystem::last_write_time(dir_ / "small/values",
                                         std::filesystem::file_time_type::clock::now());
    };
    ASSERT_TRUE(first.send(large + "\n"));
    ASSERT_TRUE(first.read_line());
    touch();
    EXPECT_EQ(connection_.ask("RELOAD small").status, "OK 1");
    EXPECT_EQ(stat(connection_, "retired_models"), "1");
    ASSERT_TRUE(second.send(large + "\n"));
    ASSERT_TRUE(second.read_line());
    touch();
    EXPECT_EQ(connection_.ask("RELOAD small").status, "OK 1");
    EXPECT_EQ(stat(connection_, "retired_models"), "1");
    EXPECT_EQ(stat(connection_, "cut_write_timeout"), "1");
    int lines = 1;
    while (first.read_line()) ++lines;
    EXPECT_LT(lines, 4096);
    while (second.read_line()) ++lines;
    EXPECT_GE(lines, 4096);
}

TEST_F(Models, OfWhichListsAloneWereReplacedCutNobodyOff) {
    std::string large = "MATRIX";
    for (int i = 0; i < 4096; ++i) large += " w1";
    Connection reader(daemon_.socket_path());
    ASSERT_TRUE(reader.send(large + "\n"));
    ASSERT_TRUE(reader.read_line());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(connection_.ask("RELOAD small").status, "OK 1");
    EXPECT_EQ(stat(connection_, "cut_write_timeout"), "0");
    int lines = 1;
    while (lines <= 4096 && reader.read_line()) ++lines;
    EXPECT_EQ(lines, 4097);
}

TEST_F(Models, AreAllLoadedAnewWithoutAName) {
    const format::Model small = make_model(dir_ / "small", random_entries(61, 5, 4));
    const format::Model large = make_model(dir_ / "large", random_entries(91, 8, 5));
    const auto loaded = connection_.ask("RELOAD");
    EXPECT_EQ(loaded.lines, (std::vector<std::string>{
                                fmt::format("small\t61\t5\t{}\tcpu", generation_of(small)),
                                fmt::format("other\t91\t8\t{}\tcpu", generation_of(large))}));
    EXPECT_EQ(loaded.lines, connection_.ask("MODELS").lines);
}

TEST_F(Models, AreLoadedAnewOnSighup) {
    const format::Model next = make_model(dir_ / "large", random_entries(92, 3, 6));
    daemon_.process().signal(SIGHUP);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (stat(connection_, "reloads") != "2" && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(field(connection_.ask("SIM model=other w1 w2"), "generation"), generation_of(next));
}

TEST_F(Models, ThatAreDamagedLeaveTheOldOnesServing) {
    const std::string before = connection_.ask("NEAR w1").normalised();
    const auto unharmed = [&](const std::string& what) {
        const auto reply = connection_.ask("RELOAD small");
        EXPECT_EQ(reply.status.rfind(
                      "ERR unavailable small: reload failed, the old model keeps serving: ", 0),
                  0U)
            << what << ": " << reply.status;
        EXPECT_EQ(connection_.ask("NEAR w1").normalised(), before) << what;
    };
    // A bit of a vector, which only the checksum tells.
    make_model(dir_ / "small", random_entries(50, 4, 8));
    {
        const std::string values = dir_ / "small/values";
        ASSERT_EQ(::chmod(values.c_str(), 0600), 0);
        std::fstream file(values, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(values)) - 4096);
        file.put('\x55');
    }
    unharmed("a changed byte");
    std::filesystem::remove(dir_ / "small/keys");
    unharmed("no keys");
    std::filesystem::remove_all(dir_ / "small");
    unharmed("no directory");
    EXPECT_EQ(stat(connection_, "failed_reloads"), "3");
    // And all is well again with a sound one.
    make_model(dir_ / "small", random_entries(50, 4, 9));
    EXPECT_EQ(connection_.ask("RELOAD").status, "OK 2");
}

// Its header alone says how large it is: no machine has the memory.
TEST_F(Models, ThatDoNotFitIntoMemoryAreRefusedBeforeTheyAreRead) {
    const std::string before = connection_.ask("NEAR w1").normalised();
    const std::string path = dir_ / "small/values";
    std::string values = read_file(path);
    auto header = format::decode_header(std::as_bytes(std::span(values)));
    ASSERT_TRUE(header);
    header->rows = format::kMaxRows;
    header->dim = format::kMaxDim;
    std::uint64_t end = format::kHeaderBytes;
    for (format::Section& section : header->sections) {
        section.bytes =
            header->rows * (section.name == format::kNorms     ? sizeof(double)
                            : section.name == format::kVectors ? sizeof(float) * header->dim
                                                               : sizeof(std::uint32_t));
        section.offset = end;
        end += (section.bytes + format::kSectionAlignment - 1) / format::kSectionAlignment *
               format::kSectionAlignment;
    }
    header->file_bytes = end;
    header->generation = format::compute_generation(*header);
    const auto bytes = format::encode_header(*header);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    std::filesystem::remove(path);
    write_file(path, values);

    const std::string status = connection_.ask("RELOAD small").status;
    EXPECT_EQ(
        status.rfind("ERR unavailable small: reload failed, the old model keeps serving: ", 0), 0U)
        << status;
    EXPECT_NE(status.find(" MiB of memory, and "), std::string::npos) << status;
    EXPECT_EQ(connection_.ask("NEAR w1").normalised(), before);
}

// A plane that is damaged would leave out rows that belong to an answer.
TEST_F(Models, WithPlanesAnswerAsWithoutAndAreRefusedWithDamagedOnes) {
    const auto before = connection_.ask("NEAR k=20 w1");
    ASSERT_EQ(before.lines.size(), 20U);
    store_planes(dir_ / "small");
    EXPECT_EQ(connection_.ask("RELOAD small").status, "OK 1");
    EXPECT_EQ(connection_.ask("NEAR k=20 w1").lines, before.lines);

    const std::string path = dir_ / "small/planes";
    const std::string sound = read_file(path);
    std::string damaged = sound;
    damaged[4096 + 70] = static_cast<char>(damaged[4096 + 70] ^ 1);
    for (const std::string& planes : {damaged, sound.substr(0, sound.size() - 1)}) {
        std::filesystem::remove(path);
        write_file(path, planes);
        const auto reply = connection_.ask("RELOAD small");
        EXPECT_EQ(reply.status.rfind(
                      "ERR unavailable small: reload failed, the old model keeps serving: ", 0),
                  0U)
            << reply.status;
        EXPECT_EQ(connection_.ask("NEAR k=20 w1").lines, before.lines);
    }
    std::filesystem::remove(path);
    EXPECT_EQ(connection_.ask("RELOAD small").status, "OK 1");
    EXPECT_EQ(connection_.ask("NEAR k=20 w1").lines, before.lines);
}

TEST_F(Models, ThatAreSoundAreLoadedBesideOneThatIsNot) {
    std::filesystem::remove_all(dir_ / "small");
    const format::Model next = make_model(dir_ / "large", random_entries(93, 3, 6));
    EXPECT_EQ(connection_.ask("RELOAD").status.rfind("ERR unavailable small: reload failed", 0),
              0U);
    EXPECT_EQ(field(connection_.ask("SIM model=other w1 w2"), "generation"), generation_of(next));
    EXPECT_EQ(field(connection_.ask("SIM w1 w2"), "generation"), generation_of(small_));
}

TEST_F(Models, ThatWaitToBeLoadedAreGivenUpWhenTheDaemonStops) {
    std::vector<std::unique_ptr<Connection>> connections;
    for (int i = 0; i < 50; ++i) {
        connections.push_back(std::make_unique<Connection>(daemon_.socket_path()));
        // What is answered has been read, and what came with it.
        ASSERT_TRUE(connections.back()->send("PING\nRELOAD\n"));
    }
    for (const auto& connection : connections) ASSERT_EQ(connection->read_reply().status, "OK 0");
    EXPECT_EQ(daemon_.stop().exit_code, 0);
    int given_up = 0;
    for (const auto& connection : connections) {
        const auto reply = connection->read_reply();
        if (reply.status != "OK 2") {
            EXPECT_EQ(reply.status, "ERR unavailable the daemon is stopping; reload cancelled");
            ++given_up;
        }
    }
    EXPECT_GT(given_up, 0);
}

TEST_F(Models, AreLoadedAnewOnlyForRootAndTheOwnUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can be another user";
    ASSERT_EQ(::chmod(daemon_.socket_path().c_str(), 0666), 0);
    ASSERT_EQ(::chmod(std::filesystem::path(daemon_.socket_path()).parent_path().c_str(), 0755), 0);
    // The system notes who connects at the moment of connecting.
    ASSERT_EQ(::seteuid(65534), 0);
    std::unique_ptr<Connection> stranger;
    try {
        stranger = std::make_unique<Connection>(daemon_.socket_path());
    } catch (const std::runtime_error& error) {
        ADD_FAILURE() << error.what();
    }
    ASSERT_EQ(::seteuid(0), 0);
    ASSERT_NE(stranger, nullptr);
    EXPECT_EQ(stranger->ask("RELOAD").status,
              "ERR forbidden RELOAD is for root and the daemon's own user");
    EXPECT_EQ(stranger->ask("NEAR w1").lines.size(), 10U);
    EXPECT_EQ(stat(connection_, "reloads"), "0");
}

}  // namespace
}  // namespace gloved::tests
