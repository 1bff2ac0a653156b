// The daemon's log: a line an event, on standard error, for people and for journald.
#pragma once

#include <fmt/format.h>
#include <spdlog/common.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gloved::daemon {

/// Says where the log goes and from which level on. Under journald (JOURNAL_STREAM names standard
/// error) lines begin with their priority, «<4>», and have no time of their own. Before any other
/// thread logs.
void start_log(spdlog::level::level_enum level);

/// «<3>» where the log goes to journald, else nothing: for lines that are not written through the
/// log.
std::string_view log_prefix_of_errors();

/// Writes a line, its control bytes and what is no UTF-8 as \xHH, without waiting for who reads it
/// (log_output.hpp). A place in the code writes at most ten a second; how many more there were is
/// told once by `tend_log`. Any thread.
void write_log(spdlog::level::level_enum level, const spdlog::source_loc& where,
               const std::string& line);

/// For lines that were asked for one by one: as above, and never left out.
void write_log_always(spdlog::level::level_enum level, const std::string& line);

/// To be called now and then: writes what the reader had no room for, and tells how many lines were
/// left out or lost.
void tend_log();

/// The same at the end of the process. Waits for the reader, for 0.2 s at most.
void end_log();

/// How many lines were lost because nobody read them in time, or they could not be written. Any
/// thread.
std::uint64_t lost_log_lines();

/// Writes a line that ends with LF, in a signal handler or when memory has run out. Waits for 0.1 s
/// at most.
void write_last_words(std::string_view text) noexcept;

/// A format with the place that it stands at. (By builtins: clang 14 has no std::source_location.)
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
