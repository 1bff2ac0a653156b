// What gloved-bad-kernel has beside gloved: a real device fault, which a driver reports as long as
// the process lives. The linker sends every call of cudaStreamSynchronize here (--wrap).
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

__global__ void write_astray(int* where) { *where = 1; }

/// GLOVED_BAD_KERNEL_AFTER=N; 0 or none: never.
std::uint64_t read_after() {
    const char* const text = std::getenv("GLOVED_BAD_KERNEL_AFTER");
    const std::uint64_t after = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
    std::fprintf(stderr,
                 "bad kernel: THIS IS NOT gloved BUT A TEST: it breaks its GPU's context after "
                 "%llu waits for a stream\n",
                 static_cast<unsigned long long>(after));
    return after;
}

}  // namespace

/// The runtime's function.
extern "C" cudaError_t __real_cudaStreamSynchronize(cudaStream_t stream);

/// Waits for the stream. From the N-th wait of the process on, enqueues a kernel there first that
/// writes where nothing is: the wait fails with cudaErrorIllegalAddress.
extern "C" cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
    static const std::uint64_t after = read_after();
    static std::atomic<std::uint64_t> waits = 0;
    if (++waits >= after && after != 0) {
        std::fprintf(stderr, "bad kernel: launched\n");
        write_astray<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(sizeof(int)));
        if (const cudaError_t failed = cudaGetLastError(); failed != cudaSuccess) return failed;
    }
    return __real_cudaStreamSynchronize(stream);
}
