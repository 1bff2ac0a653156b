#include <gtest/gtest.h>

#include <deque>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/connection.hpp"
#include "client/original_session.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {
namespace {

Reply reply(const std::string& status, const std::vector<std::string>& lines = {}) {
    std::string text = status + '\n';
    for (const std::string& line : lines) text += line + '\n';
    return {*wire::parse_status_line(status), text};
}

const Reply kStats = reply(
    "OK 5", {"model\tglove", "rows\t1000", "dim\t50", "load_keys_ms\t1.5", "load_values_ms\t2.5"});

struct Transcript {
    std::string out;
    std::string err;
    std::vector<std::string> asked;
    std::string result;  ///< «all well», «not all well» or the error's message
};

/// Runs a session whose daemon gives `replies` after its STATS; when they run out, the connection
/// is lost.
Transcript session(const std::string& input, std::deque<Reply> replies,
                   const Reply& stats = kStats) {
    Transcript made;
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    replies.push_front(stats);
    const auto result =
        run_original_session(in, out, err, [&](std::string_view line) -> Result<Reply> {
            made.asked.emplace_back(line);
            if (replies.empty()) return Error{ErrorCode::unavailable, "lost"};
            Reply next = std::move(replies.front());
            replies.pop_front();
            return next;
        });
    made.out = out.str();
    made.err = err.str();
    made.result = !result ? result.error().message : *result ? "all well" : "not all well";
    return made;
}

const std::string kHead =
    "model glove: 1000 words, 50 numbers each; engine ?\n"
    "loaded: keys in 1.5 ms, values in 2.5 ms\n";

TEST(OriginalSession, AnswersOneWord) {
    const Transcript r =
        session("king 0",
                {reply("OK 3 us=500 engine=cpu", {"king\t1.000000", "queen\t0.7", "prince\t0.6"})});
    EXPECT_EQ(r.out, kHead + "queen\nprince\n0.500 ms, 2000 distances per ms\n");
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.asked, (std::vector<std::string>{"STATS", "NEAR k=11 exclude=none \"king\""}));
    EXPECT_EQ(r.result, "all well");
}

TEST(OriginalSession, ComparesTheCpuWithTheDaemonsEngine) {
    const auto cpu = reply("OK 1 us=2000 engine=cpu", {"b\t0.500000"});
    const Transcript same =
        session("a 1", {cpu, reply("OK 1 us=100 engine=cuda", {"b\t0.500000"})});
    EXPECT_EQ(same.out, kHead +
                            "cpu\nb\n2.000 ms, 500 distances per ms\n"
                            "cuda\nb\n0.100 ms, 10000 distances per ms\n"
                            "the answers are identical\n");
    EXPECT_EQ(same.asked.at(1), "NEAR k=11 exclude=none engine=cpu \"a\"");
    EXPECT_EQ(same.asked.at(2), "NEAR k=11 exclude=none \"a\"");
    const Transcript differ =
        session("a 1", {cpu, reply("OK 1 us=100 engine=cuda", {"b\t0.500001"})});
    EXPECT_NE(differ.out.find("THE ANSWERS DIFFER"), std::string::npos) << "scores count too";
}

TEST(OriginalSession, CountsTheRowsThatAnAnswerNames) {
    const Transcript r = session(
        "king 0",
        {reply("OK 1 engine=cpu us=500 rows=3000 model=other generation=0f", {"queen\t0.7"})});
    EXPECT_EQ(r.out, kHead + "queen\n0.500 ms, 6000 distances per ms\n")
        << "not those of STATS, which may be of an older model";
}

TEST(OriginalSession, DoesNotCompareAnswersOfTwoModels) {
    const Transcript r = session(
        "a 1", {reply("OK 1 engine=cpu us=2000 rows=10 model=g generation=01", {"b\t0.500000"}),
                reply("OK 1 engine=cpu us=1000 rows=10 model=g generation=02", {"c\t0.400000"})});
    EXPECT_EQ(r.out, kHead +
                         "cpu\nb\n2.000 ms, 5 distances per ms\n"
                         "cpu\nc\n1.000 ms, 10 distances per ms\n"
                         "the model was replaced in between: the answers are not compared\n");
    EXPECT_EQ(r.result, "all well");
}

TEST(OriginalSession, PassesOnNearSpellings) {
    const Transcript r = session(
        "King 1",
        {reply("ERR unknown_word \"King\" is not in the model; near to it: \"king\", \"kings\"")});
    EXPECT_EQ(r.out,
              kHead + "not found: \"King\" is not in the model; near to it: \"king\", \"kings\"\n");
    EXPECT_EQ(r.err, "");
}

TEST(OriginalSession, GoesOnAfterARefusal) {
    const Transcript r =
        session("nix 1 zero 0 king 0", {reply("ERR unknown_word \"nix\" is unknown"),
                                        reply("ERR zero_vector no direction"),
                                        reply("OK 1 us=1000 engine=cpu", {"queen\t0.7"})});
    EXPECT_EQ(r.out,
              kHead + "not found: \"nix\" is unknown\nqueen\n1.000 ms, 1000 distances per ms\n");
    EXPECT_EQ(r.err, "gloved-client: zero_vector: no direction\n");
    EXPECT_EQ(r.asked.size(), 4U) << "an unknown word is asked for once";
    EXPECT_EQ(r.result, "not all well");
}

TEST(OriginalSession, GoesOnAfterMalformedInput) {
    const Transcript r =
        session("a + b 0 king 0 c", {reply("OK 1 us=1000 engine=cpu", {"queen\t0.7"})});
    EXPECT_NE(r.out.find("queen\n"), std::string::npos);
    EXPECT_NE(r.err.find("\"a\""), std::string::npos);
    EXPECT_NE(r.err.find("\"c\""), std::string::npos);
    EXPECT_EQ(r.result, "not all well");
}

TEST(OriginalSession, DoesNotSendWhatTheDaemonWouldHangUpOn) {
    const Transcript r = session(std::string(70000, 'a') + " 0 king 0",
                                 {reply("OK 1 us=1000 engine=cpu", {"queen\t0.7"})});
    EXPECT_NE(r.err.find("too_long"), std::string::npos);
    EXPECT_EQ(r.asked.size(), 2U);
    EXPECT_NE(r.out.find("queen\n"), std::string::npos);
}

TEST(OriginalSession, FlushesBeforeItReadsOn) {
    struct : std::stringbuf {
        std::string flushed;
        int sync() override {
            flushed = str();
            return 0;
        }
    } buffer;
    std::ostream out(&buffer);
    std::istringstream in("king 0 nix 0");
    std::vector<std::string> flushed_when_asked;
    const auto result =
        run_original_session(in, out, out, [&](std::string_view line) -> Result<Reply> {
            flushed_when_asked.push_back(buffer.flushed);
            if (line == "STATS") return kStats;
            return line.find("nix") == std::string_view::npos ? reply("OK 1 us=500", {"queen\t0.7"})
                                                              : reply("ERR unknown_word x");
        });
    ASSERT_TRUE(result);
    EXPECT_EQ(
        flushed_when_asked,
        (std::vector<std::string>{"", kHead, kHead + "queen\n0.500 ms, 2000 distances per ms\n"}));
    EXPECT_TRUE(buffer.flushed.ends_with("not found: x\n"));
}

TEST(OriginalSession, EndsWhenTheConnectionIsLost) {
    EXPECT_EQ(session("king 0 queen 0", {}).result, "lost");
    EXPECT_EQ(session("king 1", {reply("OK 0 us=1 engine=cpu")}).result, "lost");
}

TEST(OriginalSession, LeavesOutWhatItCannotDerive) {
    const Transcript r =
        session("king 0", {reply("OK 1", {"queen\t0.7"})}, reply("ERR internal no figures"));
    EXPECT_EQ(r.out, "queen\n0.000 ms\n");
    EXPECT_EQ(r.err, "gloved-client: internal: no figures\n");
}

}  // namespace
}  // namespace gloved::client
