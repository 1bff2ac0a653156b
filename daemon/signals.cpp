#include "daemon/signals.hpp"

#include <signal.h>

#include <initializer_list>

namespace gloved::daemon {
namespace {

void change_mask(int how) noexcept {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
    ::pthread_sigmask(how, &signals, nullptr);
}

}  // namespace

void block_signals() noexcept { change_mask(SIG_BLOCK); }

void unblock_signals() noexcept { change_mask(SIG_UNBLOCK); }

}  // namespace gloved::daemon
