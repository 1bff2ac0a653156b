// gloved-client --lines and --json: requests ahead of their answers, replies as they come.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
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

/// Answers every request with itself.
Action echo(const std::string& line) { return {"OK 1 us=5\n" + line + "\n"}; }

/// Of the processor, that a process has used.
double processor_seconds(pid_t pid) {
    return std::strtod(read_file("/proc/" + std::to_string(pid) + "/schedstat").c_str(), nullptr) /
           1e9;
}

class ClientLines : public testing::Test {
  protected:
    Finished client(const std::string& input, Lines options = {}) {
        options.insert(options.begin(), {program("gloved-client"), "--socket", socket_, "--lines"});
        return run(options, input);
    }

    TempDir dir_;
    const std::string socket_ = dir_ / "s";
};

TEST_F(ClientLines, PrintsEveryReplyAsItCame) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        return line == "PING" ? Action{"OK 0\n"} : echo(line);
    });
    const Finished f = client("king - man\nPING\n\n  SIM \"a  b\" c\nlast");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(
        f.out,
        "OK 1 us=5\nking - man\nOK 0\nOK 1 us=5\n\nOK 1 us=5\n  SIM \"a  b\" c\nOK 1 us=5\nlast\n");
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(daemon.lines(), (Lines{"king - man", "PING", "", "  SIM \"a  b\" c", "last"}))
        << "an empty line is a request too: the n-th reply belongs to the n-th line";
}

TEST_F(ClientLines, NothingIsNothing) {
    FakeDaemon daemon(socket_, echo);
    const Finished f = client("");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out + f.err, "");
    EXPECT_EQ(daemon.lines(), Lines());
}

TEST_F(ClientLines, ARefusalIsAnAnswerAndTheStatus) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        return line == "nix" ? Action{"ERR unknown_word \"nix\" is unknown\n"} : echo(line);
    });
    const Finished f = client("a\nnix\nb\n");
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out, "OK 1 us=5\na\nERR unknown_word \"nix\" is unknown\nOK 1 us=5\nb\n");
    EXPECT_EQ(f.err, "") << "it is on stdout, in its place";
}

TEST_F(ClientLines, IsNotHeldUpWhenBothSidesAreFull) {
    // The fake answers before it reads on, so that its input fills while its output does.
    const std::string answer = "OK 1 us=5\n" + std::string(60'000, 'x') + "\n";
    FakeDaemon daemon(socket_, [&](const std::string&) { return Action{answer}; });
    std::string input;
    std::string expected;
    for (int i = 0; i < 500; ++i) {
        input += std::string(50'000, 'a') + "\n";
        expected += answer;
    }
    const Finished f = client(input);
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_TRUE(f.out == expected);
}

TEST_F(ClientLines, SendsAheadButNotWithoutBound) {
    const UniqueFd listener = listen_at(socket_, 1);
    std::size_t lines = 0;
    std::thread silent([&] {
        const UniqueFd connection = accept_from(listener);
        std::string got;
        std::vector<char> chunk(1 << 20);
        // It waits as long as the client does.
        for (ssize_t n = 0; (n = ::read(connection.get(), chunk.data(), chunk.size())) > 0;)
            got.append(chunk.data(), static_cast<std::size_t>(n));
        lines = static_cast<std::size_t>(std::count(got.begin(), got.end(), '\n'));
    });
    std::string input;
    for (int i = 0; i < 1000; ++i) input += "king\n";
    const Finished f = client(input, {"--timeout", "0.5"});
    silent.join();
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("no answer within 0.5 s; 0 answers are complete"), std::string::npos)
        << f.err;
    EXPECT_EQ(lines, 64U);
}

TEST_F(ClientLines, AnswersWhileItsInputIsStillOpen) {
    FakeDaemon daemon(socket_, echo);
    const std::string fifo = dir_ / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    UniqueFd input(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
    Background client({"sh", "-c", "exec \"$0\" --socket \"$1\" --lines --timeout 0.2 < \"$2\"",
                       program("gloved-client"), socket_, fifo});
    const auto appears = [&](const std::string& text) {
        const auto deadline = std::chrono::steady_clock::now() + 20s;
        while (client.output().find(text) == std::string::npos &&
               std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(5ms);
        }
        return client.output().find(text) != std::string::npos;
    };
    ASSERT_EQ(::write(input.get(), "first\n", 6), 6);
    EXPECT_TRUE(appears("OK 1 us=5\nfirst\n"));
    const double used_before_s = processor_seconds(client.pid());
    std::this_thread::sleep_for(400ms);
    EXPECT_TRUE(client.running()) << "a user who types slowly is not a daemon that does not answer";
    EXPECT_LT(processor_seconds(client.pid()) - used_before_s, 0.1)
        << "waiting takes no processor time";
    ASSERT_EQ(::write(input.get(), "second\n", 7), 7);
    EXPECT_TRUE(appears("OK 1 us=5\nsecond\n"));
    input.reset();
    EXPECT_EQ(client.wait().exit_code, 0);
}

TEST_F(ClientLines, TheTimeoutIsForEachAnswer) {
    // Bytes keep coming, but the answer does not end.
    const UniqueFd listener = listen_at(socket_, 1);
    std::atomic<bool> ended = false;
    std::thread daemon([&] {
        const UniqueFd connection = accept_from(listener);
        std::string bytes = "OK 1000 us=5\n";
        while (!ended && ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
            bytes = "a\n";
            std::this_thread::sleep_for(50ms);
        }
    });
    const auto start = std::chrono::steady_clock::now();
    const Finished f =
        run({program("gloved-client"), "--socket", socket_, "--timeout", "0.5", "--lines"}, "a\n");
    ended = true;
    daemon.join();
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("no answer within 0.5 s"), std::string::npos) << f.err;
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST_F(ClientLines, ALostConnectionEndsItAfterWhatWasAnswered) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        return line == "bye" ? Action{"OK 2 us=1\nhalf\n", true} : echo(line);
    });
    const Finished f = client("a\nbye\nb\n");
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out, "OK 1 us=5\na\n") << "half a reply is not a reply";
    EXPECT_NE(f.err.find("connection lost"), std::string::npos) << f.err;
    EXPECT_NE(f.err.find("1 answer is complete"), std::string::npos) << f.err;
}

TEST_F(ClientLines, GoesOnBehindALineThatEndsTheConnection) {
    FakeDaemon daemon(socket_, [](const std::string& line) {
        if (line == "QUIT") return Action{"OK 0\n", true};
        return line.size() > 65536 ? Action{"ERR too_long a line of more than 65536 bytes\n", true}
                                   : echo(line);
    });
    const Finished f = client("a\nQUIT\nb\n" + std::string(200'000, 'x') + "\nc\n");
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out,
              "OK 1 us=5\na\nOK 0\nOK 1 us=5\nb\nERR too_long a line of more than 65536 bytes\nOK "
              "1 us=5\nc\n")
        << f.err;
    EXPECT_EQ(f.err, "");
}

TEST_F(ClientLines, PassesOnALargeReplyInPieces) {
    std::string lines;
    for (int i = 0; i < 300'000; ++i) lines += "word" + std::to_string(i) + "\t0.5\n";
    const std::string reply = "OK 300000 us=1\n" + lines;
    FakeDaemon daemon(socket_, [&](const std::string& line) {
        return line == "half" ? Action{reply.substr(0, 3'000'000), true} : Action{reply};
    });
    const Finished whole = client("a\nb\n");
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_TRUE(whole.out == reply + reply);

    const Finished broken = client("a\nhalf\nb\n", {"--retry", "5"});
    EXPECT_EQ(broken.exit_code, 1);
    EXPECT_GT(broken.out.size(), reply.size() + 1'000'000);
    EXPECT_TRUE((reply + reply).starts_with(broken.out)) << "nothing is out twice";
    EXPECT_NE(broken.err.find("in the middle of an answer of which a part is out already"),
              std::string::npos)
        << broken.err;
}

TEST_F(ClientLines, ReportsInputAndOutputThatFail) {
    FakeDaemon daemon(socket_, echo);
    const Finished full = run({"sh", "-c", "echo a | \"$0\" --socket \"$1\" --lines > /dev/full",
                               program("gloved-client"), socket_});
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_NE(full.err.find("cannot be written"), std::string::npos) << full.err;
    const Finished folder =
        run({"sh", "-c", "\"$0\" --socket \"$1\" --lines < /", program("gloved-client"), socket_});
    EXPECT_EQ(folder.exit_code, 1);
    EXPECT_NE(folder.err.find("cannot be read"), std::string::npos) << folder.err;
    // A descriptor that is not open must not become the socket's.
    const Finished no_input =
        run({"sh", "-c", "\"$0\" --socket \"$1\" --lines <&-", program("gloved-client"), socket_});
    EXPECT_EQ(no_input.exit_code, 0) << no_input.err;
    const Finished no_output = run({"sh", "-c", "echo a | \"$0\" --socket \"$1\" --lines >&-",
                                    program("gloved-client"), socket_});
    EXPECT_EQ(no_output.exit_code, 1);
    EXPECT_NE(no_output.err.find("cannot be written"), std::string::npos) << no_output.err;
}

TEST_F(ClientLines, WrongUsage) {
    for (const Lines& options : {Lines{"king"}, Lines{"--count", "3"}}) {
        const Finished f = client("", options);
        EXPECT_EQ(f.exit_code, 2) << f.err;
    }
    const Finished original =
        run({program("gloved-client"), "--socket", socket_, "--json"}, "king 0");
    EXPECT_EQ(original.exit_code, 2);
    EXPECT_NE(original.err.find("--json"), std::string::npos);
}

/// A daemon that knows FORMAT: a JSON echo behind it.
Action json_echo(const std::string& line) {
    if (line == "FORMAT json") return {"{\"ok\":true,\"verb\":\"FORMAT\"}\n"};
    if (line.find("nix") != std::string::npos)
        return {"{\"ok\":false,\"code\":\"unknown_word\",\"message\":\"nix\"}\n"};
    return {"{\"ok\":true,\"asked\":\"" + line + "\"}\n"};
}

TEST_F(ClientLines, JsonIsAnObjectALine) {
    FakeDaemon daemon(socket_, json_echo);
    const Finished f = client("a\nnix\nb\n", {"--json"});
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out,
              "{\"ok\":true,\"asked\":\"a\"}\n{\"ok\":false,\"code\":\"unknown_word\",\"message\":"
              "\"nix\"}\n{\"ok\":"
              "true,\"asked\":\"b\"}\n");
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(daemon.lines().front(), "FORMAT json");
}

TEST_F(ClientLines, JsonOfOneQuery) {
    FakeDaemon daemon(socket_, json_echo);
    const auto ask = [&](const std::string& word) {
        return run({program("gloved-client"), "--socket", socket_, "--json", "--count", "3", word});
    };
    const Finished f = ask("king");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, "{\"ok\":true,\"asked\":\"NEAR k=3 king\"}\n");
    const Finished refused = ask("nix");
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.out, "{\"ok\":false,\"code\":\"unknown_word\",\"message\":\"nix\"}\n");
    EXPECT_EQ(refused.err, "");
}

TEST_F(ClientLines, AReplyHasTheFormThatWasAskedFor) {
    const std::string json_reply = "{\"ok\":true,\"results\":[]}\n";
    const auto expect_fault = [](const Finished& f, const std::string& form) {
        EXPECT_EQ(f.exit_code, 1);
        EXPECT_EQ(f.out, "");
        EXPECT_NE(f.err.find("a reply in " + form + ", which was not asked for"), std::string::npos)
            << f.err;
    };
    {
        FakeDaemon daemon(socket_, [&](const std::string&) { return Action{json_reply}; });
        expect_fault(client("NEAR king\n"), "JSON");
        expect_fault(client("FORMAT text\n"), "JSON");
        expect_fault(run({program("gloved-client"), "--socket", socket_}, "king 0\n"), "JSON");
    }
    std::filesystem::remove(socket_);
    {
        FakeDaemon daemon(socket_, [&](const std::string& line) {
            return line == "FORMAT json" ? Action{json_reply} : Action{"OK 1\nqueen\t0.5\n"};
        });
        expect_fault(client("NEAR king\n", {"--json"}), "text");
        expect_fault(run({program("gloved-client"), "--socket", socket_, "--json", "NEAR", "king"}),
                     "text");
    }
    std::filesystem::remove(socket_);
    FakeDaemon daemon(socket_, [](const std::string&) { return Action{"OK 0\n"}; });
    expect_fault(client("NEAR king\n", {"--json"}), "text");
}

TEST_F(ClientLines, FormatChangesTheFormOfTheReplies) {
    const std::string json_reply = "{\"ok\":true,\"results\":[]}\n";
    const std::string refusal = "{\"ok\":false,\"code\":\"bad_request\",\"message\":\"\"}\n";
    bool is_json = false;
    FakeDaemon daemon(socket_, [&](const std::string& line) {
        if (line == "FORMAT xml") return Action{refusal};
        if (line.starts_with("FORMAT")) is_json = line == "FORMAT json";
        return Action{is_json ? json_reply : "OK 0\n"};
    });
    const Finished f = client("a\nFORMAT json\nb\nFORMAT xml\nc\nFORMAT text\nd\n");
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(f.out, "OK 0\n" + json_reply + json_reply + refusal + json_reply + "OK 0\nOK 0\n");
}

TEST_F(ClientLines, JsonOfADaemonThatHasNone) {
    FakeDaemon daemon(
        socket_, [](const std::string&) { return Action{"ERR bad_request FORMAT is reserved\n"}; });
    const Finished f = client("a\n", {"--json"});
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(f.err, "gloved-client: bad_request: FORMAT json is refused: FORMAT is reserved\n");
    EXPECT_EQ(daemon.lines(), Lines{"FORMAT json"});
}

}  // namespace
}  // namespace gloved::tests
