// gloved-client without arguments: the original protocol on stdin.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
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

Action answer(const std::string& line) {
    if (line == "STATS")
        return {
            "OK 5\nmodel\tglove\nrows\t1000\ndim\t50\nload_keys_ms\t1.5\nload_values_ms\t2.5\n"};
    if (line.find("\"nix\"") != std::string::npos)
        return {"ERR unknown_word \"nix\" is not in the model\n"};
    if (line.find("\"zero\"") != std::string::npos) return {"ERR zero_vector no direction\n"};
    if (line.find("\"bye\"") != std::string::npos) return {"OK 3 us=1", true};
    if (line.find("engine=cpu") != std::string::npos)
        return {"OK 2 us=1000 engine=cpu\nking\t1.000000\nqueen\t0.700000\n"};
    return {"OK 2 us=500 engine=cuda\nking\t1.000000\nqueen\t0.700000\n"};
}

const std::string kFirstLine = "model glove: 1000 words, 50 numbers each; engine ?\n";

TEST(ClientOriginal, AnswersItsInputToTheEnd) {
    const TempDir dir;
    FakeDaemon daemon(dir / "s", answer);
    const Finished f = run({program("gloved-client"), "--socket", dir / "s"},
                           "king 0 nix 0\nking - man\n+ woman ¡ 1");
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, kFirstLine +
                         "loaded: keys in 1.5 ms, values in 2.5 ms\n"
                         "queen\n0.500 ms, 2000 distances per ms\n"
                         "not found: \"nix\" is not in the model\n"
                         "cpu\nqueen\n1.000 ms, 1000 distances per ms\n"
                         "cuda\nqueen\n0.500 ms, 2000 distances per ms\n"
                         "the answers are identical\n");
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(daemon.lines(),
              (std::vector<std::string>{
                  "STATS", "NEAR k=11 exclude=none \"king\"", "NEAR k=11 exclude=none \"nix\"",
                  "NEAR k=11 exclude=none engine=cpu \"king\" - \"man\" + \"woman\"",
                  "NEAR k=11 exclude=none \"king\" - \"man\" + \"woman\""}));
}

TEST(ClientOriginal, ARefusedQueryMakesTheStatusOne) {
    const TempDir dir;
    FakeDaemon daemon(dir / "s", answer);
    const Finished f = run({program("gloved-client"), "--socket", dir / "s"}, "zero 0 king 0");
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("zero_vector: no direction"), std::string::npos) << f.err;
    EXPECT_NE(f.out.find("queen\n"), std::string::npos)
        << "the next query is answered all the same";
}

TEST(ClientOriginal, ALostConnectionEndsIt) {
    const TempDir dir;
    FakeDaemon daemon(dir / "s", answer);
    const Finished f =
        run({program("gloved-client"), "--socket", dir / "s"}, "king 0 bye 0 king 0");
    EXPECT_EQ(f.exit_code, 1);
    EXPECT_NE(f.err.find("connection lost"), std::string::npos) << f.err;
    EXPECT_NE(f.out.find("queen\n"), std::string::npos) << "what was answered before stays printed";
}

TEST(ClientOriginal, AnswersWhileItsInputIsStillOpen) {
    const TempDir dir;
    FakeDaemon daemon(dir / "s", answer);
    const std::string fifo = dir / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    // Opened for both: opening a FIFO for writing alone would wait for its reader.
    UniqueFd input(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
    Background client({"sh", "-c", "exec \"$0\" --socket \"$1\" < \"$2\"", program("gloved-client"),
                       dir / "s", fifo});
    const auto appears = [&](const std::string& text) {
        const auto deadline = std::chrono::steady_clock::now() + 20s;
        while (client.output().find(text) == std::string::npos &&
               std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(5ms);
        }
        return client.output().find(text) != std::string::npos;
    };
    EXPECT_TRUE(appears("loaded: keys"));
    ASSERT_EQ(::write(input.get(), "king 0\n", 7), 7);
    EXPECT_TRUE(appears("0.500 ms"));
    ASSERT_EQ(::write(input.get(), "nix\n0\n", 6), 6);
    EXPECT_TRUE(appears("not found"));
    EXPECT_TRUE(client.running());
    input.reset();
    EXPECT_EQ(client.wait().exit_code, 0);
}

}  // namespace
}  // namespace gloved::tests
