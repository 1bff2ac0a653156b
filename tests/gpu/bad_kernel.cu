// What gloved-bad-kernel has beside gloved: a real device fault, which a driver reports as long as
// the process lives. A test starts it under a supervisor and sees whether it ends in time and is
// answered for by the next one.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace gloved::kernels::cuda {
namespace {

__global__ void write_astray(int* where) { *where = 1; }

/// GLOVED_BAD_KERNEL_AFTER=N; 0 or none: never.
std::uint64_t read_after() {
    const char* const text = std::getenv("GLOVED_BAD_KERNEL_AFTER");
    const std::uint64_t after = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
    std::fprintf(stderr,
                 "bad kernel: THIS IS NOT gloved BUT A TEST: it breaks its GPU's context after "
                 "%llu queries\n",
                 static_cast<unsigned long long>(after));
    return after;
}

}  // namespace

/// Declared by cuda_engine.cpp. Counts the queries of the process; once N have been answered,
/// enqueues a kernel that writes where nothing is, so that what is waited for next fails with
/// cudaErrorIllegalAddress.
cudaError_t launch_bad_kernel_when_due(std::size_t queries, cudaStream_t stream) {
    static const std::uint64_t after = read_after();
    static std::atomic<std::uint64_t> answered = 0;
    if (answered.fetch_add(queries) < after || after == 0) return cudaSuccess;
    std::fprintf(stderr, "bad kernel: launched\n");
    write_astray<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(sizeof(int)));
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
