// What a tool says when a file that it has mapped goes away under it.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace gloved::tools {

namespace detail {
inline const char* bus_error_message = nullptr;

extern "C" inline void gloved_on_bus_error(int) {
    // Nothing but what is safe in a signal handler. The access cannot be gone on with, so neither
    // can the program.
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, bus_error_message, std::strlen(bus_error_message));
    ::_exit(1);
}
}  // namespace detail

/// From now on SIGBUS (a mapped file was truncated, or its disk fails) prints `message`, which ends
/// in a newline and lives for ever, and ends the program with status 1. For programs, not for
/// libraries.
inline void explain_bus_errors(const char* message) {
    detail::bus_error_message = message;
    struct sigaction action {};
    action.sa_handler = detail::gloved_on_bus_error;
    ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gloved::tools
