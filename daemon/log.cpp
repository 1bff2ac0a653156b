#include "daemon/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <system_error>
#include <tuple>

#include "common/quoting.hpp"
#include "daemon/log_limiter.hpp"
#include "daemon/log_output.hpp"

namespace gloved::daemon {
namespace {

constexpr std::uint64_t kLinesASecond = 10;
/// How long the end of the process waits for a reader.
constexpr std::chrono::milliseconds kMaxFinishTime{200};

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

/// spdlog's formatting in front of a LogOutput.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
  public:
    void finish(std::chrono::milliseconds limit) {
        const std::lock_guard lock(mutex_);
        output_.finish(limit);
    }
    bool has_pending_lines() {
        const std::lock_guard lock(mutex_);
        return output_.has_pending_lines();
    }
    const LogOutput& output() const { return output_; }

  protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        output_.write({line.data(), line.size()});
    }
    void flush_() override { output_.catch_up(); }

  private:
    LogOutput output_{STDERR_FILENO};
};

/// Made by start_log and never freed: threads log until the process ends.
Sink* sink = nullptr;

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
    // Never destroyed: threads may log after main has returned.
    static const auto& made = *new auto(std::make_shared<Sink>());
    sink = made.get();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("gloved", made));
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
    spdlog::log(level, spdlog::string_view_t(without_control_bytes(line)));
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

/// Reports how many lines were lost since the last report, once the reader is back. On the loop
/// thread.
void report_lost_lines() {
    static std::uint64_t reported = 0;
    static std::uint64_t tried = 0;
    static std::uint64_t taken = 0;
    const LogOutput& output = sink->output();
    const std::uint64_t lost = output.lost();
    if (lost == reported || sink->has_pending_lines()) return;
    // After a failed report (a closed pipe, a full disk): not before something has changed.
    if (lost == tried && output.taken() == taken) return;
    const int reason = output.reason();
    const std::string why =
        reason == 0 ? "was not read in time"
                    : "could not be written (" + std::generic_category().message(reason) + ")";
    write_log_always(
        spdlog::level::warn,
        fmt::format("{} lines of the log were lost: standard error {}", lost - reported, why));
    tried = output.lost();
    taken = output.taken();
    if (tried == lost) reported = lost;
}

}  // namespace

void flush_log() {
    log_suppressed(false);
    if (sink == nullptr) return;
    sink->flush();
    report_lost_lines();
}

void end_log() {
    log_suppressed(true);
    if (sink == nullptr) return;
    sink->finish(kMaxFinishTime);
    report_lost_lines();
}

std::uint64_t lost_log_lines() { return sink == nullptr ? 0 : sink->output().lost(); }

void write_emergency_line(std::string_view text) noexcept {
    if (sink != nullptr) return sink->output().write_emergency_line(text);
    (void)!::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace gloved::daemon
