// What gloved does for a service manager that is none: passed sockets, notifications, limits, a
// stop during the start.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/files.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
}

UniqueFd bound_socket(const std::string& path, int type) {
    UniqueFd fd(::socket(AF_UNIX, type, 0));
    const sockaddr_un address = address_of(path);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("cannot bind " + path);
    return fd;
}

/// Where a daemon tells how it is, and a model to serve.
class ServiceManager : public testing::Test {
  protected:
    ServiceManager() : told_(bound_socket(dir_ / "notify", SOCK_DGRAM)) {
        (void)make_model(dir_ / "model", random_entries(50, 4, 1));
    }

    /// The daemon, started by a shell that passes it `passed` as its first socket, if that is open.
    std::unique_ptr<Background> start(std::vector<std::string> options,
                                      const UniqueFd& passed = {}) {
        std::string script = "export NOTIFY_SOCKET=" + (dir_ / "notify") + "; ";
        if (passed) {
            script +=
                "exec 3<&" + std::to_string(passed.get()) + "; export LISTEN_FDS=1 LISTEN_PID=$$; ";
        }
        std::vector<std::string> command = {"bash",
                                            "-c",
                                            script + environment_ + "exec \"$@\"",
                                            "bash",
                                            program("gloved"),
                                            "--model",
                                            dir_ / "model"};
        command.insert(command.end(), options.begin(), options.end());
        return std::make_unique<Background>(command);
    }

    /// The next message that begins so; empty when none comes.
    std::string next(const std::string& beginning, std::chrono::milliseconds within = 20s) {
        const auto deadline = Clock::now() + within;
        std::array<char, 4096> buffer{};
        while (true) {
            const auto left =
                std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now())
                    .count();
            if (left <= 0) return "";
            const timeval timeout{left / 1000000, left % 1000000};
            ::setsockopt(told_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
            const ssize_t size = ::recv(told_.get(), buffer.data(), buffer.size(), 0);
            if (size <= 0) return "";
            std::string message(buffer.data(), static_cast<std::size_t>(size));
            if (message.rfind(beginning, 0) == 0) return message;
        }
    }

    TempDir dir_;
    UniqueFd told_;
    std::string environment_;
};

TEST_F(ServiceManager, ItsSocketIsTakenOverAndItsPathLeftAlone) {
    const std::string path = dir_ / "s";
    UniqueFd listening = bound_socket(path, SOCK_STREAM);
    ASSERT_EQ(::listen(listening.get(), 100), 0);
    const std::string elsewhere = dir_ / "elsewhere";
    for (int start_number = 0; start_number < 2; ++start_number) {
        Connection early(path);  // before there is a daemon
        auto daemon = start({"--socket", elsewhere}, listening);
        EXPECT_EQ(early.ask("PING").status, "OK 0");
        EXPECT_EQ(
            next("STATUS=serving").rfind("STATUS=serving model: 50 words x 4, engine cpu (", 0),
            0U);
        EXPECT_EQ(next("READY=1"), "READY=1");
        EXPECT_FALSE(std::filesystem::exists(elsewhere));
        daemon->signal(SIGTERM);
        EXPECT_EQ(next("STOPPING=1"), "STOPPING=1");
        EXPECT_EQ(daemon->wait().exit_code, 0);
        EXPECT_TRUE(std::filesystem::exists(path));
        EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
    }
}

TEST_F(ServiceManager, AnotherSocketIsRefused) {
    const UniqueFd datagrams = bound_socket(dir_ / "d", SOCK_DGRAM);
    const Finished finished = start({}, datagrams)->wait();
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("LISTEN_FDS: exactly one listening Unix stream socket"),
              std::string::npos)
        << finished.err;
}

// The command line comes first of all. Its file is a pipe here, which the daemon waits for.
TEST_F(ServiceManager, SignalsAreHandledFromTheBeginning) {
    const std::string pipe = dir_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::string socket = dir_ / "s";
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        auto daemon = start({"--config", pipe, "--socket", socket});
        std::ofstream config(pipe);  // opens when the daemon does
        daemon->signal(number);
        std::this_thread::sleep_for(50ms);
        config << "engine = cpu\n";
        config.close();
        if (number == SIGHUP) {
            EXPECT_EQ(next("READY=1"), "READY=1");
            const auto deadline = Clock::now() + 20s;
            while (daemon->output().find("its files are as before") == std::string::npos &&
                   Clock::now() < deadline) {
                std::this_thread::sleep_for(10ms);
            }
            EXPECT_NE(daemon->output().find("its files are as before"), std::string::npos)
                << "it is reloaded then";
            daemon->signal(SIGTERM);
        }
        const Finished finished = daemon->wait();
        EXPECT_EQ(finished.exit_code, 0) << number << finished.err;
        EXPECT_FALSE(std::filesystem::exists(socket));
        EXPECT_FALSE(std::filesystem::exists(socket + ".lock"));
    }
}

TEST_F(ServiceManager, HearsNothingWhenTheModelCannotBeLoaded) {
    std::filesystem::resize_file(dir_ / "model/values", 100);
    const Finished finished = start({"--socket", dir_ / "s"})->wait();
    EXPECT_EQ(finished.exit_code, 1);
    const std::string status = next("STATUS=cannot start", 1s);
    EXPECT_NE(status.find("model/values: "), std::string::npos) << status;
    EXPECT_EQ(next("READY=1", 100ms), "");
    EXPECT_FALSE(std::filesystem::exists(dir_ / "s"));
}

// Its queue is full of what others sent.
TEST_F(ServiceManager, IsNotWaitedForAndHearsLater) {
    environment_ = "export WATCHDOG_USEC=400000; ";
    const UniqueFd others(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    const sockaddr_un address = address_of(dir_ / "notify");
    const auto fill = [&] {
        while (::sendto(others.get(), "other", 5, 0, reinterpret_cast<const sockaddr*>(&address),
                        sizeof address) > 0) {
        }
    };
    const std::string path = dir_ / "s";
    const UniqueFd listening = bound_socket(path, SOCK_STREAM);
    ASSERT_EQ(::listen(listening.get(), 100), 0);
    for (const bool read_later : {true, false}) {
        fill();
        auto daemon = start({}, listening);
        EXPECT_EQ(Connection(path).ask("PING").status, "OK 0");
        if (read_later) {
            EXPECT_EQ(next("STATUS=").rfind("STATUS=serving model", 0), 0U);
            EXPECT_EQ(next("READY=1"), "READY=1");
            EXPECT_EQ(next("WATCHDOG=1"), "WATCHDOG=1");
            fill();
        }
        daemon->signal(SIGTERM);
        EXPECT_EQ(daemon->wait().exit_code, 0);
    }
}

TEST_F(ServiceManager, HearsFromTheWatchdogFourTimesAsOftenAsItMust) {
    environment_ = "export WATCHDOG_USEC=400000; ";
    auto daemon = start({"--socket", dir_ / "s"});
    ASSERT_EQ(next("READY=1"), "READY=1");
    const auto begun = Clock::now();
    for (int ping = 0; ping < 10; ++ping) ASSERT_EQ(next("WATCHDOG=1", 2s), "WATCHDOG=1") << ping;
    EXPECT_GE(Clock::now() - begun, 700ms);
    daemon->signal(SIGTERM);
    EXPECT_EQ(daemon->wait().exit_code, 0);
}

TEST_F(ServiceManager, IsWarnedOfARequestTimeoutThatReachesTheWatchdogs) {
    environment_ = "export WATCHDOG_USEC=5000000; ";
    const std::string warning = "keep it below the service's WatchdogSec=, 5 s";
    for (const std::string timeout : {"4.9", "5"}) {
        auto daemon = start({"--socket", dir_ / "s", "--request-timeout", timeout});
        ASSERT_EQ(next("READY=1"), "READY=1");
        daemon->signal(SIGTERM);
        const Finished finished = daemon->wait();
        EXPECT_EQ(finished.err.find("request-timeout is 5 s; " + warning) != std::string::npos,
                  timeout == "5")
            << finished.err;
    }
}

TEST_F(ServiceManager, JournalsGetPrioritiesAndNoTime) {
    const std::string log = dir_ / "log";
    environment_ = "exec 2>" + log + "; export JOURNAL_STREAM=$(stat -c %d:%i " + log + "); ";
    auto daemon = start({"--socket", dir_ / "s"});
    ASSERT_EQ(next("READY=1"), "READY=1");
    daemon->signal(SIGTERM);
    EXPECT_EQ(daemon->wait().exit_code, 0);
    std::ifstream lines(log);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count)
        EXPECT_EQ(line.rfind("<6>", 0), 0U) << line;
    EXPECT_GE(count, 4U);
}

TEST(Limits, AUsersShareOfTheConnectionsIsBounded) {
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(50, 4, 1));
    const Daemon daemon(dir / "model", {"--max-connections", "8", "--uid-share", "50"});
    std::vector<std::unique_ptr<Connection>> connections;
    for (int i = 0; i < 4; ++i) {
        connections.push_back(std::make_unique<Connection>(daemon.socket_path()));
        ASSERT_EQ(connections.back()->ask("PING").status, "OK 0") << i;
    }
    Connection one_more(daemon.socket_path());
    EXPECT_EQ(one_more.read_line(),
              "ERR busy you have 4 connections open, which is one user's share");
    EXPECT_TRUE(one_more.closed_by_peer());
    connections.pop_back();
    std::string answer;
    for (int attempt = 0; attempt < 100 && answer != "OK 0"; ++attempt) {
        std::this_thread::sleep_for(20ms);
        Connection again(daemon.socket_path());
        (void)again.send("PING\n");
        answer = again.read_line().value_or("");
    }
    EXPECT_EQ(answer, "OK 0");
}

TEST(AccessLog, HasALineARequestAndNoWords) {
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(50, 4, 1));
    Daemon daemon(dir / "model", {"--access-log", "on"});
    Connection connection(daemon.socket_path());
    (void)connection.ask("NEAR w1");
    (void)connection.ask("secretword");
    const Finished finished = daemon.stop();
    const std::string who =
        " info: uid=" + std::to_string(::getuid()) + " pid=" + std::to_string(::getpid());
    EXPECT_NE(finished.err.find(who + " verb=NEAR outcome=OK us="), std::string::npos)
        << finished.err;
    EXPECT_NE(finished.err.find(who + " verb=NEAR outcome=unknown_word us="), std::string::npos)
        << finished.err;
    EXPECT_EQ(finished.err.find("secretword"), std::string::npos) << finished.err;
    EXPECT_NE(finished.err.find(" model=model\n"), std::string::npos) << finished.err;
    EXPECT_TRUE(std::regex_search(
        finished.err,
        std::regex(R"((^|\n)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info: uid=)")))
        << finished.err;
}

TEST(Pin, OnIsKeptOrTheStartRefused) {
    if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer's mlock does nothing";
    const TempDir dir;
    (void)make_model(dir / "model", random_entries(50, 4, 1));
    const auto start = [&](const std::string& pin) {
        // Root may lock what it likes, so without its capability.
        return std::make_unique<Background>(std::vector<std::string>{
            "bash", "-c",
            "ulimit -l 0; exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock \"$@\"",
            "bash", program("gloved"), "--model", dir / "model", "--engine", "cpu", "--socket",
            dir / "s", "--pin", pin});
    };
    if (::geteuid() == 0) {
        const Finished finished = start("on")->wait();
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.err.find("the limit is 0); raise the limit with LimitMEMLOCK="),
                  std::string::npos)
            << finished.err;
    } else {
        GTEST_SKIP() << "skipped: only root can set capabilities";
    }
}

}  // namespace
}  // namespace gloved::tests
