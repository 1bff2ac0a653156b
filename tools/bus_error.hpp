// Handles SIGBUS in tools: prints a message when a mapped file was truncated while it was read.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace gloved::tools {

namespace detail {
inline const char* bus_error_message = nullptr;

extern "C" inline void gloved_on_bus_error(int) {
    // Only async-signal-safe calls. The access cannot be retried, so the program ends.
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, bus_error_message, std::strlen(bus_error_message));
    ::_exit(1);
}
}  // namespace detail

/// Installs a handler for SIGBUS, which the kernel sends if a page of a mapped file is missing: the
/// file was truncated, or its disk fails. The handler prints `message` on stderr and ends the
/// program with status 1. `message` lives for ever and ends with LF. Call it in main.
inline void explain_bus_errors(const char* message) {
    detail::bus_error_message = message;
    struct sigaction action {};
    action.sa_handler = detail::gloved_on_bus_error;
    ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gloved::tools
