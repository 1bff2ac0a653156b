// Loops for three instruction sets, each between target pragmas of its own. Nothing else may stand
// there: an inline function of a header, first used there, would be compiled for that instruction
// set and could be linked into code for processors without it.
#include "kernels/cpu/plane_scan.hpp"

#include <immintrin.h>

#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

namespace gloved::kernels::cpu {
namespace {

using planes::kGroupRows;
using planes::kStepBytes;
using planes::kStepDims;

constexpr char kCodeMask = 0x0F;
constexpr int kHighShift = 7;  // Q = 128 high + low
constexpr std::size_t kWordsOfStep = kStepDims / 4;

/// How far ahead bytes are asked for: the processor's own prefetching stops at each page.
constexpr std::size_t kAheadBytes = 8192;

}  // namespace

// ---- AVX-512 with VNNI: a vector's lane a row, four products of bytes an instruction, so that no
// sum crosses rows

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace avx512_vnni {
namespace {

constexpr std::size_t kWidth = 8;

/// g++ 12 warns of its own header where these operations are not masked.
constexpr __mmask16 kAll16 = 0xFFFF;

/// Sixteen uint16 as floats.
inline __m512 load(const std::byte* from) {
    return _mm512_maskz_cvtepi32_ps(
        kAll16, _mm512_maskz_cvtepu16_epi32(
                    kAll16, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}

/// The rows whose sums are not below the cutoff.
inline __mmask16 reach(__m512i sums, __m512 projections, __m512 residuals,
                       const planes::PlaneCutoff& cutoff) {
    const __m512 least =
        _mm512_fmadd_ps(projections, _mm512_set1_ps(cutoff.of_projection),
                        _mm512_fnmadd_ps(residuals, _mm512_set1_ps(cutoff.of_residual),
                                         _mm512_set1_ps(cutoff.constant)));
    return _mm512_cmp_ps_mask(_mm512_maskz_cvtepi32_ps(kAll16, sums), least, _CMP_NLT_UQ);
}

/// Adds the lows' sums of one lane to `highs`, and lists the rows that still pass. Seldom called,
/// so not to be inlined; four sums, as nothing else hides the latency of its products.
__attribute__((noinline)) std::size_t list(const std::byte* group, std::size_t steps,
                                           const std::int8_t* digits,
                                           const planes::PlaneCutoff& cutoff, __m512i highs,
                                           __mmask16 of, std::uint32_t first_row,
                                           std::uint32_t lane, Passed* passed) {
    const __m512i mask = _mm512_set1_epi8(kCodeMask);
    __m512i sums[2][2] = {{_mm512_maskz_slli_epi32(kAll16, highs, kHighShift)}};
    const auto add = [&](std::size_t step, __m512i(&to)[2]) {
        std::int32_t words[kWordsOfStep];
        __builtin_memcpy(words, digits + step * 2 * kStepDims + kStepDims, sizeof words);
        const __m512i both = _mm512_loadu_si512(group + step * kStepBytes);
        to[0] =
            _mm512_dpbusd_epi32(to[0], _mm512_and_si512(both, mask), _mm512_set1_epi32(words[0]));
        to[1] = _mm512_dpbusd_epi32(to[1], _mm512_and_si512(_mm512_srli_epi16(both, 4), mask),
                                    _mm512_set1_epi32(words[1]));
    };
    std::size_t step = 0;
    for (; step + 2 <= steps; step += 2) {
        add(step, sums[0]);
        add(step + 1, sums[1]);
    }
    if (step < steps) add(step, sums[0]);
    const __m512i whole = _mm512_add_epi32(_mm512_add_epi32(sums[0][0], sums[0][1]),
                                           _mm512_add_epi32(sums[1][0], sums[1][1]));
    const std::byte* const bounds = group + steps * kStepBytes;
    unsigned left = of & reach(whole, load(bounds), load(bounds + 2 * kGroupRows), cutoff);
    std::int32_t of_rows[kGroupRows];
    _mm512_storeu_si512(of_rows, whole);
    std::size_t count = 0;
    for (; left != 0; left &= left - 1) {
        const auto row = static_cast<std::uint32_t>(__builtin_ctz(left));
        Passed& one = passed[count++];
        one.row = first_row + row;
        one.lane = lane;
        one.sum = of_rows[row];
        __builtin_memcpy(&one.projection, bounds + std::size_t{2} * row, sizeof one.projection);
        __builtin_memcpy(&one.residual, bounds + 2 * (kGroupRows + row), sizeof one.residual);
    }
    return count;
}

/// Codes are unpacked once for all lanes. One lane has two sums a group, as the latency of its
/// products would show otherwise.
template <std::size_t Width, std::size_t Groups>
inline std::size_t sift_groups(const std::byte* at, std::size_t steps, const LaneView& block,
                               std::uint32_t first_row, Passed* passed) {
    constexpr std::size_t kSums = Width == 1 ? 2 : 1;
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    const __m512i mask = _mm512_set1_epi8(kCodeMask);
    const std::int8_t* const digits = block.highs;
    __m512i sums[Width][Groups][kSums] = {};
    for (std::size_t step = 0; step < steps; ++step) {
        __m512i codes[Groups][2];
#pragma GCC unroll 4
        for (std::size_t g = 0; g < Groups; ++g) {
            const std::byte* const from = at + g * group_bytes + step * kStepBytes;
            __builtin_prefetch(from + kAheadBytes);
            const __m512i both = _mm512_loadu_si512(from);
            codes[g][0] = _mm512_and_si512(both, mask);
            codes[g][1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
        }
#pragma GCC unroll 8
        for (std::size_t lane = 0; lane < Width; ++lane) {
            std::int32_t words[kWordsOfStep];
            __builtin_memcpy(words, digits + (step * Width + lane) * sizeof words, sizeof words);
#pragma GCC unroll 4
            for (std::size_t g = 0; g < Groups; ++g) {
                __m512i(&of)[kSums] = sums[lane][g];
                of[0] = _mm512_dpbusd_epi32(of[0], codes[g][0], _mm512_set1_epi32(words[0]));
                of[kSums - 1] =
                    _mm512_dpbusd_epi32(of[kSums - 1], codes[g][1], _mm512_set1_epi32(words[1]));
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
    for (std::size_t lane = 0; lane < Width; ++lane) {
#pragma GCC unroll 4
        for (std::size_t g = 0; g < Groups; ++g) {
            __m512i sum = sums[lane][g][0];
            if (kSums == 2) sum = _mm512_add_epi32(sum, sums[lane][g][kSums - 1]);
            const __mmask16 of =
                reach(sum, projections[g], residuals[g], block.coarse_cutoffs[lane]);
            if (__builtin_expect(of != 0, 0)) {
                count += list(at + g * group_bytes, steps, block.bytes[lane], block.cutoffs[lane],
                              sum, of, first_row + static_cast<std::uint32_t>(g * kGroupRows),
                              static_cast<std::uint32_t>(lane), passed + count);
            }
        }
    }
    return count;
}

template <std::size_t Width>
std::size_t sift_lanes(const std::byte* bytes, std::size_t groups, std::size_t steps,
                       const LaneView& block, Passed* passed) {
    constexpr std::size_t kGroups = 2;
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    std::size_t count = 0;
    std::size_t group = 0;
    for (; group + kGroups <= groups; group += kGroups) {
        count += sift_groups<Width, kGroups>(bytes + group * group_bytes, steps, block,
                                             static_cast<std::uint32_t>(group * kGroupRows),
                                             passed + count);
    }
    for (; group < groups; ++group) {
        count +=
            sift_groups<Width, 1>(bytes + group * group_bytes, steps, block,
                                  static_cast<std::uint32_t>(group * kGroupRows), passed + count);
    }
    return count;
}

std::size_t sift(const std::byte* bytes, std::size_t groups, std::size_t steps,
                 const LaneView& block, Passed* passed) {
    return block.width == 1 ? sift_lanes<1>(bytes, groups, steps, block, passed)
                            : sift_lanes<kWidth>(bytes, groups, steps, block, passed);
}

}  // namespace
}  // namespace avx512_vnni
#pragma GCC pop_options

// ---- AVX2: eight rows a vector, four products of bytes in two instructions

#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
namespace {

constexpr std::size_t kWidth = 4;
constexpr std::size_t kRows = 8;
/// Steps whose products are added up in 16 bits. A step adds two sums of two products to each, and
/// a product of a code and a high is at most 15 · 127 in size (a low's is less): 4 · 2 · 2 · 15 ·
/// 127 = 30480 < 2¹⁵, so that nothing saturates.
constexpr std::size_t kShortSteps = 4;

/// Eight uint16 as floats.
inline __m256 load(const std::byte* from) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

inline unsigned reach(__m256i sums, __m256 projections, __m256 residuals,
                      const planes::PlaneCutoff& cutoff) {
    const __m256 least =
        _mm256_fmadd_ps(projections, _mm256_set1_ps(cutoff.of_projection),
                        _mm256_fnmadd_ps(residuals, _mm256_set1_ps(cutoff.of_residual),
                                         _mm256_set1_ps(cutoff.constant)));
    return static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_cmp_ps(_mm256_cvtepi32_ps(sums), least, _CMP_NLT_UQ)));
}

/// Sums of eight rows whose codes begin at `at`, with the bytes of `Width` lanes: those of a step
/// and lane stand at digits + step * step_bytes + 8 * lane.
template <std::size_t Width, bool Prefetch>
inline void sum_rows(const std::byte* at, std::size_t steps, const std::int8_t* digits,
                     std::size_t step_bytes, __m256i* sums) {
    const __m256i mask = _mm256_set1_epi8(kCodeMask);
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::size_t begin = 0; begin < steps; begin += kShortSteps) {
        const std::size_t end = steps - begin < kShortSteps ? steps : begin + kShortSteps;
        __m256i shorts[Width] = {};
        for (std::size_t step = begin; step < end; ++step) {
            const std::byte* const from = at + step * kStepBytes;
            if (Prefetch) __builtin_prefetch(from + kAheadBytes);
            const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
            const __m256i first = _mm256_and_si256(both, mask);
            const __m256i second = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
#pragma GCC unroll 4
            for (std::size_t lane = 0; lane < Width; ++lane) {
                std::int32_t words[kWordsOfStep];
                __builtin_memcpy(words, digits + step * step_bytes + lane * sizeof words,
                                 sizeof words);
                const __m256i products =
                    _mm256_add_epi16(_mm256_maddubs_epi16(first, _mm256_set1_epi32(words[0])),
                                     _mm256_maddubs_epi16(second, _mm256_set1_epi32(words[1])));
                shorts[lane] = _mm256_add_epi16(shorts[lane], products);
            }
        }
#pragma GCC unroll 4
        for (std::size_t lane = 0; lane < Width; ++lane) {
            sums[lane] = _mm256_add_epi32(sums[lane], _mm256_madd_epi16(shorts[lane], ones));
        }
    }
}

/// As with AVX-512.
__attribute__((noinline)) std::size_t list(const std::byte* group, std::size_t part,
                                           std::size_t steps, const std::int8_t* digits,
                                           const planes::PlaneCutoff& cutoff, __m256i highs,
                                           unsigned of, std::uint32_t first_row, std::uint32_t lane,
                                           Passed* passed) {
    __m256i lows[1] = {_mm256_setzero_si256()};
    sum_rows<1, false>(group + 4 * part, steps, digits + kStepDims, 2 * kStepDims, lows);
    const __m256i whole = _mm256_add_epi32(_mm256_slli_epi32(highs, kHighShift), lows[0]);
    const std::byte* const projections = group + steps * kStepBytes + 2 * part;
    const std::byte* const residuals = projections + 2 * kGroupRows;
    unsigned left = of & reach(whole, load(projections), load(residuals), cutoff);
    std::int32_t of_rows[kRows];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(of_rows), whole);
    std::size_t count = 0;
    for (; left != 0; left &= left - 1) {
        const auto row = static_cast<std::uint32_t>(__builtin_ctz(left));
        Passed& one = passed[count++];
        one.row = first_row + row;
        one.lane = lane;
        one.sum = of_rows[row];
        __builtin_memcpy(&one.projection, projections + std::size_t{2} * row,
                         sizeof one.projection);
        __builtin_memcpy(&one.residual, residuals + std::size_t{2} * row, sizeof one.residual);
    }
    return count;
}

template <std::size_t Width>
std::size_t sift_lanes(const std::byte* bytes, std::size_t groups, std::size_t steps,
                       const LaneView& block, Passed* passed) {
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    std::size_t count = 0;
    for (std::size_t group = 0; group < groups; ++group) {
        const std::byte* const at = bytes + group * group_bytes;
        const std::byte* const bounds = at + steps * kStepBytes;
        for (std::size_t part = 0; part < kGroupRows; part += kRows) {
            __m256i sums[Width] = {};
            sum_rows<Width, true>(at + 4 * part, steps, block.highs, kStepDims * Width, sums);
            const __m256 projections = load(bounds + 2 * part);
            const __m256 residuals = load(bounds + 2 * (kGroupRows + part));
#pragma GCC unroll 4
            for (std::size_t lane = 0; lane < Width; ++lane) {
                const unsigned of =
                    reach(sums[lane], projections, residuals, block.coarse_cutoffs[lane]);
                if (__builtin_expect(of != 0, 0)) {
                    count +=
                        list(at, part, steps, block.bytes[lane], block.cutoffs[lane], sums[lane],
                             of, static_cast<std::uint32_t>(group * kGroupRows + part),
                             static_cast<std::uint32_t>(lane), passed + count);
                }
            }
        }
    }
    return count;
}

std::size_t sift(const std::byte* bytes, std::size_t groups, std::size_t steps,
                 const LaneView& block, Passed* passed) {
    return block.width == 1 ? sift_lanes<1>(bytes, groups, steps, block, passed)
                            : sift_lanes<kWidth>(bytes, groups, steps, block, passed);
}

}  // namespace
}  // namespace avx2
#pragma GCC pop_options

// ---- Baseline x86-64: SSE2, four rows a vector, products of 16 bits: whole digits at once, since
// bytes would save nothing

namespace baseline {
namespace {

constexpr std::size_t kWidth = 2;
constexpr std::size_t kRows = 4;

/// Four uint16 as floats.
inline __m128 load(const std::byte* from) {
    return _mm_cvtepi32_ps(_mm_unpacklo_epi16(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), _mm_setzero_si128()));
}

template <std::size_t Width>
inline void sum_rows(const std::byte* at, std::size_t steps, const LaneView& block, __m128i* sums) {
    const __m128i mask = _mm_set1_epi8(kCodeMask);
    const __m128i zero = _mm_setzero_si128();
    __m128i front[Width] = {};  // rows 0, 1
    __m128i back[Width] = {};   // rows 2, 3
    for (std::size_t step = 0; step < steps; ++step) {
        const __m128i both =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + step * kStepBytes));
        const __m128i first = _mm_and_si128(both, mask);
        const __m128i second = _mm_and_si128(_mm_srli_epi16(both, 4), mask);
        const __m128i codes[4] = {_mm_unpacklo_epi8(first, zero), _mm_unpackhi_epi8(first, zero),
                                  _mm_unpacklo_epi8(second, zero), _mm_unpackhi_epi8(second, zero)};
#pragma GCC unroll 2
        for (std::size_t lane = 0; lane < Width; ++lane) {
            long long four[2] = {};
            if (lane < block.used) {
                __builtin_memcpy(four, block.digits[lane] + step * kStepDims, sizeof four);
            }
            const __m128i of_first = _mm_set1_epi64x(four[0]);
            const __m128i of_second = _mm_set1_epi64x(four[1]);
            front[lane] = _mm_add_epi32(front[lane], _mm_madd_epi16(codes[0], of_first));
            back[lane] = _mm_add_epi32(back[lane], _mm_madd_epi16(codes[1], of_first));
            front[lane] = _mm_add_epi32(front[lane], _mm_madd_epi16(codes[2], of_second));
            back[lane] = _mm_add_epi32(back[lane], _mm_madd_epi16(codes[3], of_second));
        }
    }
    for (std::size_t lane = 0; lane < Width; ++lane) {
        const __m128 a = _mm_castsi128_ps(front[lane]);
        const __m128 b = _mm_castsi128_ps(back[lane]);
        sums[lane] = _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))),
                                   _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))));
    }
}

template <std::size_t Width>
std::size_t sift_lanes(const std::byte* bytes, std::size_t groups, std::size_t steps,
                       const LaneView& block, Passed* passed) {
    const std::size_t group_bytes = (steps + 1) * kStepBytes;
    std::size_t count = 0;
    for (std::size_t group = 0; group < groups; ++group) {
        const std::byte* const at = bytes + group * group_bytes;
        for (std::size_t part = 0; part < kGroupRows; part += kRows) {
            const std::byte* const projections = at + steps * kStepBytes + 2 * part;
            const std::byte* const residuals = projections + 2 * kGroupRows;
            __m128i sums[Width];
            sum_rows<Width>(at + 4 * part, steps, block, sums);
            for (std::size_t lane = 0; lane < Width; ++lane) {
                const planes::PlaneCutoff& cutoff = block.cutoffs[lane];
                const __m128 of_projection =
                    _mm_mul_ps(load(projections), _mm_set1_ps(cutoff.of_projection));
                const __m128 of_residual =
                    _mm_mul_ps(load(residuals), _mm_set1_ps(cutoff.of_residual));
                const __m128 least = _mm_add_ps(
                    of_projection, _mm_sub_ps(_mm_set1_ps(cutoff.constant), of_residual));
                auto left = static_cast<unsigned>(
                    _mm_movemask_ps(_mm_cmpnlt_ps(_mm_cvtepi32_ps(sums[lane]), least)));
                if (left == 0) continue;
                std::int32_t of_rows[kRows];
                _mm_storeu_si128(reinterpret_cast<__m128i*>(of_rows), sums[lane]);
                for (; left != 0; left &= left - 1) {
                    const auto row = static_cast<std::uint32_t>(__builtin_ctz(left));
                    Passed& one = passed[count++];
                    one.row = static_cast<std::uint32_t>(group * kGroupRows + part) + row;
                    one.lane = static_cast<std::uint32_t>(lane);
                    one.sum = of_rows[row];
                    __builtin_memcpy(&one.projection, projections + std::size_t{2} * row,
                                     sizeof one.projection);
                    __builtin_memcpy(&one.residual, residuals + std::size_t{2} * row,
                                     sizeof one.residual);
                }
            }
        }
    }
    return count;
}

std::size_t sift(const std::byte* bytes, std::size_t groups, std::size_t steps,
                 const LaneView& block, Passed* passed) {
    return block.width == 1 ? sift_lanes<1>(bytes, groups, steps, block, passed)
                            : sift_lanes<kWidth>(bytes, groups, steps, block, passed);
}

}  // namespace
}  // namespace baseline

namespace {

bool has_avx512_vnni() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_baseline() { return true; }

constexpr PlaneKernel kAvx512Vnni = {"avx512-vnni", has_avx512_vnni, avx512_vnni::kWidth, true,
                                     avx512_vnni::sift};
constexpr PlaneKernel kAvx2 = {"avx2", has_avx2, avx2::kWidth, true, avx2::sift};
constexpr PlaneKernel kBaseline = {"baseline", has_baseline, baseline::kWidth, false,
                                   baseline::sift};

constexpr std::array<const PlaneKernel*, 3> kAll = {&kAvx512Vnni, &kAvx2, &kBaseline};

}  // namespace

LaneBlock::LaneBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t width)
    : width_(width) {
    assert(!queries.empty() && queries.size() <= width);
    const std::size_t steps = queries[0]->bytes.size() / (2 * kStepDims);
    highs_.assign(steps * width * kStepDims, 0);
    for (std::size_t lane = 0; lane < queries.size(); ++lane) {
        bytes_.push_back(queries[lane]->bytes.data());
        digits_.push_back(queries[lane]->digits.data());
        for (std::size_t step = 0; step < steps; ++step) {
            std::memcpy(highs_.data() + (step * width + lane) * kStepDims,
                        bytes_[lane] + step * 2 * kStepDims, kStepDims);
        }
    }
}

std::span<const PlaneKernel* const> all_plane_kernels() { return kAll; }

const PlaneKernel& plane_kernel_for(std::string_view simd) {
    bool allowed = simd == "avx512";
    for (const PlaneKernel* kernel : kAll) {
        allowed = allowed || kernel->name == simd;
        if (allowed && kernel->supported()) return *kernel;
    }
    return kBaseline;
}

}  // namespace gloved::kernels::cpu
