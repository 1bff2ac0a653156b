// The daemon as its users meet it: over a socket, with its real model and its real limits.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/plane_scan.hpp"
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

TEST(Daemon, TellsAnIdleConnectionAndClosesIt) {
    const Daemon daemon(sample_model(), {"--idle-timeout", "0.3"});
    Connection idle(daemon.socket_path());
    EXPECT_EQ(idle.read_reply().status, "ERR idle idle for too long; closing");
    EXPECT_TRUE(idle.closed_by_peer());
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

TEST(Batches, HaveAFinePlaneOfTheirOwnUnlessItIsOff) {
    const auto* const kernel = kernels::cpu::plane_kernel_for("");
    const bool has_loop = kernel != nullptr && kernel->fine_loop.width != 0;
    std::vector<std::vector<std::string>> wanted;
    for (const std::string setting : {"off", "auto", "on"}) {
        const Daemon daemon(sample_model(), {"--fine-plane", setting});
        Connection connection(daemon.socket_path());
        connection.ask("NEAR king");
        const auto has_fine_plane = [&] {
            const auto lines = connection.ask("STATS").lines;
            return std::ranges::find(lines, "fine_plane_bytes\t0") == lines.end();
        };
        EXPECT_FALSE(has_fine_plane()) << setting;
        const bool is_wanted = has_loop && setting != "off";
        std::string all;
        for (int i = 1; i <= 256; ++i) all += "NEAR king - 0." + std::to_string(i) + " * of\n";
        bool is_made = false;
        const auto deadline = Clock::now() + seconds(20);
        for (int round = 0; round < 10 || (is_wanted && !is_made && Clock::now() < deadline);
             ++round) {
            ASSERT_TRUE(connection.send(all));
            std::vector<std::vector<std::string>> answers;
            for (int i = 0; i < 256; ++i) answers.push_back(connection.read_reply().lines);
            if (wanted.empty()) wanted = answers;
            ASSERT_EQ(answers, wanted) << setting << ", round " << round;
            is_made = has_fine_plane();
        }
        EXPECT_EQ(is_made, is_wanted) << setting;
    }
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
    EXPECT_EQ(fault_of("[limits]"), at + "there are no sections here; remove the line");
    EXPECT_EQ(fault_of("config = a"), at + "'config' is allowed on the command line only");
    EXPECT_EQ(fault_of("model = words=/elsewhere"),
              at + "--model: two models are called words; rename one with --model NAME=DIR");
    EXPECT_EQ(fault_of("list = a=b\nlist = nix/a=c"),
              "gloved: " + path + ":5: --list: there is no model \"nix\"; see --model");
    EXPECT_EQ(fault_of("pin = on\npin = off"),
              "gloved: " + path + ":5: 'pin' stands in line 4 already; remove one");
    for (const std::string wrong :
         {"threads = many", "threads = -1", "max-k = 9", "log-level = loud", "batch-ms = nan",
          "gpu-memory = 6 apples", "device = x", "idle-timeout = 0.0005", "socket =", "list = x",
          "uid-share = 101", "threads = ", "simd =", "gpu-memory =", "check = 1", "help = 1"}) {
        EXPECT_EQ(fault_of(wrong).rfind(at, 0), 0U) << wrong << ": " << fault_of(wrong);
    }
    write_file(path, "# nothing\n");
    EXPECT_NE(run({program("gloved"), "--config", path}).err.find(path + ": has no line 'model ="),
              std::string::npos);
    write_file(path, "threads = many\n");
    const Finished replaced = run({program("gloved"), "--config", path, "--model", "words=/nowhere",
                                   "--threads", "1", "--check"});
    EXPECT_EQ(replaced.exit_code, 2) << "a wrong line that the command line replaces";
    EXPECT_NE(replaced.err.find(path + ":1: --threads takes"), std::string::npos) << replaced.err;
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
