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

/// Starts the log, with lines from `level` on. Under journald (JOURNAL_STREAM names standard error)
/// lines begin with their priority, «<4>», and have no time. Call it before other threads log.
void start_log(spdlog::level::level_enum level);

/// The prefix of error lines that do not pass through the log: «<3>» under journald, else empty.
std::string_view log_prefix_of_errors();

/// Writes a line without waiting for the reader; control bytes and invalid UTF-8 become \xHH. Each
/// place in the code writes ten lines a second at most; `flush_log` reports how many were
/// suppressed. Any thread.
void write_log(spdlog::level::level_enum level, const spdlog::source_loc& where,
               const std::string& line);

/// The same without that limit.
void write_log_always(spdlog::level::level_enum level, const std::string& line);

/// Writes pending lines, and reports suppressed and lost ones. Call it a few times a second.
void flush_log();

/// The same at the end of the process; waits for the reader, 0.2 s at most.
void end_log();

/// Lines that were lost: not read in time, or not written because of an error. Any thread.
std::uint64_t lost_log_lines();

/// Writes a line that ends with LF, in a signal handler or when memory has run out. Waits for 0.1 s
/// at most.
void write_emergency_line(std::string_view text) noexcept;

/// A format with its place in the code. (By builtins: clang 14 lacks std::source_location.)
template <class... Args>
struct LocatedFormat {
    template <class Text>
    consteval LocatedFormat(const Text& text, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE())
        : format(text), where(file, line, "") {}
    fmt::format_string<Args...> format;
    spdlog::source_loc where;
};

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
