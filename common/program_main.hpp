// The frame of every program's main: standard descriptors, exceptions, exit status.
#pragma once

#include <string_view>

namespace gloved {

/// Opens closed standard descriptors on /dev/null. Otherwise the next file opened would take such a
/// descriptor and be read or written in its place. Reading stdin then finds the end, writing to
/// stdout fails, and stderr is dropped. False if /dev/null cannot be opened.
bool open_standard_descriptors();

/// Runs a program: opens the standard descriptors, calls `run`, flushes stdout and returns the exit
/// status. The status is that of `run`. It is 1 if `run` throws, if it returns 0 but output could
/// not be written, or if a closed standard descriptor cannot be opened. `name` begins the messages.
int program_main(const char* name, int (*run)(int, char**), int argc, char** argv);

/// Writes «NAME: message» to stderr, as one line of valid UTF-8. Works when memory is exhausted.
/// Ignores write errors.
void say_on_stderr(std::string_view name, std::string_view message);

}  // namespace gloved
