// Instantiates encode_loops.inc for each instruction set (see kernels/simd.hpp). Fused operations
// are not used: they round differently.
#include "kernels/planes/encode.hpp"

#include <array>

#include "kernels/simd.hpp"

#ifdef __x86_64__

// ---- AVX-512: 16 lanes, 32 registers

GLOVED_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2")
#define GLOVED_ISA avx512
#define GLOVED_LANES 16
#define GLOVED_CLIPS 4
#include "kernels/planes/encode_loops.inc"
GLOVED_TARGET_END

// ---- AVX2: 8 lanes, 16 registers

GLOVED_TARGET_BEGIN("avx2")
#define GLOVED_ISA avx2
#define GLOVED_LANES 8
#define GLOVED_CLIPS 2
#include "kernels/planes/encode_loops.inc"
GLOVED_TARGET_END

#endif

// ---- Baseline: 4 lanes, 16 registers, or 32 of NEON

#define GLOVED_ISA baseline
#define GLOVED_LANES 4
#ifdef __aarch64__
#define GLOVED_CLIPS 2
#else
#define GLOVED_CLIPS 1
#endif
#include "kernels/planes/encode_loops.inc"

namespace gloved::kernels::planes {
namespace {

#ifdef __x86_64__
constexpr EncodeKernel kAvx512 = {"avx512", has_avx512, avx512::encode};
constexpr EncodeKernel kAvx2 = {"avx2", has_avx2, avx2::encode};
#endif
constexpr EncodeKernel kBaseline = {"baseline", has_baseline, baseline::encode};

constexpr std::array kAll = {
#ifdef __x86_64__
    &kAvx512, &kAvx2,
#endif
    &kBaseline};

}  // namespace

std::span<const EncodeKernel* const> all_encode_kernels() { return kAll; }

const EncodeKernel& best_encode_kernel() {
    static const EncodeKernel* const best = [] {
        const EncodeKernel* found = nullptr;
        for (const EncodeKernel* kernel : kAll) {
            if (found == nullptr && kernel->supported()) found = kernel;
        }
        return found;
    }();
    return *best;
}

}  // namespace gloved::kernels::planes
