// The daemon's log: one line per event on standard error.
#pragma once

#include <fmt/format.h>
#include <spdlog/common.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gloved::daemon {

/// Starts the log and the thread that writes it; lines below `level` are dropped. If standard error
/// goes to journald (JOURNAL_STREAM names it), lines begin with their priority, e.g. «<4>», and
/// have no time. Call it before other threads log.
void start_log(spdlog::level::level_enum level);

/// What error lines that do not pass through the log must begin with: «<3>» under journald, else
/// nothing.
std::string_view log_prefix_of_errors();

/// Writes a line without waiting for whoever reads the log; control bytes and invalid UTF-8 become
/// \xHH. Each place in the code, `where`, may write ten lines per second; `flush_log` reports how
/// many more were suppressed. Any thread.
void write_log(spdlog::level::level_enum level, const spdlog::source_loc& where,
               const std::string& line);

/// As write_log, without a limit on lines per second.
void write_log_always(spdlog::level::level_enum level, const std::string& line);

/// Reports suppressed lines, and lost ones once the reader is back. Call it a few times a second.
void flush_log();

/// As flush_log, at the end of the process: waits up to 0.2 s for the reader to take all lines.
void end_log();

/// Number of lines that were lost: not read in time, or not written because of an error. Any
/// thread.
std::uint64_t lost_log_lines();

/// Writes `text`, a line that ends with LF, ahead of the lines that wait. Waits up to 0.1 s for
/// room. Allocates nothing: for signal handlers and when memory has run out.
void write_emergency_line(std::string_view text) noexcept;

/// A format string with its place in the code, which the compiler fills in. (By builtins: clang 14
/// lacks std::source_location.)
template <class... Args>
struct LocatedFormat {
    template <class Text>
    consteval LocatedFormat(const Text& text, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE())
        : format(text), where(file, line, "") {}
    fmt::format_string<Args...> format;
    spdlog::source_loc where;
};

/// Formats a line as fmt::format does, and writes it with write_log. log_info, log_warning,
/// log_error and log_critical do the same at their levels.
template <class... Args>
void log(spdlog::level::level_enum level,
         const LocatedFormat<std::type_identity_t<Args>...>& format, Args&&... args) {
    write_log(level, format.where, fmt::format(format.format, std::forward<Args>(args)...));
}

template <class... Args>
void log_info(const LocatedFormat<std::type_identity_t<Args>...>& format, Args&&... args) {
    log<Args...>(spdlog::level::info, format, std::forward<Args>(args)...);
}

template <class... Args>
void log_warning(const LocatedFormat<std::type_identity_t<Args>...>& format, Args&&... args) {
    log<Args...>(spdlog::level::warn, format, std::forward<Args>(args)...);
}

template <class... Args>
void log_error(const LocatedFormat<std::type_identity_t<Args>...>& format, Args&&... args) {
    log<Args...>(spdlog::level::err, format, std::forward<Args>(args)...);
}

template <class... Args>
void log_critical(const LocatedFormat<std::type_identity_t<Args>...>& format, Args&&... args) {
    log<Args...>(spdlog::level::critical, format, std::forward<Args>(args)...);
}

}  // namespace gloved::daemon
