#include "daemon/insist.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

constexpr std::size_t kSmallPiece = 16384;
thread_local bool insists = false;

}  // namespace

void end_in_want() noexcept {
    constexpr std::string_view kWords = "gloved: out of memory for two seconds, stopping\n";
    write_last_words(kWords);
    ::_exit(1);
}

void insist_on_small_pieces() noexcept { insists = true; }

}  // namespace gloved::daemon

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

/// Out of the way of the usual case.
[[gnu::noinline]] void* insist_on(std::size_t size) {
    using namespace gloved::daemon;
    if (!insists || size > kSmallPiece) throw std::bad_alloc();
    const auto deadline = std::chrono::steady_clock::now() + kMaxMemoryWait;
    // Short waits first: most shortages are over when another thread has given up.
    for (std::chrono::microseconds pause{50}; std::chrono::steady_clock::now() < deadline;) {
        std::this_thread::sleep_for(pause);
        if (void* const memory = std::malloc(size); memory != nullptr) return memory;
        if (pause < kWantPause) pause *= 2;
    }
    end_in_want();
}

}  // namespace

// The other forms without alignment come down to these two.
void* operator new(std::size_t size) {
    if (size == 0) size = 1;
    void* const memory = std::malloc(size);
    return memory != nullptr ? memory : insist_on(size);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
