// The original protocol as people type it, through the client, against the real daemon.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"

namespace gloved::tests {
namespace {

constexpr const char* kWordsOfSnake =
    "dragon\ncat\nfish\nshark\ndog\nbite\nelephant\nmouth\nlion\ntail\n";
// The sum's own words may be among the answers, but for the first.
constexpr const char* kWordsOfSum =
    "queen\nmonarch\nthrone\ndaughter\nprince\nprincess\nmother\nelizabeth\nfather\nwife\n";
constexpr const char* kTime = "T ms, D distances per ms\n";

/// Times, and what follows from them, differ from run to run.
std::string without_times(std::string text) {
    text = std::regex_replace(text, std::regex("[0-9.]+ ms, [0-9]+ distances per ms"),
                              "T ms, D distances per ms");
    return std::regex_replace(text, std::regex("keys in [0-9.]+ ms, values in [0-9.]+ ms"),
                              "keys in T ms, values in T ms");
}

TEST(OriginalDialogue, IsAnsweredAsItIsDocumented) {
    const Daemon daemon(sample_model());
    const std::string input =
        "snake 1\n"               // both engines
        "Snake 0\n"               // a miss, and on it goes
        "king -\n  man\n+ woman"  // a sum over several lines
        " ! 0\n"
        "king - man + woman \xC2\xA1 1\n"  // as some copies of the manual print it
        "snake\t0 king queen !";           // the end in the middle of a query
    const Finished f = run({program("gloved-client"), "--socket", daemon.socket_path()}, input);
    const std::string both = std::string("cpu\n") + "WORDS" + kTime + "cpu\n" + "WORDS" + kTime +
                             "the answers are identical\n";
    const auto with = [&](const char* words) {
        return std::regex_replace(both, std::regex("WORDS"), words);
    };
    EXPECT_EQ(without_times(f.out),
              std::string("model glove: 10002 words, 100 numbers each; engine cpu\n") +
                  "loaded: keys in T ms, values in T ms\n" + with(kWordsOfSnake) +
                  "not found: \"Snake\" is not in the model; near to it: \"snake\", \"stake\", "
                  "\"shake\", "
                  "\"sake\", \"state\"\n" +
                  kWordsOfSum + kTime + with(kWordsOfSum) + kWordsOfSnake + kTime);
    EXPECT_EQ(f.err,
              "gloved-client: query of \"king\" dropped: the input ended before the 0 or 1\n");
    EXPECT_EQ(f.exit_code, 1);
}

}  // namespace
}  // namespace gloved::tests
