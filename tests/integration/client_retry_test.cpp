// gloved-client --retry: daemons that come late, go away and come back, or have no time.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/files.hpp"
#include "tests/integration/client_fake_daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

Action echo(const std::string& line) { return {"OK 1 us=5\n" + line + "\n"}; }

class ClientRetry : public testing::Test {
  protected:
    Finished client(Lines arguments, const std::string& input = {}) {
        arguments.insert(arguments.begin(), {program("gloved-client"), "--socket", socket_});
        return run(arguments, input);
    }

    /// A script whose first `times` requests get `first`, all others what `then` says.
    FakeDaemon::Script at_first(int times, Action first, FakeDaemon::Script then = echo) {
        return [this, times, first, then](const std::string& line) {
            return ++requests_ <= times ? first : then(line);
        };
    }

    TempDir dir_;
    const std::string socket_ = dir_ / "s";
    std::atomic<int> requests_ = 0;
};

TEST_F(ClientRetry, WaitsForADaemonThatIsNotThereYet) {
    std::unique_ptr<FakeDaemon> daemon;
    std::thread late([&] {
        std::this_thread::sleep_for(300ms);
        daemon = std::make_unique<FakeDaemon>(socket_, echo);
    });
    const Finished f = client({"--retry", "20", "PING"});
    late.join();
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, "PING\n");
}

TEST_F(ClientRetry, GivesUpWhenPatienceEnds) {
    const auto start = std::chrono::steady_clock::now();
    const Finished f = client({"--retry", "0.4", "PING"});
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("no daemon to talk to"), std::string::npos) << f.err;
    EXPECT_GE(took, 400ms);
    EXPECT_LT(took, 10s);
}

TEST_F(ClientRetry, AsksAgainWhatWasLost) {
    for (const char* half : {"", "OK 2 us=5\nhalf\n"}) {
        requests_ = 0;
        FakeDaemon daemon(socket_, at_first(2, {half, true}));
        const Finished f = client({"--retry", "20", "SIM", "a", "b"});
        EXPECT_EQ(f.exit_code, 0) << f.err;
        EXPECT_EQ(f.out, "SIM a b\n");
        EXPECT_EQ(daemon.lines(), (Lines{"SIM a b", "SIM a b", "SIM a b"}));
        ::unlink(socket_.c_str());
    }
}

TEST_F(ClientRetry, AsksABusyDaemonAgain) {
    FakeDaemon daemon(socket_, at_first(2, {"ERR busy too many requests are waiting\n"}));
    EXPECT_EQ(client({"--retry", "20", "a"}).out, "NEAR a\n");
    requests_ = 0;
    const Finished lines = client({"--retry", "20", "--lines"}, "a\nb\n");
    EXPECT_EQ(lines.exit_code, 0) << lines.err;
    EXPECT_EQ(lines.out, "OK 1 us=5\na\nOK 1 us=5\nb\n");
}

TEST_F(ClientRetry, ARefusalThatStaysIsTheAnswer) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        if (line.find("cuda") == std::string::npos) return echo(line);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return Action{"ERR unavailable no engine\n"};
    });
    const Finished one = client({"--retry", "0.3", "NEAR", "engine=cuda", "a"});
    EXPECT_EQ(one.exit_code, 1);
    EXPECT_EQ(one.err, "gloved-client: unavailable: no engine\n");
    const Finished lines = client({"--retry", "0.3", "--lines"}, "a\nNEAR engine=cuda a\nb\n");
    EXPECT_EQ(lines.exit_code, 1);
    EXPECT_EQ(lines.out, "OK 1 us=5\na\nERR unavailable no engine\nOK 1 us=5\nb\n") << lines.err;
}

TEST_F(ClientRetry, OtherRefusalsAreFinal) {
    FakeDaemon daemon(socket_, [](const std::string&) { return Action{"ERR unknown_word nix\n"}; });
    EXPECT_EQ(client({"--retry", "20", "nix"}).exit_code, 1);
    EXPECT_EQ(daemon.lines().size(), 1U);
}

TEST_F(ClientRetry, WithoutItTheFirstTroubleIsTheLast) {
    FakeDaemon daemon(socket_, at_first(1, {"ERR busy no\n"}));
    EXPECT_EQ(client({"a"}).err, "gloved-client: busy: no\n");
    EXPECT_EQ(daemon.lines().size(), 1U);
}

TEST_F(ClientRetry, LinesAreAnsweredOnceEachInTheirOrder) {
    // Every fifth request breaks the connection, in turn before and in the middle of its answer.
    FakeDaemon daemon(socket_, [this](const std::string& line) {
        const int n = ++requests_;
        return n % 5 == 0 ? Action{n % 2 == 0 ? "" : "OK 1 us=5\n", true} : echo(line);
    });
    std::string input;
    std::string expected;
    for (int i = 0; i < 40; ++i) {
        input += "w" + std::to_string(i) + "\n";
        expected += "OK 1 us=5\nw" + std::to_string(i) + "\n";
    }
    const Finished f = client({"--retry", "20", "--lines"}, input);
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, expected);
}

TEST_F(ClientRetry, PatienceBeginsAnewAfterEachAnswer) {
    // Each answer comes after 0.3 s of trouble: more than patience in all, less than it each time.
    std::atomic<std::chrono::steady_clock::time_point> since = std::chrono::steady_clock::now();
    FakeDaemon daemon(socket_, [&](const std::string& line) {
        if (std::chrono::steady_clock::now() - since.load() < 300ms) return Action{"", true};
        since = std::chrono::steady_clock::now();
        Action answer = echo(line);
        answer.then_close = true;
        return answer;
    });
    const Finished f = client({"--retry", "1", "--lines"}, "a\nb\nc\nd\ne\n");
    EXPECT_EQ(f.exit_code, 0) << f.err;
}

TEST_F(ClientRetry, ANewConnectionGetsTheStateOfTheOldOne) {
    FakeDaemon daemon(socket_, [this](const std::string& line) {
        if (line == "FORMAT json") return Action{"{\"ok\":true,\"verb\":\"FORMAT\"}\n"};
        if (line == "USE nix")
            return Action{"{\"ok\":false,\"code\":\"unknown_model\",\"message\":\"nix\"}\n"};
        if (line == "bye" && ++requests_ == 1) return Action{"", true};
        return Action{"{\"ok\":true,\"asked\":\"" + line + "\"}\n"};
    });
    const Finished f =
        client({"--retry", "20", "--json", "--lines"}, "USE one\nUSE two\nUSE nix\nbye\n");
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out,
              "{\"ok\":true,\"asked\":\"USE one\"}\n{\"ok\":true,\"asked\":\"USE two\"}\n"
              "{\"ok\":false,\"code\":\"unknown_model\",\"message\":\"nix\"}\n{\"ok\":true,"
              "\"asked\":\"bye\"}\n")
        << f.err;
    EXPECT_EQ(daemon.lines(), (Lines{"FORMAT json", "USE one", "USE two", "USE nix", "bye",
                                     "FORMAT json", "USE two", "bye"}));
}

TEST_F(ClientRetry, ReloadIsSentOnce) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        return line == "RELOAD" ? Action{"", true} : echo(line);
    });
    const Finished one = client({"--retry", "20", "RELOAD"});
    EXPECT_EQ(one.exit_code, 1);
    EXPECT_NE(one.err.find("RELOAD is not sent twice"), std::string::npos) << one.err;
    const Finished lines = client({"--retry", "20", "--lines"}, "a\nRELOAD\nb\n");
    EXPECT_EQ(lines.exit_code, 1);
    EXPECT_EQ(lines.out, "OK 1 us=5\na\n");
    EXPECT_NE(lines.err.find("RELOAD is not sent twice"), std::string::npos) << lines.err;
    EXPECT_EQ(daemon.lines(), (Lines{"RELOAD", "a", "RELOAD"}))
        << "nor is anything sent behind it before its answer";
}

// A large model takes longer to load than the client waits: asking again would load it twice.
TEST_F(ClientRetry, AReloadThatTakesLongMayBeUnderWay) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        return line == "RELOAD" ? Action{""} : echo(line);
    });
    for (const std::vector<std::string>& options :
         std::vector<std::vector<std::string>>{{"--timeout", "0.2", "--retry", "20", "RELOAD"},
                                               {"--timeout", "0.2", "--retry", "20", "--lines"}}) {
        const Finished f = client(options, options.back() == "--lines" ? "RELOAD\n" : "");
        EXPECT_EQ(f.exit_code, 1);
        EXPECT_NE(
            f.err.find("no answer within 0.2 s; RELOAD is not sent twice, and may be under way"),
            std::string::npos)
            << f.err;
    }
    EXPECT_EQ(daemon.lines(), (Lines{"RELOAD", "RELOAD"}));
}

TEST_F(ClientRetry, AReloadTravelsAlone) {
    // What arrives before an answer is all that may be lost with it.
    const UniqueFd listener = listen_at(socket_, 1);
    Lines arrived;
    std::thread daemon([&] {
        const UniqueFd connection = accept_from(listener);
        for (const char* answer : {"OK 0\nOK 0\n", "OK 0\n", "OK 0\nOK 0\n"}) {
            std::this_thread::sleep_for(200ms);
            std::array<char, 4096> chunk{};
            const ssize_t got = ::recv(connection.get(), chunk.data(), chunk.size(), 0);
            arrived.emplace_back(chunk.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
            EXPECT_GT(::send(connection.get(), answer, std::strlen(answer), MSG_NOSIGNAL), 0);
        }
    });
    const Finished f = client({"--lines"}, "a\nb\nRELOAD\nc\nd\n");
    daemon.join();
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(arrived, (Lines{"a\nb\n", "RELOAD\n", "c\nd\n"}));
}

TEST_F(ClientRetry, ARequestThatStandsBeforeAReloadIsAskedAgain) {
    FakeDaemon daemon(socket_, at_first(1, {"", true}));
    const Finished f = client({"--retry", "20", "--lines"}, "a\nRELOAD\nb\n");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, "OK 1 us=5\na\nOK 1 us=5\nRELOAD\nOK 1 us=5\nb\n");
    EXPECT_EQ(daemon.lines(), (Lines{"a", "a", "RELOAD", "b"}));
}

TEST_F(ClientRetry, TheOriginalProtocolGoesOn) {
    FakeDaemon daemon(socket_, [this](const std::string& line) {
        if (line == "STATS") return Action{"OK 1\nrows\t1000\n"};
        return ++requests_ % 2 == 1 ? Action{"OK 2 us=500\nhalf\t1\n", true}
                                    : Action{"OK 1 us=500 engine=cpu\nqueen\t0.7\n"};
    });
    const Finished f = client({"--retry", "20"}, "king 0 prince 0");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    const std::string answer = "queen\n0.500 ms, 2000 distances per ms\n";
    EXPECT_NE(f.out.find(answer + answer), std::string::npos) << f.out;
}

TEST_F(ClientRetry, AConnectionThatEndedBetweenQueriesIsNoLoss) {
    // As an idle timeout: the daemon says why, and closes, while nothing is owed.
    FakeDaemon daemon(socket_, [](const std::string& line) {
        if (line == "STATS") return Action{"OK 0\nERR idle nothing was sent for too long\n", true};
        return Action{"OK 1 us=500 engine=cpu\nqueen\t0.7\n"};
    });
    const Finished f = client({}, "king 0");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_NE(f.out.find("queen\n"), std::string::npos) << f.out;
    EXPECT_EQ(f.err, "");
}

// The daemon's line crosses the request on the way: it answers nothing, and even a RELOAD was not
// read.
TEST_F(ClientRetry, AnIdleLineIsNoAnswer) {
    const Action idle{"ERR idle idle for too long; closing\n", true};
    for (const Lines& options :
         {Lines{"--retry", "20", "RELOAD"}, Lines{"--retry", "20", "--lines"}}) {
        requests_ = 0;
        FakeDaemon daemon(socket_, at_first(1, idle));
        const Finished again = client(options, options.back() == "--lines" ? "RELOAD\n" : "");
        EXPECT_EQ(again.exit_code, 0) << again.err;
        EXPECT_EQ(again.out, options.back() == "--lines" ? "OK 1 us=5\nRELOAD\n" : "RELOAD\n");
        EXPECT_EQ(daemon.lines(), (Lines{"RELOAD", "RELOAD"}));
        ::unlink(socket_.c_str());
    }
    for (const Lines& options : {Lines{"PING"}, Lines{"--lines"}}) {
        FakeDaemon daemon(socket_, [&](const std::string&) { return idle; });
        const Finished without = client(options, options.back() == "--lines" ? "PING\n" : "");
        EXPECT_EQ(without.exit_code, 1);
        EXPECT_EQ(without.out, "");
        EXPECT_NE(without.err.find("what was asked since is not read, and may be asked again"),
                  std::string::npos)
            << without.err;
        ::unlink(socket_.c_str());
    }
}

TEST_F(ClientRetry, AnIdleLineInJsonIsNoAnswer) {
    FakeDaemon daemon(socket_, [this](const std::string& line) {
        if (line == "FORMAT json") return Action{"{\"ok\":true,\"verb\":\"FORMAT\"}\n"};
        if (++requests_ == 1)
            return Action{"{\"ok\":false,\"code\":\"idle\",\"message\":\"closing\"}\n", true};
        return Action{"{\"ok\":true}\n"};
    });
    const Finished f = client({"--retry", "20", "--json", "king"});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, "{\"ok\":true}\n");
}

TEST_F(ClientRetry, WrongUsage) {
    for (const char* seconds : {"-1", "nan", "1e9", "soon", ""}) {
        const Finished f = client({"--retry", seconds, "PING"});
        EXPECT_EQ(f.exit_code, 2) << seconds << f.err;
    }
}

}  // namespace
}  // namespace gloved::tests
