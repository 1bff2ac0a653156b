#include "daemon/emergency_exit.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>

#include "common/process_memory.hpp"
#include "common/quoting.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

/// Writes a line of prefix, `subject` and `message`, and ends the process. For handlers: calls only
/// what signal-safety(7) lists, and allocates nothing.
[[noreturn]] void exit_with(std::string_view subject, std::string_view message) {
    // A handler that interrupts the writer would wait for it.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    // Several threads may come here at once.
    static std::atomic_flag is_told;
    while (is_told.test_and_set()) ::pause();
    static constinit std::array<char, 4 * PATH_MAX + 1024> line{};
    const auto written = fmt::format_to_n(line.data(), line.size(), "{}{}{}\n",
                                          log_prefix_of_errors(), subject, message);
    write_emergency_line({line.data(), written.out});
    ::_exit(1);
}

[[noreturn]] void exit_out_of_memory() { exit_with("gloved: ", "out of memory; exiting"); }

void on_bus_error(int number, siginfo_t* info, void* /*context*/) {
    if (info->si_code != BUS_ADRERR) {
        ::signal(number, SIG_DFL);
        ::raise(number);
        return;
    }
    // Code that reads a model holds no lock of the allocator: this handler may allocate.
    const std::string path = mapped_path(info->si_addr);
    exit_with(
        path.empty() ? "a mapped file" : without_control_bytes(path),
        ": cannot read a part of this file: it was cut short while in use, or its disk "
        "fails; exiting. Replace a model by renaming, as gloved-convert does, never in place");
}

void on_alarm(int /*number*/) { exit_with("", "engine did not stop in time; exiting"); }

}  // namespace

void install_out_of_memory_handler() {
    (void)log_prefix_of_errors();  // allocates, the first time
    std::set_new_handler(exit_out_of_memory);
}

void install_sigbus_handler() {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    (void)::sigaction(SIGBUS, &action, nullptr);
}

void exit_after(std::chrono::microseconds time) {
    (void)log_prefix_of_errors();
    struct sigaction action {};
    action.sa_handler = on_alarm;
    (void)::sigaction(SIGALRM, &action, nullptr);
    const itimerval timer{{}, {time.count() / 1'000'000, time.count() % 1'000'000}};
    (void)::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace gloved::daemon
