// Instantiates scan_loops.inc for each instruction set (see kernels/simd.hpp).
#include "kernels/cpu/scan.hpp"

#include <array>

#include "kernels/simd.hpp"

#ifdef __x86_64__

// ---- AVX-512: 16 lanes, 32 registers

GLOVED_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#define GLOVED_ISA avx512
#define GLOVED_LANES 16
#define GLOVED_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define GLOVED_REACHES(a, b) static_cast<unsigned>(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ))
#define GLOVED_WIDTHS \
    { 16, 32, 64 }
#define GLOVED_ROWS_1 12
#define GLOVED_ROWS_2 12
#define GLOVED_ROWS_4 6
#include "kernels/cpu/scan_loops.inc"
GLOVED_TARGET_END

// ---- AVX2 with FMA: 8 lanes, 16 registers

GLOVED_TARGET_BEGIN("avx2,fma")
#define GLOVED_ISA avx2
#define GLOVED_LANES 8
#define GLOVED_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define GLOVED_REACHES(a, b) \
    static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)))
#define GLOVED_WIDTHS \
    { 8, 16 }
#define GLOVED_ROWS_1 12
#define GLOVED_ROWS_2 6
#include "kernels/cpu/scan_loops.inc"
GLOVED_TARGET_END

#elif defined(__aarch64__)

// ---- NEON: 4 lanes, 32 registers

#define GLOVED_ISA neon
#define GLOVED_LANES 4
#define GLOVED_FMA(a, b, c) Vector(vfmaq_f32(c, a, b))
#define GLOVED_REACHES(a, b) lane_bits((a) >= (b))
#define GLOVED_WIDTHS \
    { 4, 8, 16 }
#define GLOVED_ROWS_1 12
#define GLOVED_ROWS_2 12
#define GLOVED_ROWS_4 6
#include "kernels/cpu/scan_loops.inc"

#endif

// ---- Baseline: 4 lanes, 16 registers, no fused multiply-add

#define GLOVED_ISA baseline
#define GLOVED_LANES 4
#define GLOVED_FMA(a, b, c) ((a) * (b) + (c))
#define GLOVED_REACHES(a, b) lane_bits((a) >= (b))
#define GLOVED_WIDTHS \
    { 4, 8 }
#define GLOVED_ROWS_1 8
#define GLOVED_ROWS_2 4
#include "kernels/cpu/scan_loops.inc"

namespace gloved::kernels::cpu {
namespace {

#ifdef __x86_64__
constexpr ScanKernels kAvx512 = {"avx512",           avx512::kWidths,     has_avx512,
                                 avx512::dots,       avx512::dots_packed, avx512::pick_rows,
                                 avx512::pick_packed};
constexpr ScanKernels kAvx2 = {"avx2",           avx2::kWidths,     has_avx2,
                               avx2::dots,       avx2::dots_packed, avx2::pick_rows,
                               avx2::pick_packed};
#elif defined(__aarch64__)
constexpr ScanKernels kNeon = {"neon",           neon::kWidths,     has_neon,
                               neon::dots,       neon::dots_packed, neon::pick_rows,
                               neon::pick_packed};
#endif
constexpr ScanKernels kBaseline = {"baseline",           baseline::kWidths,     has_baseline,
                                   baseline::dots,       baseline::dots_packed, baseline::pick_rows,
                                   baseline::pick_packed};

constexpr std::array kAll = {
#ifdef __x86_64__
    &kAvx512, &kAvx2,
#elif defined(__aarch64__)
    &kNeon,
#endif
    &kBaseline};

}  // namespace

std::span<const ScanKernels* const> all_scan_kernels() { return kAll; }

}  // namespace gloved::kernels::cpu
