// What may be written to the log, and how it looks there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/quoting.hpp"
#include "daemon/log_limiter.hpp"

namespace gloved::daemon {
namespace {

using namespace std::chrono_literals;

const LogLimiter<int>::Clock::time_point kStart{1h};

TEST(LogLimiter, LetsTheFirstLinesOfEachSecondThrough) {
    LogLimiter<int> limiter(3);
    for (int second = 0; second < 3; ++second) {
        const auto now = kStart + second * 1s;
        for (int line = 0; line < 3; ++line)
            EXPECT_TRUE(limiter.admit(1, now + line * 300ms)) << second << " " << line;
    }
}

TEST(LogLimiter, CountsWhatItLeavesOutAndTellsItOnce) {
    LogLimiter<int> limiter(3);
    int written = 0;
    for (int line = 0; line < 100; ++line) written += limiter.admit(1, kStart + line * 1ms) ? 1 : 0;
    EXPECT_EQ(written, 3);
    EXPECT_TRUE(limiter.take_suppressed(kStart + 999ms).empty());
    using LeftOut = std::vector<std::pair<int, std::uint64_t>>;
    EXPECT_EQ(limiter.take_suppressed(kStart + 1s), (LeftOut{{1, 97}}));
    EXPECT_TRUE(limiter.take_suppressed(kStart + 1s).empty());
    // The line that told of them is one of the next second's.
    EXPECT_TRUE(limiter.admit(1, kStart + 1s));
    EXPECT_TRUE(limiter.admit(1, kStart + 1s));
    EXPECT_FALSE(limiter.admit(1, kStart + 1s));
}

TEST(LogLimiter, CountsEveryCauseAlone) {
    LogLimiter<int> limiter(1);
    EXPECT_TRUE(limiter.admit(1, kStart));
    EXPECT_FALSE(limiter.admit(1, kStart));
    EXPECT_TRUE(limiter.admit(2, kStart));
}

TEST(WithoutControlBytes, KeepsALineOneLineAndTextText) {
    EXPECT_EQ(without_control_bytes("naïve «x» \"y\" \\"), "naïve «x» \"y\" \\");
    EXPECT_EQ(without_control_bytes("a\nb\r\t\x1B[31m\x7F"), "a\\x0Ab\\x0D\\x09\\x1B[31m\\x7F");
    EXPECT_EQ(without_control_bytes("\xC2\x9B"
                                    "1m"),
              "\\xC2\\x9B1m");  // CSI as one character
    EXPECT_EQ(without_control_bytes("\xFF\xC0\x80\xED\xA0\x80"), "\\xFF\\xC0\\x80\\xED\\xA0\\x80");
    EXPECT_EQ(without_control_bytes(std::string(1, '\0')), "\\x00");
}

}  // namespace
}  // namespace gloved::daemon
