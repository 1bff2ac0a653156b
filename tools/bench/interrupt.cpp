#include "tools/bench/interrupt.hpp"

#include <signal.h>

#include <initializer_list>

namespace gloved::bench {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void end_on_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_asked.store(true, std::memory_order_relaxed); };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
}

bool interrupted() { return stop_asked.load(std::memory_order_relaxed); }

const std::atomic<bool>& stop_flag() { return stop_asked; }

}  // namespace gloved::bench
