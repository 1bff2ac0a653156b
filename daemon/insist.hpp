// What somebody waits for, when memory runs out.
#pragma once

#include <chrono>
#include <exception>
#include <new>
#include <thread>

namespace gloved::daemon {

/// Calls `action` until it does not throw std::bad_alloc, for about two seconds. A process that stays so short of memory is better
/// ended, and started anew by its supervisor.
template <class Action>
void insist(const Action& action) noexcept {
    constexpr int kAttempts = 200;
    constexpr std::chrono::milliseconds kPause{10};
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        try {
            action();
            return;
        } catch (const std::bad_alloc&) {
            std::this_thread::sleep_for(kPause);
        }
    }
    std::terminate();
}

}  // namespace gloved::daemon
