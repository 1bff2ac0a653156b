// Instantiates encode_loops.inc for each instruction set (see kernels/simd.hpp). Fused operations
// are not used: they round differently.
#include "kernels/planes/encode.hpp"

#include <immintrin.h>

#include <array>

#include "kernels/simd.hpp"

// ---- AVX-512: 16 lanes, 32 registers

GLOVED_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2")
#define GLOVED_ISA avx512
#define GLOVED_LANES 16
// g++ 12 warns about its own header where operations have no mask.
#define GLOVED_MAX(a, b) Vector(_mm512_maskz_max_ps(0xFFFF, a, b))
#define GLOVED_MIN(a, b) Vector(_mm512_maskz_min_ps(0xFFFF, a, b))
#define GLOVED_CLIPS 4
#include "kernels/planes/encode_loops.inc"
GLOVED_TARGET_END

// ---- AVX2: 8 lanes, 16 registers

GLOVED_TARGET_BEGIN("avx2")
#define GLOVED_ISA avx2
#define GLOVED_LANES 8
#define GLOVED_MAX(a, b) Vector(_mm256_max_ps(a, b))
#define GLOVED_MIN(a, b) Vector(_mm256_min_ps(a, b))
#define GLOVED_CLIPS 2
#include "kernels/planes/encode_loops.inc"
GLOVED_TARGET_END

// ---- Baseline x86-64: SSE2, 4 lanes, 16 registers

#define GLOVED_ISA baseline
#define GLOVED_LANES 4
#define GLOVED_MAX(a, b) Vector(_mm_max_ps(a, b))
#define GLOVED_MIN(a, b) Vector(_mm_min_ps(a, b))
#define GLOVED_CLIPS 1
#include "kernels/planes/encode_loops.inc"

namespace gloved::kernels::planes {
namespace {

bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
bool has_baseline() { return true; }

constexpr EncodeKernel kAvx512 = {"avx512", has_avx512, avx512::encode};
constexpr EncodeKernel kAvx2 = {"avx2", has_avx2, avx2::encode};
constexpr EncodeKernel kBaseline = {"baseline", has_baseline, baseline::encode};

constexpr std::array<const EncodeKernel*, 3> kAll = {&kAvx512, &kAvx2, &kBaseline};

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
