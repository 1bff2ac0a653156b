#include "daemon/log.hpp"

#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "common/quoting.hpp"
#include "daemon/log_limiter.hpp"

namespace gloved::daemon {
namespace {

constexpr std::uint64_t kLinesASecond = 10;
/// How long the end of the process waits for a reader.
constexpr std::chrono::milliseconds kMaxFinishTime{200};
constexpr std::chrono::milliseconds kMaxEmergencyTime{100};
/// Lines that wait for a slow reader. Their places take 3.3 MB.
constexpr std::size_t kMaxWaitingLines = 8192;
/// The level of a message that is no line: it asks the sink to tell how many were lost.
constexpr auto kTellLost = spdlog::level::off;
/// Bytes from which on lines are written though more wait.
constexpr std::size_t kMaxTogether = 32768;

/// Whether standard error goes to journald: compares its device and inode with JOURNAL_STREAM
/// (systemd.exec(5)).
bool goes_to_journal() {
    const char* stream = std::getenv("JOURNAL_STREAM");
    struct stat status {};
    if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
    return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

/// The priorities of syslog(3), as sd-daemon(3) writes them.
std::string_view priority_of(spdlog::level::level_enum level) {
    switch (level) {
        case spdlog::level::critical:
            return "<2>";
        case spdlog::level::err:
            return "<3>";
        case spdlog::level::warn:
            return "<4>";
        case spdlog::level::info:
            return "<6>";
        default:
            return "<7>";
    }
}

class PriorityFlag : public spdlog::custom_flag_formatter {
  public:
    void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
                spdlog::memory_buf_t& out) override {
        const std::string_view priority = priority_of(message.level);
        out.append(priority.data(), priority.data() + priority.size());
    }
    std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
        return std::make_unique<PriorityFlag>();
    }
};

/// Writes lines to standard error, on a thread of its own: a reader that does not read stops this
/// thread and nothing else.
class Sink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  public:
    explicit Sink(spdlog::details::thread_pool& lines) : lines_(lines) {}

    /// Number of lines that were lost. Any thread.
    std::uint64_t lost() const { return lines_.overrun_counter() + failed_; }
    /// Of these, how many a line of the log has told of. Any thread.
    std::uint64_t told() const { return told_; }
    /// Number of messages that were written, or could not be. Any thread, and signal handlers.
    std::uint64_t done() const { return done_; }
    /// Whether the last byte written was not LF. Any thread, and signal handlers.
    bool is_within_line() const { return within_line_; }
    /// Counts a line that could not be made, for want of memory. Any thread.
    void lose() {
        ++failed_;
        ++done_;
    }

  protected:
    /// Lines that wait are written together, since a write takes longer than making a line.
    void sink_it_(const spdlog::details::log_msg& message) override {
        if (message.level != kTellLost) add(message);
        ++added_;
        if (text_.size() < kMaxTogether && lines_.queue_size() > 0) return;
        failed_ += write();
        if (message.level == kTellLost) tell();
        done_ += std::exchange(added_, 0);
    }
    void flush_() override {}

  private:
    /// Tells how many lines were lost since it last did.
    void tell() {
        const std::uint64_t lost = this->lost();
        const std::string why =
            error_ == 0 ? "was not read in time"
                        : "could not be written (" + std::generic_category().message(error_) + ")";
        const std::string line =
            fmt::format("{} lines of the log were lost: standard error {}", lost - told_, why);
        add({"gloved", spdlog::level::warn, line});
        if (write() > 0) return;
        told_ = lost;
        error_ = 0;
    }

    void add(const spdlog::details::log_msg& message) {
        // The rest of the last line is lost, as on a full disk.
        if (text_.size() == 0 && within_line_) text_.push_back('\n');
        formatter_->format(message, text_);
    }

    /// Writes the lines that were added, and waits until the reader has taken them. Returns the
    /// number of those that cannot be written to their ends.
    std::uint64_t write() {
        const std::string_view all(text_.data(), text_.size());
        std::string_view left = all;
        while (!left.empty()) {
            const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
            if (written > 0) {
                left.remove_prefix(static_cast<std::size_t>(written));
            } else if (written < 0 && errno == EAGAIN) {
                // Another process that shares the descriptor made it non-blocking.
                pollfd room{STDERR_FILENO, POLLOUT, 0};
                (void)::poll(&room, 1, -1);
            } else if (written == 0 || errno != EINTR) {
                error_ = written < 0 ? errno : EIO;
                break;
            }
        }
        const std::size_t done = all.size() - left.size();
        if (done > 0) within_line_ = all[done - 1] != '\n';
        // An LF in front ends the line before.
        if (done == 0 && left.starts_with('\n')) left.remove_prefix(1);
        const auto lost = static_cast<std::uint64_t>(std::ranges::count(left, '\n'));
        text_.clear();
        return lost;
    }

    spdlog::details::thread_pool& lines_;
    spdlog::memory_buf_t text_;
    /// Messages that are not in `done_` yet.
    std::uint64_t added_ = 0;
    /// Why the last line could not be written since `told_`; 0: none failed.
    int error_ = 0;
    std::atomic<bool> within_line_{false};
    std::atomic<std::uint64_t> failed_{0};
    std::atomic<std::uint64_t> told_{0};
    std::atomic<std::uint64_t> done_{0};
};

/// Whether writes to standard error wait for whoever reads it. A file has no reader.
bool is_for_reader() {
    struct stat status {};
    return ::fstat(STDERR_FILENO, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(STDERR_FILENO) == 1);
}

/// The lines that wait, the thread that writes them, and its sink. Made by start_log and never
/// freed: threads log until the process ends, and joining a thread that writes may take forever.
struct Log {
    const bool has_reader = is_for_reader();
    std::shared_ptr<spdlog::details::thread_pool> lines =
        std::make_shared<spdlog::details::thread_pool>(kMaxWaitingLines, 1);
    std::shared_ptr<Sink> sink = std::make_shared<Sink>(*lines);
    // Without a reader, no line need be lost because more are logged than the thread can write.
    std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::async_logger>(
        "gloved", sink, lines,
        has_reader ? spdlog::async_overflow_policy::overrun_oldest
                   : spdlog::async_overflow_policy::block);
    /// Number of messages for the sink.
    std::atomic<std::uint64_t> logged{0};

    void log(spdlog::level::level_enum level, const std::string& line) {
        ++logged;
        logger->log(level, spdlog::string_view_t(line));
    }
    bool is_written() const { return sink->done() + lines->overrun_counter() >= logged; }
    bool has_to_tell() const {
        return sink->lost() != sink->told() && logger->should_log(spdlog::level::warn);
    }
    /// Asks the sink to tell how many lines were lost.
    void tell() { log(kTellLost, ""); }
};

Log* started = nullptr;

/// A file, as a literal, and its line.
using Place = std::tuple<std::string_view, int>;

struct Limits {
    std::mutex mutex;
    LogLimiter<Place> limiter{kLinesASecond};
};

Limits& limits() {
    static Limits limits;
    return limits;
}

}  // namespace

void start_log(spdlog::level::level_enum level) {
    started = new Log;
    // Without this, spdlog would tell of it on standard error itself, and wait for the reader.
    started->logger->set_error_handler([](const std::string&) { started->sink->lose(); });
    spdlog::set_default_logger(started->logger);
    if (goes_to_journal()) {
        auto formatter = std::make_unique<spdlog::pattern_formatter>();
        formatter->add_flag<PriorityFlag>('*').set_pattern("%*%v");
        spdlog::set_formatter(std::move(formatter));
    } else {
        spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
    }
    spdlog::set_level(level);
}

std::string_view log_prefix_of_errors() {
    static const bool to_journal = goes_to_journal();
    return to_journal ? priority_of(spdlog::level::err) : std::string_view();
}

void write_log(spdlog::level::level_enum level, const spdlog::source_loc& where,
               const std::string& line) {
    if (!spdlog::should_log(level)) return;
    {
        const std::lock_guard lock(limits().mutex);
        if (!limits().limiter.admit({where.filename, where.line}, LogLimiter<Place>::Clock::now()))
            return;
    }
    write_log_always(level, line);
}

void write_log_always(spdlog::level::level_enum level, const std::string& line) {
    if (!spdlog::should_log(level)) return;
    const std::string text = without_control_bytes(line);
    if (started == nullptr)
        spdlog::log(level, spdlog::string_view_t(text));
    else
        started->log(level, text);
}

namespace {

/// Reports how many lines were suppressed in seconds that are over, or `at_the_end` in all.
void log_suppressed(bool at_the_end) {
    using Clock = LogLimiter<Place>::Clock;
    const auto now = at_the_end ? Clock::time_point::max() : Clock::now();
    std::uint64_t suppressed = 0;
    {
        const std::lock_guard lock(limits().mutex);
        for (const auto& [place, count] : limits().limiter.take_suppressed(now))
            suppressed += count;
    }
    if (suppressed > 0) {
        write_log_always(
            spdlog::level::warn,
            fmt::format("{} more lines like the last ones were suppressed", suppressed));
    }
}

}  // namespace

void flush_log() {
    log_suppressed(false);
    // Not while lines wait: the reader is not back.
    if (started != nullptr && started->has_to_tell() && started->is_written()) started->tell();
}

void end_log() {
    log_suppressed(true);
    if (started == nullptr) return;
    const auto end = std::chrono::steady_clock::now() + kMaxFinishTime;
    const auto finish = [end] {
        while (!started->is_written()) {
            if (std::chrono::steady_clock::now() >= end) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return true;
    };
    if (!finish() || !started->has_to_tell()) return;
    started->tell();
    (void)finish();
}

std::uint64_t lost_log_lines() { return started == nullptr ? 0 : started->sink->lost(); }

void write_emergency_line(std::string_view text) noexcept {
    // It calls clock_gettime alone, which signal handlers may.
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + kMaxEmergencyTime;
    const auto ms_left = [end] {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
        return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    };
    // Lines that were logged before come first, if somebody reads them. Once some were pushed out
    // of the queue, this waits in vain: to ask how many takes a lock.
    const auto waits = [] { return started != nullptr && started->sink->done() < started->logged; };
    while (waits() && ms_left() > 0) (void)::poll(nullptr, 0, 1);
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    while (::poll(&room, 1, ms_left()) < 0 && errno == EINTR) {
    }
    if ((room.revents & POLLOUT) == 0) return;
    const bool cut = started != nullptr && started->sink->is_within_line();
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): writev does not write to it
    iovec parts[] = {{const_cast<char*>("\n"), 1}, {const_cast<char*>(text.data()), text.size()}};
    iovec* const first = cut ? parts : parts + 1;
    const int count = cut ? 2 : 1;
    // The log's thread may take the room meanwhile. Where the system can, nothing waits for that.
    const bool may_wait = started == nullptr || started->has_reader;
    if (!may_wait ||
        (::pwritev2(STDERR_FILENO, first, count, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP))
        (void)!::writev(STDERR_FILENO, first, count);
}

}  // namespace gloved::daemon
