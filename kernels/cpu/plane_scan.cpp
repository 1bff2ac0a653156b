// Plane loops for each instruction set (see kernels/simd.hpp).
#include "kernels/cpu/plane_scan.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "common/format/planes.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/fine_plane.hpp"
#include "kernels/simd.hpp"

namespace gloved::kernels::cpu {
namespace {

using planes::kFineStepDims;
using planes::kGroupRows;
using planes::kStepBytes;
using planes::kStepDims;

constexpr char kCodeMask = 0x0F;
constexpr int kHighShift = 7;  // Q = 128 high + low
constexpr std::size_t kWordsOfStep = kStepDims / 4;

/// Prefetch distance. Hardware prefetching stops at each page.
constexpr std::size_t kAheadBytes = 8192;

/// Lists the rows that are in the bit mask `passing`. `sums` are theirs, from its lowest bit on, as
/// are the projections from `bounds` on; the residuals follow 16 projections later. Called rarely,
/// hence not inlined.
__attribute__((noinline)) std::size_t list_rows(const std::byte* bounds, const std::int32_t* sums,
                                                unsigned passing, std::uint32_t first_row,
                                                std::uint32_t query, PassedRow* passed) {
    std::size_t count = 0;
    for (; passing != 0; passing &= passing - 1) {
        const auto row = static_cast<std::uint32_t>(__builtin_ctz(passing));
        PassedRow& one = passed[count++];
        one.row = first_row + row;
        one.query = query;
        one.sum = sums[row];
        __builtin_memcpy(&one.projection, bounds + std::size_t{2} * row, sizeof one.projection);
        __builtin_memcpy(&one.residual, bounds + 2 * (kGroupRows + row), sizeof one.residual);
    }
    return count;
}

}  // namespace

#ifdef __x86_64__

// ---- AVX-512 with VNNI: one row per SIMD lane, four byte products per instruction; no sum crosses
// rows

GLOVED_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace avx512_vnni {
namespace {

constexpr std::size_t kWidth = 8;
constexpr std::size_t kFineWidth = 16;

/// g++ 12 warns about its own header where these operations have no mask.
constexpr __mmask16 kAll16 = 0xFFFF;

/// Sixteen uint16 as floats.
inline __m512 load(const std::byte* from) {
    return _mm512_maskz_cvtepi32_ps(
        kAll16, _mm512_maskz_cvtepu16_epi32(
                    kAll16, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}

/// Adds the products of the codes of sixteen rows and the four digits at `digits`. In assembly,
/// because g++ 12 would copy each sum twice and broadcast the digits by an instruction of their
/// own.
inline void add_products(__m512i& sums, __m512i codes, const std::int8_t* digits) {
    using Word = const std::int32_t __attribute__((may_alias, aligned(1)));
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sums)
        : "v"(codes), "m"(*reinterpret_cast<Word*>(digits)));
}

/// By how much the sums of sixteen rows exceed the cutoff.
inline __m512 excess(__m512i sums, __m512 projections, __m512 residuals,
                     const planes::PlaneCutoff& cutoff) {
    const __m512 cutoff_sums =
        _mm512_fmadd_ps(projections, _mm512_set1_ps(cutoff.of_projection),
                        _mm512_fnmadd_ps(residuals, _mm512_set1_ps(cutoff.of_residual),
                                         _mm512_set1_ps(cutoff.constant)));
    return _mm512_sub_ps(_mm512_maskz_cvtepi32_ps(kAll16, sums), cutoff_sums);
}

/// Bit mask of the rows whose sums are not below the cutoff.
inline __mmask16 reach_mask(__m512 excesses) {
    return _mm512_cmp_ps_mask(excesses, _mm512_setzero_ps(), _CMP_NLT_UQ);
}

/// Adds one query's low-byte sums to `high_sums` and lists the rows that still pass. Called rarely,
/// hence not inlined. Four sums hide the latency of the products.
__attribute__((noinline)) std::size_t list_passed(const std::byte* group, std::size_t steps,
                                                  const std::int8_t* digits,
                                                  const planes::PlaneCutoff& cutoff,
                                                  __m512i high_sums, __mmask16 passing,
                                                  std::uint32_t first_row, std::uint32_t query,
                                                  PassedRow* passed) {
    const __m512i mask = _mm512_set1_epi8(kCodeMask);
    __m512i sums[2][2] = {{_mm512_maskz_slli_epi32(kAll16, high_sums, kHighShift)}};
    const auto add = [&](std::size_t step, __m512i(&to)[2]) {
        std::int32_t words[kWordsOfStep];
        __builtin_memcpy(words, digits + step * 2 * kStepDims + kStepDims, sizeof words);
        const __m512i packed = _mm512_loadu_si512(group + step * kStepBytes);
        to[0] =
            _mm512_dpbusd_epi32(to[0], _mm512_and_si512(packed, mask), _mm512_set1_epi32(words[0]));
        to[1] = _mm512_dpbusd_epi32(to[1], _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask),
                                    _mm512_set1_epi32(words[1]));
    };
    std::size_t step = 0;
    for (; step + 2 <= steps; step += 2) {
        add(step, sums[0]);
        add(step + 1, sums[1]);
    }
    if (step < steps) add(step, sums[0]);
    const __m512i whole_sums = _mm512_add_epi32(_mm512_add_epi32(sums[0][0], sums[0][1]),
                                                _mm512_add_epi32(sums[1][0], sums[1][1]));
    const std::byte* const bounds = group + steps * kStepBytes;
    const __m512 excesses = excess(whole_sums, load(bounds), load(bounds + 2 * kGroupRows), cutoff);
    std::int32_t row_sums[kGroupRows];
    _mm512_storeu_si512(row_sums, whole_sums);
    return list_rows(bounds, row_sums, passing & reach_mask(excesses), first_row, query, passed);
}

/// Compares the rows of `Groups` groups with the cutoffs of `Width` queries, unpacking each code
/// once for all of them.
template <std::size_t Width, std::size_t Groups>
inline std::size_t filter_groups(const std::byte* at, std::size_t steps,
                                 const QueryBlockView& block, std::uint32_t first_row,
                                 PassedRow* passed) {
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    const __m512i mask = _mm512_set1_epi8(kCodeMask);
    const std::int8_t* const high_bytes = block.high_bytes;
    __m512i sums[Width][Groups] = {};
    for (std::size_t step = 0; step < steps; ++step) {
        __m512i codes[Groups][2];
#pragma GCC unroll 4
        for (std::size_t g = 0; g < Groups; ++g) {
            const std::byte* const from = at + g * group_bytes + step * kStepBytes;
            __builtin_prefetch(from + kAheadBytes);
            const __m512i packed = _mm512_loadu_si512(from);
            codes[g][0] = _mm512_and_si512(packed, mask);
            codes[g][1] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
        }
#pragma GCC unroll 8
        for (std::size_t q = 0; q < Width; ++q) {
            std::int32_t words[kWordsOfStep];
            __builtin_memcpy(words, high_bytes + (step * Width + q) * sizeof words, sizeof words);
#pragma GCC unroll 4
            for (std::size_t g = 0; g < Groups; ++g) {
                __m512i& sum = sums[q][g];
                sum = _mm512_dpbusd_epi32(sum, codes[g][0], _mm512_set1_epi32(words[0]));
                sum = _mm512_dpbusd_epi32(sum, codes[g][1], _mm512_set1_epi32(words[1]));
            }
        }
    }
    std::size_t count = 0;
    __m512 projections[Groups];
    __m512 residuals[Groups];
#pragma GCC unroll 4
    for (std::size_t g = 0; g < Groups; ++g) {
        const std::byte* const bounds = at + g * group_bytes + steps * kStepBytes;
        projections[g] = load(bounds);
        residuals[g] = load(bounds + 2 * kGroupRows);
    }
#pragma GCC unroll 8
    for (std::size_t q = 0; q < Width; ++q) {
#pragma GCC unroll 4
        for (std::size_t g = 0; g < Groups; ++g) {
            const __mmask16 passing = reach_mask(
                excess(sums[q][g], projections[g], residuals[g], block.coarse_cutoffs[q]));
            if (__builtin_expect(passing != 0, 0)) {
                count += list_passed(at + g * group_bytes, steps, block.bytes[q], block.cutoffs[q],
                                     sums[q][g], passing,
                                     first_row + static_cast<std::uint32_t>(g * kGroupRows),
                                     static_cast<std::uint32_t>(q), passed + count);
            }
        }
    }
    return count;
}

/// As filter_groups, for a single query, which waits for memory and for its own instructions. One
/// group at a time is one stream of memory. The high halves of bytes are multiplied where they are,
/// 16 times too large, and their sum is divided at the end, which is exact: no sum exceeds 16 · 15
/// · 127 · 4096 < 2³¹.
std::size_t filter_single(const std::byte* bytes, std::size_t groups, std::size_t steps,
                          const QueryBlockView& block, PassedRow* passed) {
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    const __m512i low_mask = _mm512_set1_epi8(kCodeMask);
    const __m512i high_mask = _mm512_set1_epi8(static_cast<char>(~kCodeMask));
    const planes::PlaneCutoff cutoff = block.coarse_cutoffs[0];
    std::size_t count = 0;
    const std::byte* at = bytes;
    for (std::size_t group = 0; group < groups; ++group, at += group_bytes) {
        const std::int8_t* digits = block.high_bytes;
        __m512i low_sums = _mm512_setzero_si512();
        __m512i high_sums = _mm512_setzero_si512();
        for (std::size_t step = 0; step < steps; ++step, digits += kStepDims) {
            const std::byte* const from = at + step * kStepBytes;
            __builtin_prefetch(from + kAheadBytes);
            const __m512i packed = _mm512_loadu_si512(from);
            add_products(low_sums, _mm512_and_si512(packed, low_mask), digits);
            add_products(high_sums, _mm512_and_si512(packed, high_mask), digits + kStepDims / 2);
        }
        const __m512i sums =
            _mm512_add_epi32(low_sums, _mm512_maskz_srai_epi32(kAll16, high_sums, 4));
        const std::byte* const bounds = at + steps * kStepBytes;
        const __mmask16 passing =
            reach_mask(excess(sums, load(bounds), load(bounds + 2 * kGroupRows), cutoff));
        if (__builtin_expect(passing != 0, 0)) {
            count += list_passed(at, steps, block.bytes[0], block.cutoffs[0], sums, passing,
                                 static_cast<std::uint32_t>(group * kGroupRows), 0, passed + count);
        }
    }
    return count;
}

template <std::size_t Width>
std::size_t filter_block(const std::byte* bytes, std::size_t groups, std::size_t steps,
                         const QueryBlockView& block, PassedRow* passed) {
    constexpr std::size_t kGroups = 2;
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    std::size_t count = 0;
    std::size_t group = 0;
    for (; group + kGroups <= groups; group += kGroups) {
        count += filter_groups<Width, kGroups>(bytes + group * group_bytes, steps, block,
                                               static_cast<std::uint32_t>(group * kGroupRows),
                                               passed + count);
    }
    for (; group < groups; ++group) {
        count +=
            filter_groups<Width, 1>(bytes + group * group_bytes, steps, block,
                                    static_cast<std::uint32_t>(group * kGroupRows), passed + count);
    }
    return count;
}

std::size_t filter(const std::byte* bytes, std::size_t groups, std::size_t steps,
                   const QueryBlockView& block, PassedRow* passed) {
    switch (block.width) {
        case 1:
            return filter_single(bytes, groups, steps, block, passed);
        case 2:
            return filter_block<2>(bytes, groups, steps, block, passed);
        case 4:
            return filter_block<4>(bytes, groups, steps, block, passed);
        default:
            return filter_block<kWidth>(bytes, groups, steps, block, passed);
    }
}

/// As filter_block, on 7-bit codes.
template <std::size_t Width>
std::size_t filter_fine_block(const std::byte* bytes, std::size_t groups, std::size_t steps,
                              const QueryBlockView& block, PassedRow* passed) {
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    std::size_t count = 0;
    for (std::size_t group = 0; group < groups; ++group) {
        const std::byte* const at = bytes + group * group_bytes;
        const std::int8_t* digits = block.high_bytes;
        __m512i sums[Width] = {};
        for (std::size_t step = 0; step < steps; ++step) {
            const std::byte* const from = at + step * kStepBytes;
            __builtin_prefetch(from + kAheadBytes);
            const __m512i codes = _mm512_loadu_si512(from);
#pragma GCC unroll 16
            for (std::size_t q = 0; q < Width; ++q)
                add_products(sums[q], codes, digits + q * kFineStepDims);
            digits += Width * kFineStepDims;
        }
        const std::byte* const bounds = at + steps * kStepBytes;
        const __m512 projections = load(bounds);
        const __m512 residuals = load(bounds + 2 * kGroupRows);
        // No excess is NaN: cutoffs are finite but for the constant, and sums are.
        __m512 largest = _mm512_set1_ps(-HUGE_VALF);
#pragma GCC unroll 16
        for (std::size_t q = 0; q < Width; ++q) {
            const __m512 excesses = excess(sums[q], projections, residuals, block.cutoffs[q]);
            largest = _mm512_maskz_max_ps(kAll16, largest, excesses);
        }
        if (__builtin_expect(reach_mask(largest) == 0, 1)) continue;
        // Stored before the first call: g++ keeps no sum in a register that lives across a call.
        std::int32_t stored[Width][kGroupRows];
#pragma GCC unroll 16
        for (std::size_t q = 0; q < Width; ++q) _mm512_storeu_si512(stored[q], sums[q]);
        for (std::size_t q = 0; q < Width; ++q) {
            const __mmask16 passing = reach_mask(
                excess(_mm512_loadu_si512(stored[q]), projections, residuals, block.cutoffs[q]));
            if (passing == 0) continue;
            count += list_rows(bounds, stored[q], passing,
                               static_cast<std::uint32_t>(group * kGroupRows),
                               static_cast<std::uint32_t>(q), passed + count);
        }
    }
    return count;
}

std::size_t filter_fine(const std::byte* bytes, std::size_t groups, std::size_t steps,
                        const QueryBlockView& block, PassedRow* passed) {
    switch (block.width) {
        case 1:
            return filter_fine_block<1>(bytes, groups, steps, block, passed);
        case 2:
            return filter_fine_block<2>(bytes, groups, steps, block, passed);
        case 4:
            return filter_fine_block<4>(bytes, groups, steps, block, passed);
        case 8:
            return filter_fine_block<8>(bytes, groups, steps, block, passed);
        default:
            return filter_fine_block<kFineWidth>(bytes, groups, steps, block, passed);
    }
}

}  // namespace
}  // namespace avx512_vnni
GLOVED_TARGET_END

// ---- AVX2: eight rows per vector, four byte products in two instructions

GLOVED_TARGET_BEGIN("avx2,fma")
namespace avx2 {
namespace {

constexpr std::size_t kWidth = 4;
constexpr std::size_t kRows = 8;
/// Steps whose products are added in 16 bits. A step adds two sums of two products, and a product
/// of a code and a high byte is at most 15 · 127 (a low byte's is smaller). 4 · 2 · 2 · 15 · 127 =
/// 30480 < 2¹⁵, so nothing saturates.
constexpr std::size_t kShortSteps = 4;

/// Eight uint16 as floats.
inline __m256 load(const std::byte* from) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

inline unsigned reach_mask(__m256i sums, __m256 projections, __m256 residuals,
                           const planes::PlaneCutoff& cutoff) {
    const __m256 cutoff_sums =
        _mm256_fmadd_ps(projections, _mm256_set1_ps(cutoff.of_projection),
                        _mm256_fnmadd_ps(residuals, _mm256_set1_ps(cutoff.of_residual),
                                         _mm256_set1_ps(cutoff.constant)));
    return static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_cvtepi32_ps(sums), cutoff_sums, _CMP_NLT_UQ)));
}

/// Adds the products of eight rows, whose codes begin at `at`, and of the next eight if `Vectors`
/// is 2, with the bytes of `Width` queries to `sums`, of shape (Width, Vectors). The bytes of a
/// step and query q are at digits + step * step_bytes + 8 * q.
template <std::size_t Width, std::size_t Vectors, bool Prefetch>
inline void sum_rows(const std::byte* at, std::size_t steps, const std::int8_t* digits,
                     std::size_t step_bytes, __m256i* sums) {
    const __m256i mask = _mm256_set1_epi8(kCodeMask);
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t begin = 0; begin < steps; begin += kShortSteps) {
        const std::size_t end = steps - begin < kShortSteps ? steps : begin + kShortSteps;
        __m256i shorts[Width * Vectors] = {};
        for (std::size_t step = begin; step < end; ++step) {
            const std::byte* const from = at + step * kStepBytes;
            if (Prefetch) __builtin_prefetch(from + kAheadBytes);
#pragma GCC unroll 2
            for (std::size_t v = 0; v < Vectors; ++v) {
                const __m256i packed = _mm256_loadu_si256(
                    reinterpret_cast<const __m256i*>(from + v * sizeof(__m256i)));
                const __m256i first = _mm256_and_si256(packed, mask);
                const __m256i second = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
#pragma GCC unroll 4
                for (std::size_t q = 0; q < Width; ++q) {
                    std::int32_t words[kWordsOfStep];
                    __builtin_memcpy(words, digits + step * step_bytes + q * sizeof words,
                                     sizeof words);
                    const __m256i products =
                        _mm256_add_epi16(_mm256_maddubs_epi16(first, _mm256_set1_epi32(words[0])),
                                         _mm256_maddubs_epi16(second, _mm256_set1_epi32(words[1])));
                    __m256i& sum = shorts[q * Vectors + v];
                    sum = _mm256_add_epi16(sum, products);
                }
            }
        }
#pragma GCC unroll 4
        for (std::size_t s = 0; s < Width * Vectors; ++s)
            sums[s] = _mm256_add_epi32(sums[s], _mm256_madd_epi16(shorts[s], ones));
    }
}

/// Same as avx512_vnni::list_passed, for eight rows of the group, from row `part` on.
__attribute__((noinline)) std::size_t list_passed(const std::byte* group, std::size_t part,
                                                  std::size_t steps, const std::int8_t* digits,
                                                  const planes::PlaneCutoff& cutoff,
                                                  __m256i high_sums, unsigned passing,
                                                  std::uint32_t first_row, std::uint32_t query,
                                                  PassedRow* passed) {
    __m256i low_sums[1] = {_mm256_setzero_si256()};
    sum_rows<1, 1, false>(group + 4 * part, steps, digits + kStepDims, 2 * kStepDims, low_sums);
    const __m256i whole_sums =
        _mm256_add_epi32(_mm256_slli_epi32(high_sums, kHighShift), low_sums[0]);
    const std::byte* const projections = group + steps * kStepBytes + 2 * part;
    const std::byte* const residuals = projections + 2 * kGroupRows;
    passing &= reach_mask(whole_sums, load(projections), load(residuals), cutoff);
    std::int32_t row_sums[kRows];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row_sums), whole_sums);
    return list_rows(projections, row_sums, passing, first_row, query, passed);
}

template <std::size_t Width>
std::size_t filter_block(const std::byte* bytes, std::size_t groups, std::size_t steps,
                         const QueryBlockView& block, PassedRow* passed) {
    // A single query leaves registers for all rows of a group.
    constexpr std::size_t kVectors = Width == 1 ? 2 : 1;
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    std::size_t count = 0;
    for (std::size_t group = 0; group < groups; ++group) {
        const std::byte* const at = bytes + group * group_bytes;
        const std::byte* const bounds = at + steps * kStepBytes;
        for (std::size_t first = 0; first < kGroupRows; first += kVectors * kRows) {
            __m256i sums[Width * kVectors] = {};
            sum_rows<Width, kVectors, true>(at + 4 * first, steps, block.high_bytes,
                                            kStepDims * Width, sums);
#pragma GCC unroll 2
            for (std::size_t v = 0; v < kVectors; ++v) {
                const std::size_t part = first + v * kRows;
                const __m256 projections = load(bounds + 2 * part);
                const __m256 residuals = load(bounds + 2 * (kGroupRows + part));
#pragma GCC unroll 4
                for (std::size_t q = 0; q < Width; ++q) {
                    const __m256i sum = sums[q * kVectors + v];
                    const unsigned passing =
                        reach_mask(sum, projections, residuals, block.coarse_cutoffs[q]);
                    if (__builtin_expect(passing != 0, 0)) {
                        count += list_passed(at, part, steps, block.bytes[q], block.cutoffs[q], sum,
                                             passing,
                                             static_cast<std::uint32_t>(group * kGroupRows + part),
                                             static_cast<std::uint32_t>(q), passed + count);
                    }
                }
            }
        }
    }
    return count;
}

std::size_t filter(const std::byte* bytes, std::size_t groups, std::size_t steps,
                   const QueryBlockView& block, PassedRow* passed) {
    switch (block.width) {
        case 1:
            return filter_block<1>(bytes, groups, steps, block, passed);
        case 2:
            return filter_block<2>(bytes, groups, steps, block, passed);
        default:
            return filter_block<kWidth>(bytes, groups, steps, block, passed);
    }
}

}  // namespace
}  // namespace avx2
GLOVED_TARGET_END

#endif  // __x86_64__

// ---- Four rows per vector of 16 bytes

namespace {

constexpr std::size_t kLanes = 4;
constexpr std::size_t kVectors = kGroupRows / kLanes;

}  // namespace

// ---- NEON with dot products: four byte products per lane and instruction. Codes are at most 15,
// so they are signed bytes too.

#ifdef __aarch64__
GLOVED_TARGET_BEGIN("arch=armv8.2-a+dotprod")
namespace neon_dotprod {
namespace {

constexpr std::size_t kWidth = 4;

template <std::size_t Width>
inline void sum_group(const std::byte* codes, std::size_t steps, const std::int8_t* digits,
                      std::size_t step_bytes, FourInts (*sums)[kVectors]) {
    for (std::size_t step = 0; step < steps; ++step) {
        const std::byte* const from = codes + step * kStepBytes;
        __builtin_prefetch(from + kAheadBytes);
        int8x16_t first[kVectors];
        int8x16_t second[kVectors];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) {
            uint8x16_t packed;
            __builtin_memcpy(&packed, from + v * sizeof packed, sizeof packed);
            first[v] = vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(kCodeMask)));
            second[v] = vreinterpretq_s8_u8(vshrq_n_u8(packed, 4));
        }
#pragma GCC unroll 4
        for (std::size_t q = 0; q < Width; ++q) {
            const int8x8_t bytes = vld1_s8(digits + step * step_bytes + q * kStepDims);
#pragma GCC unroll 4
            for (std::size_t v = 0; v < kVectors; ++v) {
                auto sum = static_cast<int32x4_t>(sums[q][v]);
                sum = vdotq_lane_s32(sum, first[v], bytes, 0);
                sums[q][v] = static_cast<FourInts>(vdotq_lane_s32(sum, second[v], bytes, 1));
            }
        }
    }
}

}  // namespace
}  // namespace neon_dotprod

#define GLOVED_ISA neon_dotprod
#define GLOVED_FMA(a, b, c) FourFloats(vfmaq_f32(c, a, b))
#include "kernels/cpu/plane_loops.inc"
GLOVED_TARGET_END
#endif

// ---- Baseline: 16-bit products, which every architecture has

namespace baseline {
namespace {

constexpr std::size_t kWidth = 2;
/// Steps whose products are added in 16 bits. A step adds four products of a code and a high byte,
/// each at most 15 · 127 (a low byte's is smaller). 4 · 4 · 15 · 127 = 30480 < 2¹⁵.
constexpr std::size_t kShortSteps = 4;

/// A row has two lanes, of four codes each.
using Lanes = std::uint16_t __attribute__((vector_size(16)));
using SignedLanes = std::int16_t __attribute__((vector_size(16)));
constexpr std::size_t kCodesOfLane = 4;

/// What the lanes of codes are multiplied with.
struct Factors {
    Lanes of[kCodesOfLane];
};

/// A lane l holds codes a, b, c and d from its lowest bits on. They need not be separated: with l₁
/// = l >> 4, a is l − 16 l₁, and so on. So a w + b x + c y + d z is
///     l w + l₁ (x − 16 w) + l₂ (y − 16 x) + l₃ (z − 16 y),
/// where products and sums may wrap.
inline Factors factors(const std::int8_t* digits) {
    std::int32_t words[kWordsOfStep];
    __builtin_memcpy(words, digits, sizeof words);
    const auto first = reinterpret_cast<SignedLanes>(words[0] - FourInts{});
    const auto second = reinterpret_cast<SignedLanes>(words[1] - FourInts{});
    const SignedLanes w = first << 8 >> 8;
    const SignedLanes x = second << 8 >> 8;
    const SignedLanes y = first >> 8;
    const SignedLanes z = second >> 8;
    return {{reinterpret_cast<Lanes>(w), reinterpret_cast<Lanes>(x - (w << 4)),
             reinterpret_cast<Lanes>(y - (x << 4)), reinterpret_cast<Lanes>(z - (y << 4))}};
}

template <std::size_t Width>
inline void sum_group(const std::byte* codes, std::size_t steps, const std::int8_t* digits,
                      std::size_t step_bytes, FourInts (*sums)[kVectors]) {
    for (std::size_t begin = 0; begin < steps; begin += kShortSteps) {
        const std::size_t end = steps - begin < kShortSteps ? steps : begin + kShortSteps;
        Lanes shorts[Width][kVectors] = {};
        for (std::size_t step = begin; step < end; ++step) {
            const std::byte* const from = codes + step * kStepBytes;
            __builtin_prefetch(from + kAheadBytes);
            Factors of[Width];
#pragma GCC unroll 2
            for (std::size_t q = 0; q < Width; ++q)
                of[q] = factors(digits + step * step_bytes + q * kStepDims);
#pragma GCC unroll 4
            for (std::size_t v = 0; v < kVectors; ++v) {
                Lanes packed;
                __builtin_memcpy(&packed, from + v * sizeof packed, sizeof packed);
#pragma GCC unroll 4
                for (std::size_t c = 0; c < kCodesOfLane; ++c) {
#pragma GCC unroll 2
                    for (std::size_t q = 0; q < Width; ++q) shorts[q][v] += packed * of[q].of[c];
                    packed >>= 4;
                }
            }
        }
#pragma GCC unroll 2
        for (std::size_t q = 0; q < Width; ++q) {
#pragma GCC unroll 4
            for (std::size_t v = 0; v < kVectors; ++v) {
                const auto both = reinterpret_cast<FourInts>(shorts[q][v]);
                sums[q][v] += (both << 16 >> 16) + (both >> 16);
            }
        }
    }
}

}  // namespace
}  // namespace baseline

#define GLOVED_ISA baseline
#define GLOVED_FMA(a, b, c) ((a) * (b) + (c))
#include "kernels/cpu/plane_loops.inc"

namespace {

constexpr PlaneLoop kNoLoop = {0, nullptr};

#ifdef __x86_64__
constexpr PlaneKernel kAvx512Vnni = {"avx512-vnni",
                                     has_avx512_vnni,
                                     {avx512_vnni::kWidth, avx512_vnni::filter},
                                     {avx512_vnni::kFineWidth, avx512_vnni::filter_fine}};
constexpr PlaneKernel kAvx2 = {"avx2", has_avx2, {avx2::kWidth, avx2::filter}, kNoLoop};
#elif defined(__aarch64__)
constexpr PlaneKernel kNeonDotprod = {
    "neon-dotprod", has_neon_dotprod, {neon_dotprod::kWidth, neon_dotprod::filter}, kNoLoop};
#endif
constexpr PlaneKernel kBaseline = {
    "baseline", has_baseline, {baseline::kWidth, baseline::filter}, kNoLoop};

constexpr std::array kAll = {
#ifdef __x86_64__
    &kAvx512Vnni, &kAvx2,
#elif defined(__aarch64__)
    &kNeonDotprod,
#endif
    &kBaseline};

}  // namespace

QueryBlock::QueryBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t step_dims)
    : width_(std::bit_ceil(queries.size())) {
    assert(!queries.empty() && kStepDims % step_dims == 0);
    // PlaneQuery::bytes has steps of kStepDims.
    const std::size_t steps = queries[0]->bytes.size() / (2 * step_dims);
    high_bytes_.assign(steps * width_ * step_dims, 0);
    for (std::size_t q = 0; q < queries.size(); ++q) {
        bytes_.push_back(queries[q]->bytes.data());
        for (std::size_t step = 0; step < steps; ++step) {
            const std::size_t first = step * step_dims;
            std::memcpy(high_bytes_.data() + (step * width_ + q) * step_dims,
                        bytes_[q] + first / kStepDims * 2 * kStepDims + first % kStepDims,
                        step_dims);
        }
    }
}

std::span<const PlaneKernel* const> all_plane_kernels() { return kAll; }

const PlaneKernel& plane_kernel_for(std::string_view simd) {
    bool allowed = false;
    for (const PlaneKernel* kernel : kAll) {
        allowed = allowed || kernel->name.starts_with(simd);
        if (allowed && kernel->supported()) return *kernel;
    }
    return kBaseline;
}

}  // namespace gloved::kernels::cpu
