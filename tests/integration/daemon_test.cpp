// The daemon as its users meet it: over a socket, with its real model and its real limits.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/registry.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

struct Exchange {
    std::string request;
    std::string reply;
};

/// The exchanges of PROTOCOL.md's transcript blocks, a list a block.
std::vector<std::vector<Exchange>> transcripts() {
    std::vector<std::vector<Exchange>> blocks;
    std::istringstream page(read_file(source_path("common/wire/PROTOCOL.md")));
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line == "```transcript") {
            inside = true;
            blocks.emplace_back();
        } else if (line == "```") {
            inside = false;
        } else if (inside && line.rfind("> ", 0) == 0) {
            blocks.back().push_back({line.substr(2), {}});
        } else if (inside && line.rfind("< ", 0) == 0) {
            std::string& reply = blocks.back().back().reply;
            reply += (reply.empty() ? "" : "\n") + line.substr(2);
        }
    }
    return blocks;
}

class ProtocolPage : public testing::Test {
  protected:
    static std::string list(const std::string& name) {
        return "=" + source_path("data/" + name + ".txt");
    }

    Daemon daemon_{"glove=" + sample_model(),
                   {"--model", "second=" + sample_model(), "--list", "animals" + list("animals"),
                    "--list", "glove/pets" + list("pets")}};
};

TEST_F(ProtocolPage, TranscriptsHoldOneByOne) {
    std::size_t exchanges = 0;
    for (const auto& block : transcripts()) {
        Connection connection(daemon_.socket_path());
        for (const auto& [request, reply] : block) {
            EXPECT_EQ(connection.ask(request).normalised(), reply) << "> " << request;
            ++exchanges;
        }
    }
    EXPECT_GE(exchanges, 15U);
}

/// A whole block through a program of the system, as a user types it.
void replay_through(const std::vector<std::string>& command) {
    for (const auto& block : transcripts()) {
        std::string input;
        std::string wanted;
        for (const auto& [request, reply] : block) {
            input += request + "\n";
            wanted += reply + "\n";
        }
        const Finished finished = run(command, input);
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
        EXPECT_EQ(without_us(finished.out), wanted);
    }
}

TEST_F(ProtocolPage, TranscriptsHoldThroughSocat) {
    replay_through({"socat", "-t60", "-", "UNIX-CONNECT:" + daemon_.socket_path()});
}

TEST_F(ProtocolPage, TranscriptsHoldThroughNetcat) {
    replay_through({"nc", "-N", "-U", daemon_.socket_path()});
}

TEST(Daemon, AnswersAThousandPipelinedRequestsInOrder) {
    const Daemon daemon(sample_model());
    Connection connection(daemon.socket_path());
    std::string input;
    for (int i = 0; i < 1000; ++i) {
        // Slow, quick and failing requests mixed: order must not come from speed.
        input += i % 4 == 0   ? "NEAR k=" + std::to_string(i + 1) + " the\n"
                 : i % 4 == 1 ? std::string("PING\n")
                 : i % 4 == 2 ? "HAS w" + std::to_string(i) + "\n"
                              : "NEAR nothing-" + std::to_string(i) + "\n";
    }
    std::thread writer([&] { EXPECT_TRUE(connection.send(input)); });
    for (int i = 0; i < 1000; ++i) {
        const ReplyText reply = connection.read_reply();
        if (i % 4 == 0) {
            ASSERT_EQ(reply.lines.size(), static_cast<std::size_t>(i + 1));
        } else if (i % 4 == 1) {
            ASSERT_EQ(reply.status, "OK 0");
        } else if (i % 4 == 2) {
            ASSERT_EQ(reply.lines, std::vector<std::string>{"w" + std::to_string(i) + "\t0"});
        } else {
            // Near spellings may follow, or be left out when many words are missed.
            const std::string wanted =
                "ERR unknown_word \"nothing-" + std::to_string(i) + "\" is not in the model";
            ASSERT_EQ(reply.status.substr(0, wanted.size()), wanted);
        }
    }
    writer.join();
}

TEST(Daemon, AnswersEveryOddLineOnceAndLeavesOthersAlone) {
    const Daemon daemon(sample_model());
    Connection bystander(daemon.socket_path());
    const std::string wanted = bystander.ask("king").normalised();
    const std::vector<std::pair<std::string, std::string>> odd = {
        {"no-such-word", "ERR unknown_word "},
        {"king - king", "ERR zero_vector "},
        {"", "ERR bad_request "},
        {"   \t ", "ERR bad_request "},
        {std::string("ki\0ng", 5), "ERR bad_request "},
        {"king\rqueen", "ERR bad_request "},
        {"\r\r", "ERR bad_request "},
        {"\xFF\xFE\x01\x7F\x80", "ERR unknown_word \"\\xFF\\xFE\\x01\\x7F\\x80\""},
        {"\xEF\xBB\xBFking", "ERR unknown_word "},
        {"\xC0\xAF", "ERR unknown_word "},
        {"\xED\xA0\x80", "ERR unknown_word "},
        {"king +", "ERR bad_request "},
        {"* king", "ERR bad_request "},
        {"( king", "ERR bad_request "},
        {"king )", "ERR bad_request "},
        {"\"king", "ERR bad_request "},
        {"inf * king", "ERR bad_request "},
        {"nan * king", "ERR bad_request "},
        {"1e999 * king", "ERR bad_request "},
        {"1e300 * ( 1e300 * king )", "ERR bad_request "},
        {"1e39 * king", "ERR bad_request "},
        {"0x10 * king", "ERR bad_request "},
        {"NEAR k=-1 king", "ERR bad_request "},
        {"NEAR k=0 king", "ERR bad_request "},
        {"NEAR k=+5 king", "ERR bad_request "},
        {"NEAR k=1e3 king", "ERR bad_request "},
        {"NEAR k=2147483648 king", "ERR bad_request "},
        {"NEAR k=4294967296 king", "ERR bad_request "},
        {"NEAR k=9223372036854775808 king", "ERR bad_request "},
        {"NEAR k=18446744073709551616 king", "ERR bad_request "},
        {"NEAR k=65537 king", "ERR bad_request k= is at most 65536"},
        {"NEAR k=5 k=5 king", "ERR bad_request "},
        {"NEAR min=nan king", "ERR bad_request "},
        {"NEAR model=other king", "ERR unknown_model "},
        {"NEAR engine=abacus king", "ERR bad_request "},
        {"NEAR", "ERR bad_request "},
        {"SIM king", "ERR bad_request "},
        {"SIM king queen rook", "ERR bad_request "},
        {"HAS", "ERR bad_request "},
        {"PING PONG", "ERR bad_request "},
        {"MODELS glove", "ERR bad_request MODELS takes no words, not 1"},
        {"USE", "ERR bad_request "},
        {"USE nothing", "ERR unknown_model "},
        {"FORMAT yaml", "ERR bad_request "},
        {"RELOAD nothing", "ERR unknown_model "},
        {"STATS king", "ERR bad_request "},
        {"GET / HTTP/1.1", "ERR unknown_word \"GET\""},
        {"*1", "ERR unknown_word "},
        {"\x16\x03\x01\x02", "ERR unknown_word "},
    };
    Connection connection(daemon.socket_path());
    for (const auto& [line, wanted_start] : odd) {
        const ReplyText reply = connection.ask(line);
        EXPECT_EQ(reply.status.rfind(wanted_start, 0), 0U)
            << "for " << testing::PrintToString(line) << ": " << reply.status;
        EXPECT_EQ(connection.ask("PING").status, "OK 0")
            << "after " << testing::PrintToString(line);
        EXPECT_EQ(bystander.ask("king").normalised(), wanted);
    }
}

TEST(Daemon, TakesLinesUpToTheLimitAndClosesBeyondIt) {
    const Daemon daemon(sample_model());
    Connection bystander(daemon.socket_path());
    const std::string longest = "HAS " + std::string(65536 - 4, 'x');
    Connection fits(daemon.socket_path());
    EXPECT_EQ(fits.ask(longest).status.rfind("OK 1 ", 0), 0U);
    EXPECT_EQ(fits.ask("PING").status, "OK 0");

    for (const std::string& ending : {std::string("\n"), std::string()}) {
        Connection over(daemon.socket_path());
        over.send(longest + "x" + ending);
        EXPECT_EQ(over.read_reply().status, "ERR too_long a line has at most 65536 bytes; closing");
        EXPECT_TRUE(over.closed_by_peer());
    }
    // One that sends another megabyte after that still gets to read its ERR.
    Connection flood(daemon.socket_path());
    std::thread writer([&] { flood.send(std::string(1 << 20, 'x')); });
    EXPECT_EQ(flood.read_reply().status, "ERR too_long a line has at most 65536 bytes; closing");
    writer.join();
    EXPECT_EQ(bystander.ask("PING").status, "OK 0");
}

TEST(Daemon, AnswersALastLineWithoutItsEnd) {
    const Daemon daemon(sample_model());
    Connection connection(daemon.socket_path());
    connection.send("PING\r\nSIM king queen");
    connection.finish_sending();
    EXPECT_EQ(connection.read_reply().status, "OK 0");
    EXPECT_EQ(connection.read_reply().lines, std::vector<std::string>{"0.750769"});
    EXPECT_TRUE(connection.closed_by_peer());
}

TEST(Daemon, AnswersBytesThatComeOneByOne) {
    const Daemon daemon(sample_model());
    Connection connection(daemon.socket_path());
    for (const char c : std::string("NEAR k=1 king\nPING\n")) ASSERT_TRUE(connection.send({&c, 1}));
    EXPECT_EQ(connection.read_reply().lines.size(), 1U);
    EXPECT_EQ(connection.read_reply().status, "OK 0");
}

TEST(Daemon, CutsSlowLinesIdleAndUnreadConnections) {
    const Daemon daemon(sample_model(),
                        {"--line-timeout", "1", "--idle-timeout", "2", "--write-timeout", "1"});
    Connection slow(daemon.socket_path());
    Connection idle(daemon.socket_path());
    Connection never_reads(daemon.socket_path());
    const auto begun = Clock::now();
    std::thread trickle([&] {
        for (int i = 0; i < 12 && slow.send("x"); ++i)
            std::this_thread::sleep_for(milliseconds(150));
    });
    std::thread flood([&] {
        // More answers than every buffer between us holds: the daemon stops reading, then cuts.
        std::string requests;
        for (int i = 0; i < 200; ++i) requests += "NEAR k=10000 the\n";
        for (int i = 0; i < 20 && never_reads.send(requests); ++i) {
        }
    });
    EXPECT_EQ(slow.read_reply().status, "ERR timeout the line did not end in time; closing");
    const auto after = Clock::now() - begun;
    EXPECT_GE(after, milliseconds(900));
    EXPECT_LE(after, milliseconds(3000));
    trickle.join();
    EXPECT_EQ(idle.read_reply().status, "ERR idle idle for too long; closing");
    EXPECT_TRUE(idle.closed_by_peer());
    flood.join();
    EXPECT_LE(Clock::now() - begun, seconds(15));
    EXPECT_EQ(Connection(daemon.socket_path()).ask("PING").status, "OK 0");
}

TEST(Daemon, SingleRequestsPassByPipelines) {
    const Daemon daemon(sample_model(), {"--threads", "1"});
    Connection greedy(daemon.socket_path());
    std::string requests;
    for (int i = 0; i < 4000; ++i) requests += "NEAR k=200 the\n";
    std::atomic<std::size_t> answered = 0;
    std::thread writer([&] { greedy.send(requests); });
    std::thread reader([&] {
        while (answered < 4000 && greedy.read_reply().lines.size() == 200) ++answered;
    });
    while (answered == 0) std::this_thread::sleep_for(milliseconds(1));
    Connection modest(daemon.socket_path());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(modest.ask("NEAR k=1 king").lines.size(), 1U);
    // The modest one was served while the greedy one still waited for most of its answers.
    EXPECT_LT(answered, 3000U);
    writer.join();
    reader.join();
    EXPECT_EQ(answered, 4000U);
}

TEST(Daemon, SaysBusyWhenItsQueueIsFull) {
    const Daemon daemon(sample_model(), {"--queue-length", "4", "--threads", "1"});
    Connection connection(daemon.socket_path());
    std::string requests;
    for (int i = 0; i < 200; ++i) requests += "NEAR k=5 the\n";
    connection.send(requests);
    int ok = 0;
    int busy = 0;
    for (int i = 0; i < 200; ++i) {
        const ReplyText reply = connection.read_reply();
        if (reply.lines.size() == 5) ++ok;
        if (reply.status.rfind("ERR busy ", 0) == 0) ++busy;
    }
    EXPECT_EQ(ok + busy, 200);
    EXPECT_GT(ok, 0);
    EXPECT_GT(busy, 0);
    EXPECT_EQ(connection.ask("NEAR k=5 the").lines.size(), 5U);
}

TEST(Daemon, RefusesConnectionsBeyondItsLimit) {
    const Daemon daemon(sample_model(), {"--max-connections", "2", "--uid-share", "100"});
    // The one that asked whether the daemon is ready may still be closing.
    std::this_thread::sleep_for(milliseconds(50));
    Connection first(daemon.socket_path());
    Connection second(daemon.socket_path());
    EXPECT_EQ(first.ask("PING").status, "OK 0");
    EXPECT_EQ(second.ask("PING").status, "OK 0");
    Connection third(daemon.socket_path());
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(third.send("PING\n")) << "it is read and dropped, so that the line arrives";
        std::this_thread::sleep_for(milliseconds(2));
    }
    EXPECT_EQ(third.read_reply().status.rfind("ERR busy ", 0), 0U);
    EXPECT_TRUE(third.closed_by_peer());
    EXPECT_EQ(first.ask("PING").status, "OK 0");
}

TEST(Daemon, SurvivesClientsThatVanish) {
    Daemon daemon(sample_model());
    const auto descriptors = [&] {
        const auto path = "/proc/" + std::to_string(daemon.process().pid()) + "/fd";
        return std::distance(std::filesystem::directory_iterator(path),
                             std::filesystem::directory_iterator());
    };
    std::this_thread::sleep_for(milliseconds(50));
    const auto before = descriptors();
    for (int i = 0; i < 300; ++i) {
        Connection connection(daemon.socket_path());
        connection.send("NEAR k=10000 the\nNEAR k=10000 of\nNEAR k=10");
    }
    EXPECT_EQ(Connection(daemon.socket_path()).ask("PING").status, "OK 0");
    for (int i = 0; i < 200 && descriptors() != before; ++i)
        std::this_thread::sleep_for(milliseconds(10));
    EXPECT_EQ(descriptors(), before);
}

TEST(Daemon, AnswersWhoComesWhileOthersGo) {
    const Daemon daemon(sample_model());
    std::atomic<int> answered = 0;
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
        clients.emplace_back([&] {
            for (int j = 0; j < 1000; ++j) {
                Connection connection(daemon.socket_path());
                connection.send("PING\nQUIT\n");
                if (connection.read_reply().status == "OK 0") ++answered;
            }
        });
    }
    for (auto& client : clients) client.join();
    EXPECT_EQ(answered, 4000);
}

TEST(Daemon, DrainsOnSigterm) {
    Daemon daemon(sample_model());
    Connection connection(daemon.socket_path());
    Connection idle(daemon.socket_path());
    EXPECT_EQ(idle.ask("PING").status, "OK 0");
    std::string requests;
    for (int i = 0; i < 200; ++i) requests += "NEAR k=100 the\n";
    connection.send(requests);
    EXPECT_EQ(connection.read_reply().lines.size(), 100U);
    daemon.process().signal(SIGTERM);
    for (int i = 1; i < 200; ++i) ASSERT_EQ(connection.read_reply().lines.size(), 100U) << i;
    EXPECT_TRUE(connection.closed_by_peer());
    EXPECT_TRUE(idle.closed_by_peer());
    const Finished finished = daemon.process().wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(daemon.socket_path()));
    EXPECT_FALSE(std::filesystem::exists(daemon.socket_path() + ".lock"));
    (void)daemon.stop();
}

TEST(Daemon, DoesNotAnswerHalfALineWhenItIsToldToStop) {
    Daemon daemon(sample_model());
    Connection connection(daemon.socket_path());
    connection.send("PING\nNEAR k=2 king");  // on its way to «king - man + woman»
    EXPECT_EQ(connection.read_reply().status, "OK 0");
    EXPECT_EQ(daemon.stop().exit_code, 0);
    EXPECT_EQ(connection.read_line(), std::nullopt);
}

TEST(Daemon, WaitsForTheFirstRequestWhenItIsToldToStop) {
    Daemon daemon(sample_model());
    Connection silent(daemon.socket_path());
    Connection late(daemon.socket_path());
    Connection without_end(daemon.socket_path());
    Connection last(daemon.socket_path());
    EXPECT_EQ(last.ask("PING").status, "OK 0");  // so the others are taken too
    daemon.process().signal(SIGTERM);
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_FALSE(last.send("PING\n"))
        << "what has asked before is not read any more, and a write says so";
    EXPECT_TRUE(late.send("PING\nSIM king queen\n"));
    EXPECT_EQ(late.read_reply().status, "OK 0");
    EXPECT_EQ(late.read_reply().lines, (std::vector<std::string>{"0.750769"}));
    without_end.send("PING");
    without_end.finish_sending();
    EXPECT_EQ(without_end.read_reply().status, "OK 0");
    for (Connection* each : {&silent, &late, &without_end, &last})
        EXPECT_TRUE(each->closed_by_peer());
    EXPECT_EQ(daemon.process().wait().exit_code, 0);
    (void)daemon.stop();
}

TEST(Daemon, ServesWhoWaitsInItsOwnBacklogWhenItIsToldToStop) {
    Daemon daemon(sample_model());
    daemon.process().signal(SIGSTOP);
    std::vector<std::unique_ptr<Connection>> waiting;
    for (int i = 0; i < 50; ++i) {
        waiting.push_back(std::make_unique<Connection>(daemon.socket_path()));
        waiting.back()->send("PING\n");
    }
    daemon.process().signal(SIGTERM);
    daemon.process().signal(SIGCONT);
    for (const auto& each : waiting) EXPECT_EQ(each->read_reply().status, "OK 0");
    EXPECT_EQ(daemon.process().wait().exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(daemon.socket_path()));
    (void)daemon.stop();
}

TEST(Daemon, LetsAPeerThatSentTooMuchReadItsErrorToTheEnd) {
    const Daemon daemon(sample_model());
    Connection connection(daemon.socket_path());
    std::thread writer([&] {
        connection.send(std::string(200000, 'x'));
        connection.finish_sending();
    });
    EXPECT_EQ(connection.read_reply().status,
              "ERR too_long a line has at most 65536 bytes; closing");
    writer.join();
    EXPECT_EQ(connection.read_to_end(), "the end");
}

TEST(Daemon, ReadsOnForAWhileAfterATimeoutAndThenCloses) {
    const Daemon daemon(sample_model(), {"--line-timeout", "0.5"});
    Connection connection(daemon.socket_path());
    connection.send("NEAR ");
    EXPECT_EQ(connection.read_reply().status, "ERR timeout the line did not end in time; closing");
    EXPECT_TRUE(connection.send("king\n"));
    EXPECT_EQ(connection.read_to_end(), "the end");
    // Our side stays open, yet the daemon lets go. One connection asks: a new one each time could
    // be counted together with the one before it, whose end another loop has not noticed yet.
    Connection asker(daemon.socket_path());
    const auto only_one_is_open = [&] {
        const auto stats = asker.ask("STATS");
        return std::count(stats.lines.begin(), stats.lines.end(), "connections\t1") == 1;
    };
    const auto deadline = Clock::now() + seconds(10);
    while (!only_one_is_open() && Clock::now() < deadline)
        std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(only_one_is_open());
    EXPECT_FALSE(connection.send("more\n"));
}

TEST(Daemon, KeepsNobodyOutWhenOthersFillItsQueue) {
    const Daemon daemon(sample_model(), {"--queue-length", "64", "--threads", "1"});
    std::atomic<bool> stop = false;
    std::vector<std::thread> floods;
    for (int i = 0; i < 6; ++i) {
        floods.emplace_back([&] {
            Connection connection(daemon.socket_path());
            std::string requests;
            for (int j = 0; j < 64; ++j) requests += "NEAR k=100 the\n";
            while (!stop) {
                connection.send(requests);
                for (int j = 0; j < 64; ++j) connection.read_reply();
            }
        });
    }
    Connection modest(daemon.socket_path());
    for (int i = 0; i < 200; ++i) EXPECT_EQ(modest.ask("NEAR k=1 king").lines.size(), 1U);
    stop = true;
    for (auto& flood : floods) flood.join();
}

std::size_t resident_bytes(pid_t pid) {
    std::istringstream status(read_file("/proc/" + std::to_string(pid) + "/status"));
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("RssAnon:", 0) == 0) return std::stoul(line.substr(8)) * 1024;
    }
    ADD_FAILURE() << "no RssAnon";
    return 0;
}

TEST(Daemon, HoldsLittleForPeersThatNeverRead) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer takes more memory than is measured here";
    Daemon daemon(sample_model());
    const std::size_t before = resident_bytes(daemon.process().pid());
    // What grows most between request and answer: quoting, many words, many hits.
    const std::string quoted = "HAS \"\\x09" + std::string(65000, '\xFF') + "\"\n";
    std::string words = "NEAR";
    while (words.size() < 65000) words += " a";
    const std::string many = words + "\n";
    const std::string large = "NEAR k=65536 the\n";
    std::vector<std::unique_ptr<Connection>> connections;
    std::vector<std::thread> writers;
    for (const std::string& request : {quoted, many, large, quoted, many, large}) {
        connections.push_back(std::make_unique<Connection>(daemon.socket_path(), seconds(1)));
        writers.emplace_back([request, connection = connections.back().get()] {
            for (int i = 0; i < 200 && connection->send(request); ++i) {
            }
        });
    }
    for (auto& writer : writers) writer.join();
    EXPECT_LE(resident_bytes(daemon.process().pid()), before + (std::size_t{48} << 20));
    EXPECT_EQ(Connection(daemon.socket_path()).ask("PING").status, "OK 0");
}

// ---- Same bytes, whatever workers them

/// The answers to many requests, without us=: asked one by one, or all at once.
std::string answers_of(const std::string& model, const std::vector<std::string>& options,
                       bool pipelined) {
    const Daemon daemon(model, options);
    Connection connection(daemon.socket_path());
    std::mt19937 random(11);
    const std::vector<std::string> words = {"the", "king",  "queen", "messi", "barca", "snake",
                                            "of",  "paris", "two",   "dog",   "ship"};
    std::vector<std::string> requests;
    const auto word = [&] { return words[random() % words.size()]; };
    for (int i = 0; i < 192; ++i) {
        std::string request = "NEAR k=" + std::to_string(1 + random() % 30);
        if (i % 5 == 1) request += " norm=unit";
        if (i % 7 == 2) request += " top=3000";
        if (i % 11 == 3) request += " prefix=s";
        if (i % 13 == 4) request += " min=0.4 exclude=none";
        requests.push_back(request + " fields=row,rank,norm " + word() + " - 0.3 * " + word() +
                           " + " + word() + "x");
        requests.back().pop_back();
    }
    std::string all;
    if (pipelined) {
        std::string input;
        for (const auto& request : requests) input += request + "\n";
        connection.send(input);
    }
    for (const auto& request : requests) {
        all += (pipelined ? connection.read_reply() : connection.ask(request)).normalised() + "\n";
    }
    return all;
}

TEST(Answers, AreTheSameBytesForThreadsSimdAndBatches) {
    const std::string wanted =
        answers_of(sample_model(), {"--threads", "1", "--simd", "baseline"}, false);
    EXPECT_GT(wanted.size(), 20000U);
    EXPECT_EQ(wanted.find("ERR"), std::string::npos) << wanted.substr(wanted.find("ERR"), 200);
    for (const std::string threads : {"1", "2"}) {
        for (const auto& simd : kernels::simd_names()) {
            for (const bool pipelined : {false, true}) {
                EXPECT_EQ(
                    answers_of(sample_model(), {"--threads", threads, "--simd", simd}, pipelined),
                    wanted)
                    << threads << " threads, " << simd << (pipelined ? ", pipelined" : "");
            }
        }
    }
}

// ---- The socket's path

std::string bind_unix(const std::string& path, int& fd) {
    fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return path;
}

Finished start_on(const std::string& socket_path) {
    return run({program("gloved"), "--model", sample_model(), "--socket", socket_path}, {},
               seconds(20));
}

TEST(SocketPath, ASecondDaemonIsRefusedAndTheFirstUnharmed) {
    const Daemon daemon(sample_model());
    const auto begun = Clock::now();
    const Finished second = start_on(daemon.socket_path());
    EXPECT_EQ(second.exit_code, 1);
    EXPECT_NE(second.err.find("another daemon uses this socket"), std::string::npos) << second.err;
    EXPECT_LE(Clock::now() - begun, seconds(5));
    EXPECT_EQ(Connection(daemon.socket_path()).ask("PING").status, "OK 0");
}

TEST(SocketPath, ADeadDaemonsSocketIsReplaced) {
    const TempDir dir;
    const std::string path = dir / "s";
    int fd = -1;
    bind_unix(path, fd);
    ::close(fd);
    Background daemon({program("gloved"), "--model", sample_model(), "--socket", path});
    for (int i = 0; i < 1000; ++i) {
        try {
            EXPECT_EQ(Connection(path).ask("PING").status, "OK 0");
            break;
        } catch (const std::runtime_error&) {
            ASSERT_LT(i, 999) << daemon.output();
            std::this_thread::sleep_for(milliseconds(5));
        }
    }
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660U);
    daemon.signal(SIGTERM);
    EXPECT_EQ(daemon.wait().exit_code, 0);
}

TEST(SocketPath, WhatIsNoDeadSocketIsLeftAlone) {
    const TempDir dir;
    write_file(dir / "file", "precious");
    std::filesystem::create_directory(dir / "directory");
    int fd = -1;
    bind_unix(dir / "dead", fd);
    ::close(fd);
    std::filesystem::create_symlink(dir / "dead", dir / "link");
    for (const std::string name : {"file", "directory", "link"}) {
        const Finished finished = start_on(dir / name);
        EXPECT_EQ(finished.exit_code, 1) << name;
        EXPECT_NE(finished.err.find("is not a socket"), std::string::npos) << finished.err;
    }
    EXPECT_EQ(read_file(dir / "file"), "precious");
    EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
    EXPECT_TRUE(std::filesystem::exists(dir / "dead"));

    // Beside the socket stands the lock, which goes when the daemon does: nothing of anybody else's
    // may go with it.
    write_file(dir / "free.lock", "precious");
    const Finished locked = start_on(dir / "free");
    EXPECT_EQ(locked.exit_code, 1);
    EXPECT_NE(locked.err.find("free.lock: exists and is not a gloved lock file"), std::string::npos)
        << locked.err;
    EXPECT_EQ(read_file(dir / "free.lock"), "precious");

    // Somebody listens, though not with our protocol, and though its backlog is full.
    int listener = -1;
    bind_unix(dir / "live", listener);
    ASSERT_EQ(::listen(listener, 0), 0);
    EXPECT_EQ(start_on(dir / "live").exit_code, 1);
    EXPECT_TRUE(std::filesystem::exists(dir / "live"));
    ::close(listener);

    EXPECT_EQ(start_on(dir / std::string(120, 'x')).exit_code, 1);
    EXPECT_EQ(start_on(dir / "no/such/directory/s").exit_code, 1);
}

TEST(SocketPath, AStrangersSocketAtOurPathOutlivesUs) {
    Daemon daemon(sample_model());
    ASSERT_EQ(::unlink(daemon.socket_path().c_str()), 0);
    int fd = -1;
    bind_unix(daemon.socket_path(), fd);
    EXPECT_EQ(daemon.stop().exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(daemon.socket_path()));
    ::close(fd);
}

TEST(CommandLine, WrongUsageIsTwoAndABadModelIsOne) {
    const auto exit_of = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), program("gloved"));
        return run(arguments);
    };
    EXPECT_EQ(exit_of({"--help"}).exit_code, 0);
    EXPECT_EQ(exit_of({"--version"}).exit_code, 0);
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{},
                                               {"--colour"},
                                               {"--model", "a", "--model", "x=b", "--model", "x=c"},
                                               {"--mod", "a"},
                                               {"--model", "a", "--line-timeout", "0"},
                                               {"--model", "a", "--pin", "maybe"},
                                               {"--model", "a", "--threads", "-1"},
                                               {"--model", "a b=c"},
                                               {"--model", "a", "--max-k", "0"},
                                               {"--model", "a", "--max-k", "9"},
                                               {"--model", "a", "--max-k=-1"},
                                               {"--model", "a", "--queue-length=-5"},
                                               {"--model", "a", "--batch-ms", "inf"},
                                               {"--model", "a", "--line-timeout", "nan"},
                                               {"--model", "a", "--idle-timeout", "0.0005"},
                                               {"--model", "a", "--engine", "gpu"},
                                               {"--model", "a", "--simd", "mmx"},
                                               {"--model", "a", "stray"},
                                               {"--model", "a", "--socket", ""},
                                               {"--model", "a", "--socket="},
                                               {"--config", "/no/such/file"}}) {
        EXPECT_EQ(exit_of(wrong).exit_code, 2) << testing::PrintToString(wrong);
    }
    const TempDir dir;
    const Finished missing = exit_of({"--model", dir / "none", "--socket", dir / "s"});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find(dir / "none"), std::string::npos) << missing.err;
    EXPECT_FALSE(std::filesystem::exists(dir / "s"));
    EXPECT_EQ(
        exit_of({"--model", sample_model(), "--socket", dir / "s", "--engine", "cuda"}).exit_code,
        1);
}

TEST(CommandLine, ConfigurationFileIsReadAndTheCommandLineGoesFirst) {
    const TempDir dir;
    write_file(dir / "gloved.conf",
               "# a comment\nmodel = words=" + sample_model() + "\nmax-k = 70\nthreads = 1\n");
    Background daemon({program("gloved"), "--config", dir / "gloved.conf", "--socket", dir / "s",
                       "--max-k", "90"});
    for (int i = 0; i < 1000; ++i) {
        try {
            Connection connection(dir / "s");
            EXPECT_EQ(connection.ask("NEAR model=words k=90 king").lines.size(), 90U);
            EXPECT_EQ(connection.ask("NEAR k=91 king").status,
                      "ERR bad_request k= is at most 90 here, not 91");
            break;
        } catch (const std::runtime_error&) {
            ASSERT_LT(i, 999) << daemon.output();
            std::this_thread::sleep_for(milliseconds(5));
        }
    }
}

TEST(CommandLine, AFaultOfTheConfigurationFileIsToldWithItsLine) {
    const TempDir dir;
    const std::string path = dir / "gloved.conf";
    const auto fault_of = [&](const std::string& lines) {
        write_file(path, "# a comment\n\nmodel = words=/nowhere\n" + lines + "\n");
        const Finished finished = run({program("gloved"), "--config", path, "--check"});
        EXPECT_EQ(finished.exit_code, 2) << lines;
        return finished.err.substr(0, finished.err.find('\n'));
    };
    const std::string at = "gloved: " + path + ":4: ";
    EXPECT_EQ(fault_of("log-levl = info"),
              at + "unrecognised option 'log-levl'; did you mean log-level?");
    EXPECT_EQ(fault_of("xyzzy = 1"), at + "unrecognised option 'xyzzy'");
    EXPECT_EQ(fault_of("threads"), at + "\"threads\" is not 'name = value'");
    EXPECT_EQ(fault_of("[limits]"), at + "there are no sections here");
    EXPECT_EQ(fault_of("config = a"), at + "'config' is allowed on the command line only");
    EXPECT_EQ(fault_of("model = words=/elsewhere"),
              at + "--model: two models are called words; rename one with --model NAME=DIR");
    EXPECT_EQ(fault_of("list = a=b\nlist = nix/a=c"),
              "gloved: " + path + ":5: --list: there is no model \"nix\"; see --model");
    EXPECT_EQ(fault_of("pin = on\npin = off"),
              "gloved: " + path + ":5: 'pin' stands in line 4 already");
    for (const std::string wrong :
         {"threads = many", "threads = -1", "max-k = 9", "log-level = loud", "batch-ms = nan",
          "gpu-memory = 6 apples", "device = x", "idle-timeout = 0.0005", "socket =", "list = x",
          "uid-share = 101", "threads = ", "check = 1", "help = 1"}) {
        EXPECT_EQ(fault_of(wrong).rfind(at, 0), 0U) << wrong << ": " << fault_of(wrong);
    }
    write_file(path, "\xEF\xBB\xBFmodel = words=/nowhere\r\nthreads = 1\r\n");
    EXPECT_EQ(run({program("gloved"), "--config", path, "--check"}).exit_code, 1)
        << "with a byte order mark and CR LF";
}

TEST(CommandLine, MoreThreadsThanTheSystemGivesIsAFaultNotAnAbort) {
    if (kSanitized) GTEST_SKIP() << "skipped: sanitizers need more address space than is left here";
    const TempDir dir;
    const Finished finished =
        run({"sh", "-c",
             "ulimit -v 600000; exec " + program("gloved") + " --threads 400 --model " +
                 sample_model() + " --socket " + (dir / "s")});
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_EQ(finished.signal, 0);
    EXPECT_NE(finished.err.find("no thread can be started: out of memory"), std::string::npos)
        << finished.err;
    EXPECT_FALSE(std::filesystem::exists(dir / "s"));
    EXPECT_FALSE(std::filesystem::exists(dir / "s.lock"));
}

TEST(Check, FindsABitThatTurned) {
    const TempDir dir;
    std::filesystem::copy(sample_model(), dir / "model", std::filesystem::copy_options::recursive);
    const std::string values = dir / "model/values";
    ASSERT_EQ(::chmod(values.c_str(), 0644), 0);
    const auto check = [&] {
        return run({program("gloved"), "--check", "--model", dir / "model"});
    };
    EXPECT_EQ(check().exit_code, 0) << check().err;
    std::string bytes = read_file(values);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file(values, bytes);
    const Finished finished = check();
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("section 'vectors'"), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace gloved::tests
