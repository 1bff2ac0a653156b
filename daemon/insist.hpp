// What somebody waits for, when memory runs out.
#pragma once

#include <chrono>
#include <new>
#include <thread>

namespace gloved::daemon {

/// How long there may be no memory for what somebody waits for. A process that stays so short of it
/// is better ended, and started anew by its supervisor.
inline constexpr std::chrono::milliseconds kMaxMemoryWait{2000};
inline constexpr std::chrono::milliseconds kWantPause{10};

/// Says so on stderr, and ends the process with status 1, with nothing that needs memory. Nobody
/// waits for what threads still do.
[[noreturn]] void end_in_want() noexcept;

/// Calls `action` until it does not throw std::bad_alloc; ends the process after kMaxMemoryWait.
template <class Action>
void insist(const Action& action) noexcept {
    for (int attempt = 0; attempt < kMaxMemoryWait / kWantPause; ++attempt) {
        try {
            action();
            return;
        } catch (const std::bad_alloc&) {
            std::this_thread::sleep_for(kWantPause);
        }
    }
    end_in_want();
}

/// From now on operator new waits on the calling thread, for kMaxMemoryWait at most, where there is
/// no memory for a piece of up to 16 KiB: every coroutine, handler and place in a queue is smaller,
/// and Asio has no way back from an operation that it has no memory for (initiations in coroutines
/// must not throw, and what is undone is posted). Larger pieces, answers and what they are made of,
/// are refused at once with std::bad_alloc, as everything is on other threads; those that throw it
/// hold on to nothing, so that there is memory again for those that wait. Not in builds with
/// sanitizers, whose operator new stays.
void insist_on_small_pieces() noexcept;

}  // namespace gloved::daemon
