// A log whose reader does not read.
#include "common/files.hpp"
#include "daemon/log_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace gloved::daemon {
namespace {

struct Ends {
    UniqueFd reading;
    UniqueFd writing;
};

Ends make_pipe() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Ends make_stream() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    EXPECT_EQ(::fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// Named, because GoogleTest would print a function's address into the test's name: another one in
/// every run of a program that is loaded anywhere, so that CTest would ask for a test that is not
/// there.
struct Reader {
    const char* name;
    Ends (*make)();
};

std::string name_of_reader(const testing::TestParamInfo<Reader>& info) { return info.param.name; }

std::string read_all(const UniqueFd& fd) {
    std::string text;
    std::array<char, 65536> piece;
    for (ssize_t got = 0; (got = ::read(fd.get(), piece.data(), piece.size())) > 0;) {
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::string line_of(std::size_t number) {
    return "line " + std::to_string(number) + std::string(50, '.') + "\n";
}

class LogOutputTo : public testing::TestWithParam<Reader> {};

TEST_P(LogOutputTo, KeepsWhatIsNotReadAndLosesWhatIsBeyondIt) {
    const Ends ends = GetParam().make();
    LogOutput output(ends.writing.get());
    constexpr std::size_t kLines = 100'000;  // 6 MB
    std::string written;
    for (std::size_t i = 0; i < kLines; ++i) {
        output.write(line_of(i));
        if (output.lost() == 0) written += line_of(i);
    }
    EXPECT_TRUE(output.has_pending_lines());
    EXPECT_GT(written.size(), LogOutput::kMaxPendingBytes);
    EXPECT_EQ(output.reason(), 0);

    std::string got;
    while (output.has_pending_lines()) {
        got += read_all(ends.reading);
        output.flush();
    }
    got += read_all(ends.reading);
    // Lines of one length: once one is lost, all that follow are.
    EXPECT_EQ(got.substr(0, written.size()), written);
    EXPECT_EQ(static_cast<std::size_t>(std::count(got.begin(), got.end(), '\n')) + output.lost(),
              kLines);

    output.write("the reader is back\n");
    EXPECT_EQ(read_all(ends.reading), "the reader is back\n");
}

TEST_P(LogOutputTo, AtTheEndTheReaderIsNotWaitedForLong) {
    const Ends ends = GetParam().make();
    LogOutput output(ends.writing.get());
    for (std::size_t i = 0; i < 20'000; ++i) output.write(line_of(i));
    output.finish(std::chrono::milliseconds(20));
    EXPECT_TRUE(output.has_pending_lines());
    output.write_emergency_line("last words\n");
}

TEST_P(LogOutputTo, LinesForAReaderThatIsGoneAreLost) {
    Ends ends = GetParam().make();
    LogOutput output(ends.writing.get());
    output.write("one\n");
    ends.reading.reset();
    const auto handler = ::signal(SIGPIPE, SIG_IGN);
    output.write("two\n");
    output.write("three\n");
    ::signal(SIGPIPE, handler);
    EXPECT_EQ(output.lost(), 2U);
    EXPECT_FALSE(output.has_pending_lines());
}

TEST_P(LogOutputTo, LeavesTheFlagsThatOthersShareAlone) {
    const Ends ends = GetParam().make();
    const int before = ::fcntl(ends.writing.get(), F_GETFL);
    const LogOutput output(ends.writing.get());
    EXPECT_EQ(::fcntl(ends.writing.get(), F_GETFL), before);
}

INSTANTIATE_TEST_SUITE_P(Readers, LogOutputTo,
                         testing::Values(Reader{"pipe", &make_pipe},
                                         Reader{"stream", &make_stream}),
                         &name_of_reader);

TEST(LogOutput, LongLinesReachAPipeInTheirOrder) {
    const Ends ends = make_pipe();
    LogOutput output(ends.writing.get());
    std::string written;
    for (std::size_t i = 0; i < 40; ++i) {
        const std::string line = std::string(i * 517, static_cast<char>('a' + i % 26)) + "\n";
        written += line;
        output.write(line);
    }
    EXPECT_TRUE(output.has_pending_lines());
    std::string got = read_all(ends.reading);
    while (output.has_pending_lines()) {
        output.flush();
        got += read_all(ends.reading);
    }
    EXPECT_EQ(got, written);
    EXPECT_EQ(output.lost(), 0U);
}

/// As with what another user owns, or without /proc.
std::unique_ptr<LogOutput> output_that_opens_nothing(const UniqueFd& fd) {
    return std::make_unique<LogOutput>(fd.get(), "/nowhere");
}

/// A terminal as it comes: it writes a line end as two bytes.
Ends make_terminal() {
    int reading = -1;
    int writing = -1;
    EXPECT_EQ(::openpty(&reading, &writing, nullptr, nullptr, nullptr), 0);
    EXPECT_EQ(::fcntl(reading, F_SETFL, O_NONBLOCK), 0);
    return {UniqueFd(reading), UniqueFd(writing)};
}

class LogOutputToOthers : public testing::TestWithParam<Reader> {};

TEST_P(LogOutputToOthers, IsNotWaitedForEither) {
    const Ends ends = GetParam().make();
    const auto output = output_that_opens_nothing(ends.writing);
    std::string written;
    for (std::size_t i = 0; i < 5'000; ++i) {
        written += line_of(i);
        output->write(line_of(i));
    }
    EXPECT_TRUE(output->has_pending_lines());
    EXPECT_EQ(output->lost(), 0U);
    std::string got;
    const auto read_on = [&] {
        got += read_all(ends.reading);
        got.erase(std::remove(got.begin(), got.end(), '\r'), got.end());
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (got.size() < written.size() && std::chrono::steady_clock::now() < end) {
        read_on();
        output->flush();
    }
    EXPECT_EQ(got, written);

    output->write("the reader is back\n");
    output->finish(std::chrono::seconds(20));
    output->write_emergency_line("last words\n");
    read_on();
    EXPECT_EQ(got, written + "the reader is back\nlast words\n");
}

INSTANTIATE_TEST_SUITE_P(Readers, LogOutputToOthers,
                         testing::Values(Reader{"pipe", &make_pipe},
                                         Reader{"terminal", &make_terminal}),
                         &name_of_reader);

TEST(LogOutput, ALineThatAFullDiskCutsIsEndedBeforeTheNext) {
    const tests::TempDir dir;
    const std::string path = dir / "log";
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    LogOutput output(file.get());
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit full{8, limit.rlim_max};
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
    output.write("one\n");
    output.write("two two\n");
    EXPECT_TRUE(output.has_pending_lines());
    output.flush();
    EXPECT_FALSE(output.has_pending_lines());
    output.write("three\n");
    EXPECT_EQ(output.lost(), 2U);
    EXPECT_EQ(output.reason(), EFBIG);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    ::signal(SIGXFSZ, handler);
    output.write("four\n");
    output.write("five\n");
    ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
    EXPECT_EQ(read_all(file), "one\ntwo \nfour\nfive\n");
}

}  // namespace
}  // namespace gloved::daemon
