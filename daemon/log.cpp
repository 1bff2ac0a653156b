#include "daemon/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <tuple>

#include "common/quoting.hpp"
#include "daemon/log_limiter.hpp"

namespace gloved::daemon {
namespace {

constexpr std::uint64_t kLinesASecond = 10;

/// Whether standard error is a stream to journald: it says which device and inode that is (systemd.exec(5), JOURNAL_STREAM).
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
    void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& out) override {
        const std::string_view priority = priority_of(message.level);
        out.append(priority.data(), priority.data() + priority.size());
    }
    std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PriorityFlag>(); }
};

/// Where a line comes from; the name is a literal's.
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
    if (goes_to_journal()) {
        spdlog::set_default_logger(spdlog::stderr_logger_mt("gloved"));
        auto formatter = std::make_unique<spdlog::pattern_formatter>();
        formatter->add_flag<PriorityFlag>('*').set_pattern("%*%v");
        spdlog::set_formatter(std::move(formatter));
    } else {
        spdlog::set_default_logger(spdlog::stderr_color_mt("gloved"));
        spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l: %v");
    }
    spdlog::set_level(level);
}

std::string_view log_prefix_of_errors() {
    static const bool to_journal = goes_to_journal();
    return to_journal ? priority_of(spdlog::level::err) : std::string_view();
}

void write_log(spdlog::level::level_enum level, const spdlog::source_loc& where, const std::string& line) {
    if (!spdlog::should_log(level)) return;
    {
        const std::lock_guard lock(limits().mutex);
        if (!limits().limiter.admit({where.filename, where.line}, LogLimiter<Place>::Clock::now())) return;
    }
    write_log_always(level, line);
}

void write_log_always(spdlog::level::level_enum level, const std::string& line) {
    spdlog::log(level, spdlog::string_view_t(without_control_bytes(line)));
}

void tell_left_out(bool at_the_end) {
    using Clock = LogLimiter<Place>::Clock;
    const auto now = at_the_end ? Clock::time_point::max() : Clock::now();
    std::uint64_t left_out = 0;
    {
        const std::lock_guard lock(limits().mutex);
        for (const auto& [place, count] : limits().limiter.take_left_out(now)) {
            left_out += count;
        }
    }
    if (left_out > 0) {
        write_log_always(spdlog::level::warn, fmt::format("{} more lines like the last ones were left out", left_out));
    }
}

}  // namespace gloved::daemon
