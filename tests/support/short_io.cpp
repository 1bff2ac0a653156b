// LD_PRELOAD this, and read, pread, write and pwrite do less than they are asked to, as the system
// may: between 1 byte and all. GLOVED_SHORT_IO=SEED cuts at random places, GLOVED_SHORT_IO=few:SEED
// leaves at most 7 bytes. Without it nothing is cut. GLOVED_CLOSE_ERROR=NUMBER has every close
// report that error after closing, as the system does it: the descriptor is gone either way.
// (strace would have it that the call is not made at all.)
//
// Only what a program calls by these names comes by here: stdio, for one, has ways of its own into
// the kernel.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kFew = 7;

struct Cut {
    bool on = false;
    bool few = false;
    std::uint64_t seed = 0;
};

const Cut& cut() {
    static const Cut wanted = [] {
        Cut parsed;
        const char* text = std::getenv("GLOVED_SHORT_IO");
        if (text == nullptr) return parsed;
        parsed.on = true;
        parsed.few = std::strncmp(text, "few:", 4) == 0;
        parsed.seed = std::strtoull(parsed.few ? text + 4 : text, nullptr, 10);
        return parsed;
    }();
    return wanted;
}

std::size_t shortened(std::size_t count) {
    static std::atomic<std::uint64_t> calls{0};
    if (!cut().on || count <= 1) return count;
    // SplitMix64's mix of the seed and the number of the call.
    std::uint64_t z =
        cut().seed + (calls.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    const std::size_t most = cut().few && count > kFew ? kFew : count;
    return 1 + static_cast<std::size_t>(z % most);
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* bytes, size_t count) {
    static const auto real = next<ssize_t (*)(int, void*, size_t)>("read");
    return real(fd, bytes, shortened(count));
}

ssize_t write(int fd, const void* bytes, size_t count) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
    return real(fd, bytes, shortened(count));
}

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
    static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
    return real(fd, bytes, shortened(count), offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
    return real(fd, bytes, shortened(count), offset);
}

int close(int fd) {
    static const auto real = next<int (*)(int)>("close");
    static const char* const wanted = std::getenv("GLOVED_CLOSE_ERROR");
    const int result = real(fd);
    if (result != 0 || wanted == nullptr) return result;
    errno = std::atoi(wanted);
    return -1;
}

ssize_t pread64(int fd, void* bytes, size_t count, off64_t offset) {
    static const auto real = next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
    return real(fd, bytes, shortened(count), offset);
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) {
    static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
    return real(fd, bytes, shortened(count), offset);
}
}
