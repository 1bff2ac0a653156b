#include "cli/signals.hpp"

#include <signal.h>

#include <initializer_list>

namespace gloved::cli {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

}  // namespace

const std::atomic<bool>& stop_on_signals(SecondSignal second) {
    struct sigaction action {};
    action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
    if (second == SecondSignal::ends_at_once) action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
    return stop;
}

const std::atomic<bool>& stop_flag() { return stop; }

bool stop_requested() { return stop.load(std::memory_order_relaxed); }

void let_writes_fail() {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace gloved::cli
