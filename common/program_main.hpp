// What mains do first and last: descriptors, exceptions, exit status.
#pragma once

#include <exception>
#include <string_view>

namespace gloved {

/// Opens /dev/null in place of each closed descriptor of 0, 1 and 2. Otherwise the next file opened
/// would become stdin, stdout or stderr. Such a stdin ends at once. Such a stdout is read-only, so
/// that lost output is an error. Such a stderr drops messages. False if /dev/null cannot be opened.
bool open_standard_descriptors();

/// Runs a program: opens the standard descriptors, calls `run`, flushes stdout and returns the exit
/// status. The status is that of `run`. It is 1 if `run` throws, if it returns 0 but output could
/// not be written, or if a closed standard descriptor cannot be opened. Messages begin with `name`.
int program_main(const char* name, int (*run)(int, char**), int argc, char** argv);

/// Allows as many descriptors as the system lets this process have.
void raise_descriptor_limit();

/// What to tell of an exception that ends a program: its text, or the remedy for a lack of memory
/// or threads. Valid as long as `error`. Allocates nothing.
const char* explain(const std::exception& error);

/// The `name` that program_main was called with; before that «gloved».
const char* program_name();

/// Writes «NAME: message» to stderr, as one line of valid UTF-8. Works when memory is exhausted.
/// Ignores write errors.
void say_on_stderr(std::string_view name, std::string_view message);

}  // namespace gloved
