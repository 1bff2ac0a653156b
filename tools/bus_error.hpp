// A SIGBUS handler for tools: prints a message when a mapped file is truncated.
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

/// Installs a handler of SIGBUS (a mapped file was truncated, or its disk fails) that prints
/// `message` and ends the program with status 1. `message` is static and ends in a newline. For
/// programs, not for libraries.
inline void explain_bus_errors(const char* message) {
    detail::bus_error_message = message;
    struct sigaction action {};
    action.sa_handler = detail::gloved_on_bus_error;
    ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gloved::tools
