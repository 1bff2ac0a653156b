// What loops for one instruction set need: target pragmas as g++ and clang spell them, vectors of
// 16 bytes that every architecture has, and which sets this processor has.
//
// Keep everything but the loops outside GLOVED_TARGET_BEGIN and GLOVED_TARGET_END: an inline
// function of a header that is first used between them is compiled for that instruction set, and
// may be linked into code for processors without it. Those of this header are always inlined.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define GLOVED_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define GLOVED_TARGET_BEGIN(features) \
    GLOVED_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define GLOVED_TARGET_END GLOVED_PRAGMA(clang attribute pop)
#else
#define GLOVED_TARGET_BEGIN(features) \
    GLOVED_PRAGMA(GCC push_options)   \
    GLOVED_PRAGMA(GCC target(features))
#define GLOVED_TARGET_END GLOVED_PRAGMA(GCC pop_options)
#endif

namespace gloved::kernels {

using FourFloats = float __attribute__((vector_size(16)));

// Compilers make shuffles of these.
[[gnu::always_inline]] inline FourFloats interleave_low(FourFloats a, FourFloats b) {
    return FourFloats{a[0], b[0], a[1], b[1]};
}
[[gnu::always_inline]] inline FourFloats interleave_high(FourFloats a, FourFloats b) {
    return FourFloats{a[2], b[2], a[3], b[3]};
}

#ifdef __x86_64__
inline bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
inline bool has_avx512_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#elif defined(__aarch64__)
inline bool has_neon() { return true; }  // every aarch64
inline bool has_neon_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
#endif
inline bool has_baseline() { return true; }

}  // namespace gloved::kernels
