// gloved-client with a query in its arguments.
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "tests/integration/client_fake_daemon.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using namespace std::chrono_literals;

/// The client in an environment without a socket of its own, plus `environment` («NAME=value»).
Finished client(std::vector<std::string> arguments,
                const std::vector<std::string>& environment = {}) {
    std::vector<std::string> command = {"env", "-u", "GLOVED_SOCKET", "-u", "XDG_RUNTIME_DIR"};
    command.insert(command.end(), environment.begin(), environment.end());
    command.push_back(program("gloved-client"));
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
}

Action two_hits(const std::string&) {
    return {"OK 2 us=5 engine=cpu\nqueen\t0.700000\nprince\t0.600000\n"};
}

class ClientProgram : public testing::Test {
  protected:
    /// The client against a fake daemon that follows `script`.
    Finished ask(FakeDaemon::Script script, std::vector<std::string> arguments) {
        std::filesystem::remove(socket_);  // of the one before
        FakeDaemon daemon(socket_, std::move(script));
        arguments.insert(arguments.begin(), {"--socket", socket_});
        Finished finished = client(std::move(arguments));
        asked_ = daemon.lines();
        return finished;
    }

    TempDir dir_;
    const std::string socket_ = dir_ / "s";
    std::vector<std::string> asked_;
};

using Lines = std::vector<std::string>;

TEST_F(ClientProgram, PrintsTheRepliesLines) {
    const Finished f = ask(two_hits, {"--count", "2", "king", "-", "man"});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, "queen\t0.700000\nprince\t0.600000\n");
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(asked_, (Lines{"NEAR k=2 king - man"}));
}

TEST_F(ClientProgram, PrintsATable) {
    const Finished near = ask(two_hits, {"--format", "csv", "--count", "2", "king"});
    EXPECT_EQ(near.exit_code, 0) << near.err;
    EXPECT_EQ(near.out, "word,score\nqueen,0.700000\nprince,0.600000\n");
    EXPECT_EQ(asked_, (Lines{"NEAR k=2 king"}));

    // Both replies must be of one model, or labels might not belong to their rows.
    const auto with_generations = [](const char* of_has, const char* of_matrix) {
        return [=](const std::string& line) {
            const bool is_has = line.starts_with("HAS");
            return Action{std::string("OK ") + (is_has ? "2" : "1") + " us=5 generation=" +
                          (is_has ? std::string(of_has) + "\na\t0\n,\t1\n"
                                  : std::string(of_matrix) + "\n1.000000\n")};
        };
    };
    const std::vector<std::string> request = {"--format",     "csv", "MATRIX",
                                              "unknown=skip", "a",   ","};
    const Finished matrix = ask(with_generations("1", "1"), request);
    EXPECT_EQ(matrix.out, "word,a,\",\"\na,,\n\",\",,1.000000\n");
    EXPECT_EQ(asked_, (Lines{"HAS a ,", "MATRIX unknown=skip a ,"}));
    const Finished replaced = ask(with_generations("1", "2"), request);
    EXPECT_EQ(replaced.exit_code, 1);
    EXPECT_EQ(replaced.out, "");
    EXPECT_NE(replaced.err.find("the model was replaced while it was asked"), std::string::npos)
        << replaced.err;

    // Nothing can be labelled if HAS is refused.
    const auto refuses_has = [](const std::string& line) {
        return Action{line.starts_with("HAS") ? "ERR busy later\n" : "OK 1 us=5\n1.000000\n"};
    };
    const Finished busy = ask(refuses_has, request);
    EXPECT_EQ(busy.exit_code, 1);
    EXPECT_EQ(busy.out, "");
    EXPECT_NE(busy.err.find("busy: later"), std::string::npos) << busy.err;

    const Finished none = ask(two_hits, {"--format", "csv", "STATS"});
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_NE(none.err.find("the answer to STATS is no table"), std::string::npos) << none.err;
}

TEST_F(ClientProgram, TellsAMonitorHowTheDaemonIs) {
    const auto stats = [](const std::string& health) {
        return [health](const std::string&) -> Action {
            return {"OK 7\n" + health +
                    "model\tglove\nrows\t10\ndim\t3\nengine\tcpu\nengine_description\tavx2, 2 "
                    "threads\nmodels\t1\n"};
        };
    };
    const Finished well = ask(stats("health\tserving\n"), {"--health"});
    EXPECT_EQ(well.exit_code, 0);
    EXPECT_EQ(well.out, "serving: glove: 10 words x 3, engine cpu (avx2, 2 threads)\n");
    EXPECT_EQ(asked_, (Lines{"STATS"}));

    const auto degraded = [&](const std::string& line) -> Action {
        Action action = stats("health\tdegraded\n")(line);
        action.send.replace(3, 1, "8");
        action.send += "health_reason\tglove: reload failed\n";
        return action;
    };
    const Finished ill = ask(degraded, {"--health"});
    EXPECT_EQ(ill.exit_code, 1);
    EXPECT_EQ(
        ill.out,
        "degraded: glove: 10 words x 3, engine cpu (avx2, 2 threads); glove: reload failed\n");

    const Finished strange = ask(
        [](const std::string&) -> Action {
            return {"OK 4\nhealth\tserving\nmodel\tm\nrows\t10\ndim\t3\n"};
        },
        {"--health"});
    EXPECT_EQ(strange.exit_code, 1);
    EXPECT_EQ(strange.out,
              "degraded: the reply to STATS has no engine; is this the socket of a gloved "
              "daemon?\n");

    EXPECT_EQ(ask([](const std::string&) -> Action { return {"ERR busy full\n"}; }, {"--health"})
                  .exit_code,
              1);
    EXPECT_EQ(
        ask([](const std::string&) -> Action { return {""}; }, {"--health", "--timeout", "0.1"})
            .exit_code,
        1);
    const Finished nobody = client({"--socket", dir_ / "nobody", "--health"});
    EXPECT_EQ(nobody.exit_code, 2);
    EXPECT_EQ(nobody.out.rfind("unreachable: ", 0), 0U) << nobody.out;
    EXPECT_EQ(client({"--health", "king"}).exit_code, 2);
}

TEST_F(ClientProgram, OptionsEndWhereTheQueryBegins) {
    ask(two_hits, {"-", "--count", "-x"});
    EXPECT_EQ(asked_, (Lines{"NEAR - --count -x"}));
}

TEST_F(ClientProgram, ADoubleDashEndsTheOptions) {
    ask(two_hits, {"--count=3", "--", "--help", "--"});
    EXPECT_EQ(asked_, (Lines{"NEAR k=3 --help --"}));
}

TEST_F(ClientProgram, ToldHowAWordThatLooksLikeAnOptionIsAsked) {
    for (const std::string word : {"-lrb-", "-x", "--nix"}) {
        const Finished f = client({"--socket", socket_, word});
        EXPECT_EQ(f.exit_code, 2);
        EXPECT_NE(
            f.err.find("'" + word + "'; a query that begins with '-' needs -- before it; see"),
            std::string::npos)
            << f.err;
    }
    EXPECT_NE(client({"--cuont", "3", "king"}).err.find("did you mean --count?"),
              std::string::npos);
    ask(two_hits, {"--", "-lrb-"});
    EXPECT_EQ(asked_, (Lines{"NEAR -lrb-"}));
    ask(two_hits, {"--", "--"});
    EXPECT_EQ(asked_, (Lines{"NEAR --"}));
    // Not the original protocol's dialogue.
    const Finished nothing = ask(two_hits, {"--"});
    EXPECT_EQ(nothing.exit_code, 2);
    EXPECT_NE(nothing.err.find("no query behind --"), std::string::npos) << nothing.err;
    EXPECT_EQ(asked_, Lines());
}

TEST_F(ClientProgram, TellsWhereAnOptionOfRequestsStands) {
    EXPECT_EQ(client({"--model", "news", "king"}).err,
              "gloved-client: unrecognised option '--model'; in a request it stands behind the "
              "name, as NEAR model=VALUE ...; see gloved-client --help\n");
    EXPECT_NE(client({"--model=news", "king"}).err.find("as NEAR model=VALUE"), std::string::npos);
    EXPECT_NE(client({"--metric", "king"}).err.find("as MATRIX metric=VALUE"), std::string::npos);
    EXPECT_NE(client({"-min", "king"}).err.find("needs -- before it"), std::string::npos);
}

TEST_F(ClientProgram, TellsThatAVerbInSmallLettersIsAWord) {
    const Finished f = ask(two_hits, {"near", "king"});
    EXPECT_EQ(f.exit_code, 0);
    EXPECT_EQ(asked_, (Lines{"NEAR near king"}));
    EXPECT_EQ(f.err,
              "gloved-client: \"near\" was taken as a word; the request NEAR is written in "
              "capitals\n");
}

TEST_F(ClientProgram, SendsAVerbAsItIs) {
    ask(two_hits, {"NEAR", "k=1", "norm=unit", "\"a  b\""});
    EXPECT_EQ(asked_, (Lines{"NEAR k=1 norm=unit \"a  b\""}));
}

TEST_F(ClientProgram, TellsOfLettersThatAreNotComposed) {
    const std::string word = "cafe\xCC\x81";
    const std::string hint =
        "gloved-client: the request has letters that are not composed (Unicode NFC); the same "
        "letters, composed, may be in the model\n";
    const auto skips = [&](const std::string& line) -> Action {
        return {(line.find("NEAR") == 0 ? "OK 1 skipped=\"" + word + "\"\n" : "OK 1\n") +
                "queen\t0.5\n"};
    };
    const Finished skipped = ask(skips, {"NEAR", "unknown=skip", word, "king"});
    EXPECT_EQ(skipped.exit_code, 0);
    EXPECT_EQ(skipped.err,
              "gloved-client: not in the model and left out: \"" + word + "\"\n" + hint);
    EXPECT_EQ(ask(skips, {"SIM", word, "king"}).err, "") << "all words are there";

    const auto nothing = [](const std::string&) -> Action { return {"OK 0\n"}; };
    EXPECT_EQ(ask(nothing, {"PREFIX", word}).err, hint);
    EXPECT_EQ(ask(nothing, {"NEAR", "prefix=" + word, "king"}).err, hint);
    EXPECT_EQ(ask(nothing, {"PREFIX", "caf\xC3\xA9"}).err, "");
}

TEST_F(ClientProgram, AnErrGoesToStderr) {
    const Finished f =
        ask([](const std::string&) { return Action{"ERR unknown_word \"nix\" is not there\n"}; },
            {"nix"});
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(f.err, "gloved-client: unknown_word: \"nix\" is not there\n");
}

TEST_F(ClientProgram, ALargeReplyArrivesWhole) {
    std::string lines;
    for (int i = 0; i < 65536; ++i) lines += "word" + std::to_string(i) + "\t0.500000\n";
    const Finished f =
        ask([&](const std::string&) { return Action{"OK 65536 us=1\n" + lines}; }, {"king"});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, lines);
}

TEST_F(ClientProgram, AForeignPeerIsNamed) {
    for (const char* garbage : {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x16\x03\x01\n", "OK many\n",
                                "\n", "{\"ok\":true,\"results\":[]}\n"}) {
        const Finished f = ask([&](const std::string&) { return Action{garbage}; }, {"king"});
        EXPECT_EQ(f.exit_code, 1);
        EXPECT_EQ(f.out, "");
        EXPECT_NE(f.err.find("is this the socket of a gloved daemon?"), std::string::npos) << f.err;
        ::unlink(socket_.c_str());
    }
}

TEST_F(ClientProgram, ALineWithoutEndBehindAStatusIsGivenUp) {
    const std::string flood(6 << 20, 'a');
    const auto send = [&](const std::string&) { return Action{"OK 1 us=5\n" + flood}; };
    const std::vector<std::vector<std::string>> all = {
        {"king"}, {"--retry", "1", "king"}, {"--health"}};
    for (std::vector<std::string> arguments : all) {
        arguments.insert(arguments.begin(), {"--timeout", "5"});
        const Finished f = ask(send, arguments);
        EXPECT_EQ(f.exit_code, 1);
        EXPECT_NE((f.out.substr(0, 200) + f.err).find("a line of more than 4194304 bytes"),
                  std::string::npos)
            << f.err;
    }
}

TEST_F(ClientProgram, AReplyNeedsLittleMemoryHoweverLongItIs) {
    if (kSanitized) GTEST_SKIP() << "skipped: sanitizers need more address space than is left here";
    constexpr int kLines = 6'000'000;
    std::string lines;
    for (int i = 0; i < kLines; ++i) lines += "word\t0.500000\n";
    FakeDaemon daemon(socket_, [&](const std::string&) {
        return Action{"OK " + std::to_string(kLines) + " us=1\n" + lines};
    });
    const Finished f = run({"bash", "-c",
                            "set -o pipefail; ulimit -v 100000; \"$0\" --socket \"$1\" king | "
                            "wc -c",
                            program("gloved-client"), socket_});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, std::to_string(lines.size()) + "\n");
    const Finished health = client({"--socket", socket_, "--health"});
    EXPECT_EQ(health.exit_code, 1);
    EXPECT_NE(health.out.find("a reply to STATS of more than 67108864 bytes"), std::string::npos)
        << health.out.substr(0, 1000);
}

TEST_F(ClientProgram, HalfAReplyIsNoReply) {
    for (const char* half : {"", "OK", "OK 2 us=5\n", "OK 2 us=5\nqueen\t0.7\n",
                             "OK 2 us=5\nqueen\t0.7\nprince", "OK 18446744073709551615\na\n"}) {
        const Finished f = ask([&](const std::string&) { return Action{half, true}; }, {"king"});
        EXPECT_EQ(f.exit_code, 1) << half;
        EXPECT_EQ(f.out, "") << half;
        EXPECT_NE(f.err.find("connection lost"), std::string::npos) << f.err;
        ::unlink(socket_.c_str());
    }
}

TEST_F(ClientProgram, SilenceEndsAtTheTimeout) {
    for (const char* partial : {"", "OK 1 us=5\n"}) {
        const auto start = std::chrono::steady_clock::now();
        const Finished f =
            ask([&](const std::string&) { return Action{partial}; }, {"--timeout", "0.3", "king"});
        const auto took = std::chrono::steady_clock::now() - start;
        EXPECT_EQ(f.exit_code, 1);
        EXPECT_NE(f.err.find("no answer within 0.3 s"), std::string::npos) << f.err;
        EXPECT_GE(took, 300ms);
        EXPECT_LT(took, 10s);
        ::unlink(socket_.c_str());
    }
}

TEST_F(ClientProgram, ReadsWhyItWasTurnedAway) {
    // The peer answers and hangs up without reading: sending fails, and the reason is there to read
    // all the same.
    const UniqueFd listener = listen_at(socket_, 1);
    std::thread refuse([&] {
        const UniqueFd connection = accept_from(listener);
        const std::string reply = "ERR busy too many connections\n";
        EXPECT_GT(::send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL), 0);
    });
    std::vector<std::string> arguments(20, std::string(100000, 'a'));  // far more than a socket
                                                                       // holds
    arguments.insert(arguments.begin(), {"--socket", socket_});
    const Finished f = client(std::move(arguments));
    refuse.join();
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.err, "gloved-client: busy: too many connections\n");
}

/// Connections that fill the backlog of a listener which does not accept.
std::vector<UniqueFd> fill_backlog(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    std::vector<UniqueFd> waiting;
    while (true) {
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
            0)
            return waiting;
        waiting.push_back(std::move(socket));
    }
}

TEST_F(ClientProgram, WaitsOutAFullBacklog) {
    const UniqueFd listener = listen_at(socket_, 1);
    const std::vector<UniqueFd> waiting = fill_backlog(socket_);
    ASSERT_FALSE(waiting.empty());
    std::thread accepting([&] {
        std::this_thread::sleep_for(200ms);
        for (std::size_t i = 0; i < waiting.size(); ++i) accept_from(listener);
        const UniqueFd connection = accept_from(listener);
        const std::string reply = "OK 0\n";
        EXPECT_GT(::send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL), 0);
    });
    const Finished f = client({"--socket", socket_, "PING"});
    accepting.join();
    EXPECT_EQ(f.exit_code, 0) << f.err;
}

TEST_F(ClientProgram, AFullBacklogEndsAtTheTimeout) {
    const UniqueFd listener = listen_at(socket_, 1);
    const std::vector<UniqueFd> waiting = fill_backlog(socket_);
    const Finished f = client({"--socket", socket_, "--timeout", "0.2", "PING"});
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("took no connection for 0.2 s"), std::string::npos) << f.err;
}

TEST_F(ClientProgram, NamesEveryPlaceItLookedAndTheRemedy) {
    const Finished named = client({"--socket", socket_, "PING"});
    EXPECT_EQ(named.exit_code, 1);
    EXPECT_NE(named.err.find(socket_ + " (No such file or directory)"), std::string::npos)
        << named.err;
    EXPECT_NE(named.err.find("gloved --model"), std::string::npos);

    { const UniqueFd dead = listen_at(socket_, 1); }
    const Finished stale = client({"PING"}, {"GLOVED_SOCKET=" + socket_});
    EXPECT_EQ(stale.exit_code, 1);
    EXPECT_NE(stale.err.find(socket_ + " (Connection refused)"), std::string::npos) << stale.err;
    EXPECT_EQ(stale.err.find("/run/gloved"), std::string::npos)
        << "a named daemon is the only one that is asked";

    const Finished defaults = client({"PING"}, {"XDG_RUNTIME_DIR=" + dir_.path()});
    EXPECT_EQ(defaults.exit_code, 1);
    EXPECT_NE(defaults.err.find("/run/gloved/gloved.sock ("), std::string::npos) << defaults.err;
    EXPECT_NE(defaults.err.find(dir_ / "gloved.sock"), std::string::npos) << defaults.err;

    const std::string endless = "/" + std::string(200, 'a');
    EXPECT_NE(client({"--socket", endless, "PING"}).err.find("(File name too long)"),
              std::string::npos);
}

TEST_F(ClientProgram, SaysWhoMayConnectWhereItMayNot) {
    FakeDaemon daemon(socket_, two_hits);
    std::vector<std::string> command = {program("gloved-client"), "--socket", socket_, "PING"};
    const auto expect_told = [&](const std::string& who) {
        command.back() = "PING";
        const Finished ping = run(command);
        EXPECT_EQ(ping.exit_code, 1);
        EXPECT_EQ(ping.err.find("gloved-client: no permission to talk to a daemon at " + socket_ +
                                ": " + who + "; tried: "),
                  0U)
            << ping.err;
        command.back() = "--health";
        const Finished health = run(command);
        EXPECT_EQ(health.exit_code, 2);
        EXPECT_EQ(health.out.find("unreachable: no permission to talk to a daemon at "), 0U)
            << health.out;
    };
    if (::geteuid() != 0) {
        std::filesystem::permissions(socket_, std::filesystem::perms(0400));
        return expect_told(
            fmt::format("it is for the user {} alone", ::getpwuid(::geteuid())->pw_name));
    }
    command.insert(command.begin(),
                   {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    constexpr uid_t kOther = 1;
    constexpr uid_t kNameless = 1'234'567;
    const std::string group = ::getgrgid(kOther)->gr_name;
    const std::string added = " is for the group " + group +
                              "; have yourself added (sudo adduser $USER " + group +
                              "), and log in again";
    const auto allow = [](const std::string& path, uid_t owner, mode_t mode) {
        ASSERT_EQ(::chown(path.c_str(), owner, owner), 0);
        ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    };
    allow(dir_.path(), 0, 0755);
    allow(socket_, kOther, 0660);
    expect_told("it" + added);
    allow(socket_, kOther, 0600);
    expect_told(fmt::format("it is for the user {} alone", ::getpwuid(kOther)->pw_name));
    allow(socket_, kNameless, 0660);
    expect_told("it is for the group 1234567, which has no name here");
    allow(socket_, 0, 0660);
    expect_told("only root may connect");
    allow(socket_, 0, 0666);
    allow(dir_.path(), kOther, 0750);
    expect_told("its directory" + added);
    allow(dir_.path(), 0, 0700);
    expect_told("only root may connect");
}

TEST_F(ClientProgram, FindsTheDaemonByEnvironment) {
    FakeDaemon daemon(dir_ / "gloved.sock", two_hits);
    EXPECT_EQ(client({"king"}, {"GLOVED_SOCKET=" + (dir_ / "gloved.sock")}).exit_code, 0);
    EXPECT_EQ(client({"king"}, {"XDG_RUNTIME_DIR=" + dir_.path()}).exit_code, 0);
    EXPECT_EQ(
        client({"king"}, {"XDG_RUNTIME_DIR=" + dir_.path(), "GLOVED_SOCKET=" + socket_}).exit_code,
        1);
    EXPECT_EQ(
        client({"--socket", dir_ / "gloved.sock", "king"}, {"GLOVED_SOCKET=" + socket_}).exit_code,
        0);
}

// A user's own daemon listens there, and goes before the system's.
TEST_F(ClientProgram, LooksInTheUsersDirectoryFirst) {
    const Finished f = client({"PING"}, {"XDG_RUNTIME_DIR=" + dir_.path(), "GLOVED_SOCKET="});
    const std::size_t own = f.err.find(dir_ / "gloved.sock");
    const std::size_t of_the_system = f.err.find("/run/gloved/gloved.sock");
    EXPECT_NE(own, std::string::npos) << f.err;
    EXPECT_NE(of_the_system, std::string::npos) << f.err;
    EXPECT_LT(own, of_the_system) << f.err;
}

TEST_F(ClientProgram, WrongUsageExitsWithTwoBeforeConnecting) {
    const std::vector<Lines> wrong = {{"--no-such-option"},
                                      {"-x"},
                                      {"--sock", socket_, "PING"},
                                      {"--socket"},
                                      {"--socket=", "PING"},
                                      {"--socket", "", "PING"},
                                      {"--count"},
                                      {"--count", "0", "a"},
                                      {"--count", "-1", "a"},
                                      {"--count", "1e3", "a"},
                                      {"--count", "18446744073709551616", "a"},
                                      {"--count", "3"},
                                      {"--count", "3", "PING"},
                                      {"--format", "csv"},
                                      {"--format", "xlsx", "a"},
                                      {"--format", "csv", "--json", "a"},
                                      {"--timeout", "0", "a"},
                                      {"--timeout", "nan", "a"},
                                      {"--timeout", "-1", "a"},
                                      {"--timeout", "1e99", "a"},
                                      {"a\nb"},
                                      {"a\r"},
                                      {"--count", "1", "--count", "2", "a"}};
    for (const Lines& arguments : wrong) {
        const Finished f = client(arguments);
        EXPECT_EQ(f.exit_code, 2) << testing::PrintToString(arguments) << f.err;
        EXPECT_EQ(f.out, "");
        EXPECT_EQ(f.err.substr(0, 15), "gloved-client: ") << f.err;
    }
}

TEST_F(ClientProgram, ExplainsItself) {
    const Finished help = client({"--help"});
    EXPECT_EQ(help.exit_code, 0);
    for (const char* part : {"Usage:", "--socket", "--count", "--json", "--lines", "--timeout",
                             "--retry", "king - man + woman", "! 1"}) {
        EXPECT_NE(help.out.find(part), std::string::npos) << part;
    }
    const Finished version = client({"--version"});
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(version.out.substr(0, 14), "gloved-client ");
}

TEST_F(ClientProgram, ReportsOutputThatCannotBeWritten) {
    FakeDaemon daemon(socket_, two_hits);
    const Finished f = run({"sh", "-c", "exec \"$0\" --socket \"$1\" king > /dev/full",
                            program("gloved-client"), socket_});
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("cannot be written"), std::string::npos) << f.err;
}

}  // namespace
}  // namespace gloved::tests
