#include "common/program_main.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "common/terminal.hpp"

namespace gloved {
namespace {

constexpr int kFailed = 1;

const char* name_of_program = "gloved";

/// Whether all output has left the program. std::cout has no buffer of its own.
bool stdout_is_written() {
    const bool flushed = std::fflush(stdout) == 0;
    return flushed && std::ferror(stdout) == 0 && std::cout.good();
}

}  // namespace

bool open_standard_descriptors() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        // open() returns the lowest free number, and all below are taken: it is `fd`.
        if (::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

const char* program_name() { return name_of_program; }

void say_on_stderr(std::string_view name, std::string_view message) {
    try {
        std::fputs(message_line(name, message).c_str(), stderr);
    } catch (const std::bad_alloc&) {
        // Out of memory: prints without message_line, which allocates.
        for (const std::string_view piece : {name, std::string_view(": "), message}) {
            for (const char c : piece)
                std::fputc(std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?', stderr);
        }
        std::fputc('\n', stderr);
    }
}

const char* explain(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return "out of memory: free some, or raise this program's limit (ulimit -v)";
    const auto* const failed = dynamic_cast<const std::system_error*>(&error);
    // What the standard library throws where the system starts no thread.
    if (failed != nullptr && failed->code() == std::errc::resource_unavailable_try_again)
        return "no thread can be started: out of memory (free some, ulimit -v), or too many "
               "processes and threads (ulimit -u; of a service, TasksMax=)";
    return error.what();
}

void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

int program_main(const char* name, int (*run)(int, char**), int argc, char** argv) {
    name_of_program = name;
    if (!open_standard_descriptors()) {
        say_on_stderr(name, "a standard descriptor is closed, and /dev/null cannot be opened");
        return kFailed;
    }
    int status = kFailed;
    try {
        status = run(argc, argv);
    } catch (const std::exception& error) {
        // Out of memory or threads, or output that cannot be written. All destructors have run.
        say_on_stderr(name, explain(error));
    }
    errno = 0;
    if (stdout_is_written()) return status;
    std::array<char, 256> message{};
    std::snprintf(message.data(), message.size(), "cannot write to stdout%s%s",
                  errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno));
    say_on_stderr(name, message.data());
    return status == 0 ? kFailed : status;
}

}  // namespace gloved
