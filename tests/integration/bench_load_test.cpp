// gloved-bench load against a daemon, and against peers that do wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/client_fake_daemon.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

Finished run_load(const std::string& socket, std::vector<std::string> options) {
    std::vector<std::string> arguments = {program("gloved-bench"), "load", socket, "--seconds",
                                          "0.3"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run(arguments);
}

/// The cells of the first CSV row with this name; empty if there is none.
std::vector<std::string> row_of(const std::string& csv, const std::string& name) {
    const std::size_t begin = csv.find("\n" + name + ",");
    std::vector<std::string> cells;
    if (begin == std::string::npos) return cells;
    std::string row = csv.substr(begin + 1, csv.find('\n', begin + 1) - begin - 1);
    for (std::size_t comma = row.find(','); comma != std::string::npos; comma = row.find(',')) {
        cells.push_back(row.substr(0, comma));
        row.erase(0, comma + 1);
    }
    cells.push_back(row);
    return cells;
}

/// How many answers a row of the first table counts.
double answers_of(const std::string& csv, const std::string& name) {
    const auto cells = row_of(csv, name);
    return cells.size() < 2 ? -1 : std::stod(cells[1]);
}

TEST(BenchLoad, AsksEveryKindAndFindsEveryAnswerRight) {
    const Daemon daemon(sample_model());
    for (const std::string verb : {"near", "nearvec", "analogy", "cosmul", "rank", "sim", "dist",
                                   "vec", "odd", "matrix", "prefix", "has", "ping"}) {
        const auto done =
            run_load(daemon.socket_path(), {"--mix", verb, "--check", "0.02", "--format", "csv"});
        EXPECT_EQ(done.exit_code, 0) << verb << done.err << done.out;
        EXPECT_GT(answers_of(done.out, verb), 0) << done.out;
        EXPECT_EQ(row_of(done.out, verb).back(), "0") << done.out;
        EXPECT_NE(done.out.find(", 0 wrong\n"), std::string::npos) << done.out;
        EXPECT_EQ(done.out.find("checked    0 answers"), std::string::npos) << done.out;
    }
}

TEST(BenchLoad, PrintsBothSidesAndTheLoneClient) {
    const Daemon daemon(sample_model());
    const auto done =
        run_load(daemon.socket_path(),
                 {"--mix", "near=2,ping=8", "--lone", "--connections", "5", "--depth", "300",
                  "--threads", "2", "--model", sample_model(), "--format", "csv"});
    ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
    EXPECT_GT(answers_of(done.out, "lone client"), 0) << done.out;
    EXPECT_EQ(answers_of(done.out, "all"),
              answers_of(done.out, "near") + answers_of(done.out, "ping"));
    EXPECT_GT(answers_of(done.out, "gloved-bench"), 0) << "seconds of processor time: " << done.out;
    EXPECT_GT(answers_of(done.out, "daemon"), 0) << done.out;
}

TEST(BenchLoad, SendsAsManyRequestsAsTheRateSays) {
    const Daemon daemon(sample_model());
    const auto done = run_load(daemon.socket_path(), {"--mix", "ping", "--rate", "7000",
                                                      "--connections", "3", "--format", "csv"});
    ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
    EXPECT_EQ(answers_of(done.out, "ping"), 2100) << done.out;
    EXPECT_NE(done.out.find("# sent late  by "), std::string::npos) << done.out;
}

TEST(BenchLoad, CountsErrorsApart) {
    const Daemon daemon(sample_model(), {"--queue-length", "1"});
    const auto done =
        run_load(daemon.socket_path(), {"--check", "0", "--connections", "32", "--format", "csv"});
    ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
    EXPECT_NE(done.out.find("# ERR        busy: "), std::string::npos) << done.out;
    EXPECT_NE(row_of(done.out, "near").back(), "0") << done.out;
}

TEST(BenchLoad, TellsThatTheDaemonRefuses) {
    const Daemon daemon(sample_model(), {"--max-k", "10"});
    const auto refused = run_load(daemon.socket_path(), {"--k", "11"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("the daemon answers bad_request: k="), std::string::npos)
        << refused.err;
    const TempDir dir;
    make_model(dir / "other", random_entries(5, 3, 1));
    const auto other = run_load(daemon.socket_path(), {"--model", dir / "other"});
    EXPECT_EQ(other.exit_code, 1) << other.out;
    EXPECT_NE(other.err.find("has generation "), std::string::npos) << other.err;
    const auto nobody = run_load(daemon.socket_path() + "x", {});
    EXPECT_EQ(nobody.exit_code, 1);
    EXPECT_NE(nobody.err.find("no daemon to talk to at " + daemon.socket_path() + "x (No such"),
              std::string::npos)
        << nobody.err;
}

/// Answers what a load asks before it begins: STATS and PREFIX.
std::string answer_of_small_model(const std::string& line) {
    if (line == "STATS") return "OK 2\nmodel\tsmall\nmax_k\t100\n";
    if (line.starts_with("PREFIX"))
        return line.ends_with("\"a\"") ? "OK 2 us=1\na\t1.5\nzero\t0.000000\n" : "OK 0 us=1\n";
    return "";
}

TEST(BenchLoad, PrintsAnAnswerThatIsWrongByADigitAndFails) {
    const TempDir dir;
    std::atomic<int> asked = 0;
    const FakeDaemon daemon(dir / "s", [&](const std::string& line) {
        const std::string answer = answer_of_small_model(line);
        if (!answer.empty()) return Action{answer};
        // Before the load come those that its answers are compared with, 1 in 100 of 16,384.
        return Action{++asked > 200 ? "OK 1 us=8\n0.999998\n" : "OK 1 us=7\n0.999999\n"};
    });
    const auto wrong =
        run_load(dir / "s", {"--mix", "sim", "--connections", "1", "--check", "0.01"});
    EXPECT_EQ(wrong.exit_code, 1) << wrong.out;
    EXPECT_NE(wrong.err.find("an answer under load differs"), std::string::npos) << wrong.err;
    EXPECT_NE(wrong.out.find("request: SIM \"a\" \"a\"\n"
                             "right reply: OK 1 us=7\n"
                             "  line 1: 0.999999\n"
                             "wrong reply: OK 1 us=8\n"
                             "  line 1: 0.999998\n"),
              std::string::npos)
        << wrong.out;
}

TEST(BenchLoad, FailsIfThePeerClosesOrSpeaksAnotherLanguage) {
    const TempDir dir;
    std::atomic<int> pings = 0;
    const FakeDaemon closing(dir / "closing", [&](const std::string& line) {
        const std::string answer = answer_of_small_model(line);
        if (!answer.empty()) return Action{answer};
        return ++pings < 500 ? Action{"OK 0\n"} : Action{"ERR idle nothing came\n", true};
    });
    const auto closed =
        run_load(dir / "closing", {"--mix", "ping", "--connections", "1", "--depth", "3"});
    EXPECT_EQ(closed.exit_code, 1);
    EXPECT_NE(closed.err.find("the daemon closed a connection"), std::string::npos) << closed.err;
    EXPECT_NE(closed.err.find("idle"), std::string::npos) << closed.err;

    for (const std::string answer : {"HTTP/1.1 400 Bad Request\r\n", "{\"ok\":true}\n"}) {
        const std::string socket = dir / std::to_string(answer.size());
        const FakeDaemon strange(socket, [&](const std::string& line) {
            return Action{line == "STATS" ? "OK 0\n" : answer};
        });
        const auto other =
            run_load(socket, {"--mix", "ping", "--connections", "1", "--check", "0"});
        EXPECT_EQ(other.exit_code, 1);
        EXPECT_NE(other.err.find("does not speak gloved's protocol"), std::string::npos)
            << other.err;
    }

    const FakeDaemon endless(dir / "endless", [](const std::string&) {
        return Action{"OK 1\n" + std::string(5 << 20, 'a')};
    });
    const auto line = run_load(dir / "endless", {"--mix", "ping"});
    EXPECT_EQ(line.exit_code, 1);
    EXPECT_NE(line.err.find("a line of more than 4194304 bytes"), std::string::npos) << line.err;
}

TEST(BenchLoad, StopsAtASignal) {
    const Daemon daemon(sample_model());
    Background load({program("gloved-bench"), "load", daemon.socket_path(), "--mix", "ping",
                     "--seconds", "600"});
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    load.signal(2);
    EXPECT_EQ(load.wait(std::chrono::seconds(5)).exit_code, 1);
}

}  // namespace
}  // namespace gloved::tests
