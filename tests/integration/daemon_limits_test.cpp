// A daemon with too few descriptors, one that is told to stop twice, and one whose model changes
// while an answer is due.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::size_t count_of(const std::string& text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

/// Waits until `holds`, for 10 s at most; whether it does.
template <class Condition>
bool becomes_true(const Condition& holds) {
    for (const auto end = Clock::now() + 10s; Clock::now() < end; std::this_thread::sleep_for(10ms))
        if (holds()) return true;
    return holds();
}

TEST(Descriptors, WhereTheyAreTooFewForAModelTheRemedyIsTold) {
    if (kSanitized)
        GTEST_SKIP() << "skipped: the undefined-behaviour sanitizer needs descriptors of its own";
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(50, 4, 1));
    int refused = 0;
    // With 6 there are none for its events, with some more none for the model; then it serves.
    for (int limit = 6; limit < 20; ++limit) {
        const Finished finished =
            run({"bash", "-c", "ulimit -n " + std::to_string(limit) + "; exec timeout 0.5 \"$@\"",
                 "bash", program("gloved"), "--model", dir / "model", "--engine", "cpu", "--socket",
                 dir / "s"});
        if (finished.err.find("error: ") == std::string::npos) break;
        ++refused;
        EXPECT_EQ(finished.exit_code, 1);
        // Newer versions of Boost add the error's number.
        const std::size_t fault = finished.err.find("Too many open files");
        ASSERT_NE(fault, std::string::npos) << finished.err;
        EXPECT_NE(finished.err.find("; allow more with ulimit -n, or Limit", fault),
                  std::string::npos)
            << finished.err;
    }
    EXPECT_GT(refused, 0);
}

/// A daemon that has one answer to write for a minute, to a client that does not read.
class Stopping : public testing::Test {
  protected:
    Stopping() {
        (void)make_model(dir_ / "model", random_entries(20000, 4, 1));
        daemon_ = std::make_unique<Daemon>(
            dir_ / "model", std::vector<std::string>{"--drain-timeout", "60", "--write-timeout",
                                                     "60", "--max-k", "20000"});
        client_ = std::make_unique<Connection>(daemon_->socket_path());
        std::string requests;
        for (int i = 0; i < 20; ++i) requests += "NEAR k=20000 w1\n";
        EXPECT_TRUE(client_->send(requests));
        EXPECT_TRUE(client_->read_line());
    }

    void signal(int number) { daemon_->process().signal(number); }
    /// Sends the first signal, and returns once the daemon stops.
    void begin_to_stop(int number) {
        signal(number);
        ASSERT_TRUE(becomes_true([&] {
            return daemon_->process().output().find("then stopping") != std::string::npos;
        }));
        ASSERT_TRUE(becomes_true([&] { return !std::filesystem::exists(daemon_->socket_path()); }));
    }
    bool still_runs() {
        std::this_thread::sleep_for(300ms);
        return daemon_->process().running();
    }
    void expect_cut(const std::string& why) {
        const Finished finished = daemon_->process().wait(10s);
        EXPECT_EQ(finished.exit_code, 0);
        EXPECT_NE(finished.err.find(why + ": cut connections: 1; requests without a whole answer:"),
                  std::string::npos)
            << finished.err;
    }

    TempDir dir_;
    std::unique_ptr<Daemon> daemon_;
    std::unique_ptr<Connection> client_;
};

TEST_F(Stopping, ASecondSigintEndsItAtOnce) {
    begin_to_stop(SIGINT);
    EXPECT_TRUE(still_runs());
    signal(SIGINT);
    expect_cut("SIGINT while stopping");
}

TEST_F(Stopping, ASigintAfterASigtermEndsItAtOnce) {
    begin_to_stop(SIGTERM);
    signal(SIGINT);
    expect_cut("SIGINT while stopping");
}

TEST_F(Stopping, ASigtermEndsItOnlyIfItComesASecondLater) {
    begin_to_stop(SIGTERM);
    signal(SIGTERM);
    signal(SIGHUP);
    EXPECT_TRUE(still_runs());
    std::this_thread::sleep_for(1s);
    signal(SIGTERM);
    expect_cut("SIGTERM while stopping");
}

TEST(Drain, WhatItsTimeoutCutsIsLogged) {
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(20000, 4, 1));
    Daemon daemon(dir / "model", {"--drain-timeout", "0.3", "--max-k", "20000"});
    Connection client(daemon.socket_path());
    std::string requests;
    for (int i = 0; i < 20; ++i) requests += "NEAR k=20000 w1\n";
    ASSERT_TRUE(client.send(requests));
    ASSERT_TRUE(client.read_line());
    const Finished finished = daemon.stop();
    EXPECT_NE(finished.err.find("the time for the last answers has passed: cut connections: 1;"),
              std::string::npos)
        << finished.err;
}

/// The number of whole replies until the stream ends.
std::size_t count_whole_replies(Connection& client) {
    for (std::size_t whole = 0;; ++whole) {
        const std::optional<std::string> status = client.read_line();
        if (!status || !status->starts_with("OK ")) return whole;
        for (auto left = std::stoul(status->substr(3)); left > 0; --left)
            if (!client.read_line()) return whole;
    }
}

TEST(Drain, CountsTheRequestsWithoutAWholeAnswer) {
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(20000, 4, 1));
    struct Case {
        std::string request;
        std::size_t count;
    };
    for (const auto& [request, count] :
         {Case{"NEAR k=20000 w1\n", 1}, Case{"NEAR k=80 w1\n", 250}}) {
        Daemon daemon(dir / "model", {"--drain-timeout", "0.3", "--max-k", "20000"});
        Connection client(daemon.socket_path());
        std::string requests;
        for (std::size_t i = 0; i < count; ++i) requests += request;
        ASSERT_TRUE(client.send(requests));
        Connection other(daemon.socket_path());
        ASSERT_TRUE(becomes_true([&] {
            const auto stats = other.ask("STATS").lines;
            return std::ranges::find(stats, "queries\t" + std::to_string(count)) != stats.end();
        }));
        const Finished finished = daemon.stop();
        const std::size_t whole = count_whole_replies(client);
        ASSERT_LT(whole, count);
        EXPECT_NE(finished.err.find(
                      "; requests without a whole answer: " + std::to_string(count - whole) + "\n"),
                  std::string::npos)
            << whole << finished.err;
    }
}

TEST(ChangedFiles, EveryRequestGetsItsErrorAndIsCountedOnce) {
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(20000, 4, 1));
    Daemon daemon(dir / "model", {"--access-log", "on", "--max-k", "20000"});
    Connection client(daemon.socket_path());
    ASSERT_EQ(client.ask("PING").status, "OK 0");
    const auto keys = dir / "model" + "/keys";
    std::filesystem::resize_file(keys, std::filesystem::file_size(keys) - 1);
    (void)client.send("NEAR k=20000 w1\nSIM w1 w2\n");
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(client.read_line(), "ERR unavailable out of service; the daemon stops") << i;
    EXPECT_EQ(daemon.process().wait().exit_code, 1);
    const Finished finished = daemon.stop();
    EXPECT_EQ(count_of(finished.err, "verb=NEAR"), 1U) << finished.err;
    EXPECT_EQ(count_of(finished.err, "verb=SIM"), 1U) << finished.err;
}

}  // namespace
}  // namespace gloved::tests
