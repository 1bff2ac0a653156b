// Instantiates tile_loops.inc for each instruction set (see kernels/simd.hpp).
#include "kernels/distance/tile.hpp"

#include <array>
#include <cmath>

#include "kernels/simd.hpp"

#ifdef __x86_64__

// ---- AVX-512: 16 lanes, 32 registers

GLOVED_TARGET_BEGIN("avx512f,avx2,fma")
#define GLOVED_ISA avx512
#define GLOVED_LANES 16
#define GLOVED_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define GLOVED_ROWS 8
#define GLOVED_VECTORS 3
#include "kernels/distance/tile_loops.inc"
GLOVED_TARGET_END

// ---- AVX2 with FMA: 8 lanes, 16 registers

GLOVED_TARGET_BEGIN("avx2,fma")
#define GLOVED_ISA avx2
#define GLOVED_LANES 8
#define GLOVED_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define GLOVED_ROWS 4
#define GLOVED_VECTORS 3
#include "kernels/distance/tile_loops.inc"
GLOVED_TARGET_END

#elif defined(__aarch64__)

// ---- NEON: 4 lanes, 32 registers

#define GLOVED_ISA neon
#define GLOVED_LANES 4
#define GLOVED_FMA(a, b, c) Vector(vfmaq_f32(c, a, b))
#define GLOVED_ROWS 4
#define GLOVED_VECTORS 4
#include "kernels/distance/tile_loops.inc"

#endif

// ---- Baseline: where there is no fused operation, the C library computes its result. Slow, and
// the same bytes.

namespace gloved::kernels::distance {
namespace {

FourFloats fused(FourFloats a, FourFloats b, FourFloats c) {
    FourFloats result;
    for (int l = 0; l < 4; ++l) result[l] = std::fma(a[l], b[l], c[l]);
    return result;
}

}  // namespace
}  // namespace gloved::kernels::distance

#define GLOVED_ISA baseline
#define GLOVED_LANES 4
#define GLOVED_FMA(a, b, c) fused(a, b, c)
#define GLOVED_ROWS 4
#define GLOVED_VECTORS 1
#include "kernels/distance/tile_loops.inc"

namespace gloved::kernels::distance {
namespace {

#ifdef __x86_64__
constexpr TileKernel kAvx512 = {"avx512", avx512::kColumns, avx512::kRows, has_avx512, avx512::add};
constexpr TileKernel kAvx2 = {"avx2", avx2::kColumns, avx2::kRows, has_avx2, avx2::add};
#elif defined(__aarch64__)
constexpr TileKernel kNeon = {"neon", neon::kColumns, neon::kRows, has_neon, neon::add};
#endif
constexpr TileKernel kBaseline = {"baseline", baseline::kColumns, baseline::kRows, has_baseline,
                                  baseline::add};

constexpr std::array kAll = {
#ifdef __x86_64__
    &kAvx512, &kAvx2,
#elif defined(__aarch64__)
    &kNeon,
#endif
    &kBaseline};

}  // namespace

std::span<const TileKernel* const> all_tile_kernels() { return kAll; }

}  // namespace gloved::kernels::distance
