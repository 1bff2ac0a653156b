// What main of every program does before and after the program's own work.
#pragma once

#include <string_view>

namespace gloved {

/// Whether the standard descriptors are open now; a closed one becomes /dev/null. Whatever a
/// program opened first would otherwise take the place of a descriptor that its caller has closed,
/// and be read or written as if it were that. Reading stdin then finds the end, writing to stdout
/// fails, and what goes to stderr is dropped. False where /dev/null cannot be opened.
bool open_standard_descriptors();

/// The whole of main: opens the standard descriptors, calls `run`, writes out what stdout still
/// holds, and returns the exit status. It is that of `run`, or 1 where `run` throws, where it
/// returns 0 and its output could not be written, or where a standard descriptor is closed and
/// cannot be opened. `name` begins the messages about these.
int program_main(const char* name, int (*run)(int, char**), int argc, char** argv);

/// «NAME: message» on stderr, the message as one line of valid UTF-8. Needs no memory where there
/// is none. Nothing is wrong with a program that nobody listens to: that writing fails is passed
/// over.
void say_on_stderr(std::string_view name, std::string_view message);

}  // namespace gloved
