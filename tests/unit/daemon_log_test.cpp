// What may be written to the log, how it looks there, and what becomes of it.
#include "daemon/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/quoting.hpp"
#include "daemon/log_limiter.hpp"
#include "tests/support/temp_dir.hpp"

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

/// Runs a case in a process of its own, since a log lives until its process ends.
void run_alone(const std::function<void()>& body) {
    const auto run = [&body] {
        body();
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

/// Starts a log that goes to a descriptor; lines begin with their priority.
void start_log_to(const UniqueFd& fd) {
    struct stat status {};
    EXPECT_EQ(::dup2(fd.get(), STDERR_FILENO), STDERR_FILENO);
    EXPECT_EQ(::fstat(fd.get(), &status), 0);
    const std::string stream = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
    ::signal(SIGPIPE, SIG_IGN);  // as gloved does
    start_log(spdlog::level::info);
}

struct Pipe {
    UniqueFd reading;
    UniqueFd writing;
};

Pipe make_pipe() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// Reads `size` bytes, or up to the end.
std::string read_some(const UniqueFd& fd, std::size_t size) {
    std::string text(size, '\0');
    std::size_t done = 0;
    ssize_t got = 0;
    while (done < size && (got = ::read(fd.get(), text.data() + done, size - done)) > 0)
        done += static_cast<std::size_t>(got);
    text.resize(done);
    return text;
}

void write_info(const std::string& line) { write_log_always(spdlog::level::info, line); }

TEST(Log, LinesReachASlowReaderInTheirOrder) {
    run_alone([] {
        const Pipe pipe = make_pipe();
        start_log_to(pipe.writing);
        std::string expected;
        for (std::size_t i = 0; i < 40; ++i) {  // 400 KB in all; a pipe has room for 64
            const std::string line(i * 517, static_cast<char>('a' + i % 26));
            write_info(line);
            expected += "<6>" + line + "\n";
        }
        EXPECT_EQ(read_some(pipe.reading, expected.size()), expected);
        EXPECT_EQ(lost_log_lines(), 0U);
    });
}

TEST(Log, AtTheEndAReaderGetsTheLastLinesAndIsNotWaitedForLong) {
    run_alone([] {
        const Pipe pipe = make_pipe();
        start_log_to(pipe.writing);
        write_info("last");
        end_log();
        EXPECT_EQ(::fcntl(pipe.reading.get(), F_SETFL, O_NONBLOCK), 0);
        EXPECT_EQ(read_some(pipe.reading, 100), "<6>last\n");

        for (std::size_t i = 0; i < 5'000; ++i) write_info(std::string(50, '.'));
        const auto begun = std::chrono::steady_clock::now();
        end_log();
        write_emergency_line(std::string(100, '!') + "\n");
        EXPECT_LT(std::chrono::steady_clock::now() - begun, 1s);
    });
}

TEST(Log, AnEmergencyLineComesAfterThoseThatWait) {
    run_alone([] {
        const tests::TempDir dir;
        const std::string path = dir / "log";
        const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        start_log_to(file);
        std::string expected;
        for (std::size_t i = 0; i < 5'000; ++i) {
            const std::string line = std::to_string(i);
            write_info(line);
            expected += "<6>" + line + "\n";
        }
        write_emergency_line("the end\n");
        EXPECT_EQ(tests::read_file(path), expected + "the end\n");
    });
}

TEST(Log, LinesForAReaderThatIsGoneAreCounted) {
    run_alone([] {
        Pipe pipe = make_pipe();
        start_log_to(pipe.writing);
        pipe.reading.reset();
        write_info("one");
        write_info("two");
        end_log();
        EXPECT_EQ(lost_log_lines(), 2U);
    });
}

TEST(Log, LeavesTheFlagsThatOthersShareAlone) {
    run_alone([] {
        const Pipe pipe = make_pipe();
        const int before = ::fcntl(pipe.writing.get(), F_GETFL);
        start_log_to(pipe.writing);
        write_info("line");
        end_log();
        EXPECT_EQ(::fcntl(pipe.writing.get(), F_GETFL), before);
    });
}

TEST(Log, TellsWhatAFullDiskTook) {
    run_alone([] {
        const tests::TempDir dir;
        const std::string path = dir / "log";
        const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        start_log_to(file);
        rlimit limit{};
        ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
        const rlimit full{11, limit.rlim_max};
        ::signal(SIGXFSZ, SIG_IGN);
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
        write_info("one");
        write_info("two two");
        write_info("three");
        end_log();
        EXPECT_EQ(lost_log_lines(), 2U);
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
        write_info("four");
        end_log();
        EXPECT_EQ(tests::read_file(path),
                  "<6>one\n<6>t\n<6>four\n"
                  "<4>2 lines of the log were lost: standard error could not be written "
                  "(File too large)\n");
    });
}

}  // namespace
}  // namespace gloved::daemon
