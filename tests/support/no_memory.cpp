// LD_PRELOAD this, and from a call on there is no memory: malloc, calloc, realloc, the aligned
// kinds (and so operator new), mmap and pthread_create fail as they do when the system has none
// left. (What the C library does by itself, a thread's stack or stdio's own files, does not come by
// here.)
//
// GLOVED_NO_MEMORY=PATH names a file of five 64-bit words in the machine's byte order, which are
// read and written while the program runs, so that whoever holds the file mapped can begin and end
// a shortage at any moment, and knows how far the program came:
//
//   0  1: calls are counted, and fail where the next two say; 0: nothing is counted, nothing fails
//   1  the first call that fails, from 1
//   2  how many fail from there on; 0: all
//   3  calls counted since somebody set this to 0
//   4  how many of them failed
//
// The count begins with main: what is made before it, by static objects of libraries and of CUDA's
// runtime, is not ours to mend.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {
// The C library's own, by names that nothing takes the place of; what dlsym finds them by may
// itself ask for memory.
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

struct Control {
    std::atomic<std::uint64_t> armed;
    std::atomic<std::uint64_t> first;
    std::atomic<std::uint64_t> many;
    std::atomic<std::uint64_t> counted;
    std::atomic<std::uint64_t> failed;
};
static_assert(sizeof(Control) == 5 * sizeof(std::uint64_t) &&
              std::atomic<std::uint64_t>::is_always_lock_free);

Control* control = nullptr;

void* map(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) {
    return reinterpret_cast<void*>(
        ::syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

void open_control() {
    const char* const path = std::getenv("GLOVED_NO_MEMORY");
    if (path == nullptr) return;
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) std::abort();  // a test that breaks nothing would pass
    void* const mapped = map(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) std::abort();
    ::close(fd);
    control = static_cast<Control*>(mapped);
}

bool fails() {
    if (control == nullptr || control->armed.load() == 0) return false;
    const std::uint64_t call = control->counted.fetch_add(1) + 1;
    const std::uint64_t first = control->first.load();
    const std::uint64_t many = control->many.load();
    if (call < first || (many != 0 && call - first >= many)) return false;
    control->failed.fetch_add(1);
    return true;
}

void* none() {
    errno = ENOMEM;
    return nullptr;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept { return fails() ? none() : __libc_malloc(size); }

void* calloc(std::size_t count, std::size_t size) noexcept {
    return fails() ? none() : __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) noexcept {
    // To size 0 it frees.
    return size != 0 && fails() ? none() : __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return fails() ? none() : __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    return fails() ? none() : __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
    if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
        return EINVAL;
    void* const made = fails() ? nullptr : __libc_memalign(alignment, size);
    if (made == nullptr) return ENOMEM;
    *memory = made;
    return 0;
}

void* mmap(void* address, std::size_t size, int protection, int flags, int fd,
           off_t offset) noexcept {
    if (!fails()) return map(address, size, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

void* mmap64(void* address, std::size_t size, int protection, int flags, int fd,
             off64_t offset) noexcept {
    return mmap(address, size, protection, flags, fd, offset);
}

/// Takes the place of the C library's, to come between it and main.
int __libc_start_main(int (*main)(int, char**, char**), int count, char** arguments, void (*init)(),
                      void (*fini)(), void (*loader_fini)(), void* stack_end) {
    using Main = int (*)(int, char**, char**);
    using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
    static Main real_main = main;
    const Main counted_main = [](int given, char** words, char** environment) {
        open_control();
        return real_main(given, words, environment);
    };
    const auto real = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
    return real(counted_main, count, arguments, init, fini, loader_fini, stack_end);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    return fails() ? EAGAIN : real(thread, attributes, routine, argument);
}
}
