// Bulk copies to shared memory (cp.async.bulk) and the barriers that count their bytes (mbarrier),
// for compute capability 9.0 and up.
#pragma once

#include <cstdint>

namespace gloved::kernels::cuda {

#if __CUDA_ARCH__ >= 900
/// The address that instructions on shared memory take.
__device__ inline std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Initialises a barrier whose phases end after that many arrivals and all bytes of their copies.
__device__ inline void init_barrier(std::uint64_t* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/// Makes initialised barriers visible to bulk copies. Call it before __syncthreads.
__device__ inline void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void arrive(std::uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

/// Waits until the barrier's phase of that parity is over.
__device__ inline void wait(std::uint64_t* barrier, unsigned parity) {
    std::uint32_t done = 0;
    while (done == 0) {
        asm volatile(
            "{\n"
            ".reg .pred over;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
            "selp.u32 %0, 1, 0, over;\n"
            "}\n"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    }
}

/// Starts a bulk copy to shared memory; `barrier` counts its bytes.
__device__ inline void copy_bulk(void* to, const void* from, std::uint32_t bytes,
                                 std::uint64_t* barrier) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}
#endif

}  // namespace gloved::kernels::cuda
