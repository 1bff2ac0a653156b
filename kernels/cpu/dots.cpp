// Instantiates dots.inc for each instruction set (see kernels/simd.hpp).
#include "kernels/cpu/dots.hpp"

#include <array>
#include <cassert>

#include "kernels/canonical.hpp"
#include "kernels/simd.hpp"

namespace gloved::kernels::cpu {
namespace {

constexpr std::size_t kLanes = kCanonicalLanes;
using Two = double __attribute__((vector_size(16)));
/// Prefetch distance. Hardware prefetching stops at each page.
constexpr std::size_t kPrefetchFloats = 1024;
/// The same in rows that are far apart. More than some 10 KB would not stay in the L1 cache.
constexpr std::size_t kPrefetchRows = 8;

}  // namespace
}  // namespace gloved::kernels::cpu

#ifdef __x86_64__

// ---- AVX-512: eight lanes a vector, 32 registers

GLOVED_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
namespace gloved::kernels::cpu::avx512 {
namespace {

using Part = __m512d;

/// g++ 12 warns about its own header where these operations have no mask.
constexpr __mmask8 kAll = 0xFF;

inline void widen(const float* from, Part (&to)[1]) {
    to[0] = _mm512_maskz_cvtps_pd(kAll, _mm256_loadu_ps(from));
}

/// As widen, for the last `count` components of a row: 0 beyond them.
inline void widen_tail(const float* from, std::size_t count, Part (&to)[1]) {
    const auto mask = static_cast<__mmask8>((1U << count) - 1);
    to[0] = _mm512_maskz_cvtps_pd(kAll, _mm256_maskz_loadu_ps(mask, from));
}

/// Adds lanes l and l + 4, and of these sums l and l + 2.
inline Two fold(const Part (&lanes)[1]) {
    const __m256d four = _mm512_maskz_extractf64x4_pd(kAll, lanes[0], 0) +
                         _mm512_maskz_extractf64x4_pd(kAll, lanes[0], 1);
    return _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
}

}  // namespace
}  // namespace gloved::kernels::cpu::avx512
#define GLOVED_ISA avx512
#define GLOVED_PARTS 1
#define GLOVED_WIDTH 8
#define GLOVED_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "kernels/cpu/dots.inc"
GLOVED_TARGET_END

// ---- AVX2 with FMA: four lanes, 16 registers

GLOVED_TARGET_BEGIN("avx2,fma")
namespace gloved::kernels::cpu::avx2 {
namespace {

using Part = __m256d;

inline void widen(const float* from, Part (&to)[2]) {
    to[0] = _mm256_cvtps_pd(_mm_loadu_ps(from));
    to[1] = _mm256_cvtps_pd(_mm_loadu_ps(from + 4));
}

inline void widen_tail(const float* from, std::size_t count, Part (&to)[2]) {
    static constexpr std::int32_t kMasks[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const __m256i mask =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + kLanes - count));
    const __m256 tail = _mm256_maskload_ps(from, mask);
    to[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(tail));
    to[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(tail, 1));
}

inline Two fold(const Part (&lanes)[2]) {
    const __m256d four = lanes[0] + lanes[1];
    return _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
}

}  // namespace
}  // namespace gloved::kernels::cpu::avx2
#define GLOVED_ISA avx2
#define GLOVED_PARTS 2
#define GLOVED_WIDTH 4
#define GLOVED_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "kernels/cpu/dots.inc"
GLOVED_TARGET_END

#endif  // __x86_64__

// ---- Two lanes, as every architecture has them

namespace gloved::kernels::cpu {
namespace {

using Part = Two;

inline void widen(const float* from, Part (&to)[4]) {
    using Pair = float __attribute__((vector_size(8)));
#pragma GCC unroll 4
    for (std::size_t p = 0; p < 4; ++p) {
        Pair pair;
        __builtin_memcpy(&pair, from + 2 * p, sizeof pair);
        to[p] = __builtin_convertvector(pair, Part);
    }
}

inline void widen_tail(const float* from, std::size_t count, Part (&to)[4]) {
    float tail[kLanes] = {};
    for (std::size_t l = 0; l < count; ++l) tail[l] = from[l];
    widen(tail, to);
}

inline Two fold(const Part (&lanes)[4]) { return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]); }

}  // namespace
}  // namespace gloved::kernels::cpu

// NEON: 32 registers
#ifdef __aarch64__
#define GLOVED_ISA neon
#define GLOVED_PARTS 4
#define GLOVED_WIDTH 4
#define GLOVED_FMA(a, b, c) Part(vfmaq_f64(c, a, b))
#include "kernels/cpu/dots.inc"
#endif

// Baseline: 16 registers, no fused multiply-add
#define GLOVED_ISA baseline
#define GLOVED_PARTS 4
#define GLOVED_WIDTH 2
#define GLOVED_FMA(a, b, c) ((a) * (b) + (c))
#include "kernels/cpu/dots.inc"

namespace gloved::kernels::cpu {
namespace {

#ifdef __x86_64__
constexpr DotKernel kAvx512 = {
    "avx512",       has_avx512, avx512::kWidth, avx512::dots_of_block, avx512::dots_of_rows,
    avx512::cosines};
constexpr DotKernel kAvx2 = {
    "avx2", has_avx2, avx2::kWidth, avx2::dots_of_block, avx2::dots_of_rows, avx2::cosines};
#elif defined(__aarch64__)
constexpr DotKernel kNeon = {
    "neon", has_neon, neon::kWidth, neon::dots_of_block, neon::dots_of_rows, neon::cosines};
#endif
constexpr DotKernel kBaseline = {"baseline",
                                 has_baseline,
                                 baseline::kWidth,
                                 baseline::dots_of_block,
                                 baseline::dots_of_rows,
                                 baseline::cosines};

constexpr std::array kKernels = {
#ifdef __x86_64__
    &kAvx512, &kAvx2,
#elif defined(__aarch64__)
    &kNeon,
#endif
    &kBaseline};

}  // namespace

QueryGroup::QueryGroup(std::span<const QueryVector* const> vectors) : count(vectors.size()) {
    assert(!vectors.empty());
    const std::size_t dim = vectors[0]->values.size();
    steps.resize((dim + kLanes - 1) / kLanes * count);
    for (std::size_t q = 0; q < count; ++q) {
        for (std::size_t i = 0; i < dim; ++i) {
            steps[i / kLanes * count + q].components[i % kLanes] =
                static_cast<double>(vectors[q]->values[i]);
        }
    }
}

std::span<const DotKernel* const> all_dot_kernels() { return kKernels; }

}  // namespace gloved::kernels::cpu
