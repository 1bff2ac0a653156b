// Plane loops for each instruction set (see kernels/simd.hpp).
#include "kernels/cpu/plane_scan.hpp"

#include <bit>
#include <cassert>
#include <cstring>
#include <iterator>

#include "common/format/planes.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/fine_plane.hpp"
#include "kernels/simd.hpp"

namespace gloved::kernels::cpu {
namespace {

using planes::kGroupRows;
using planes::kStepBytes;
using planes::kStepDims;

constexpr char kCodeMask = 0x0F;
/// A row's codes for a step lie in words of four bytes, as do the digits that meet them.
constexpr std::size_t kWordDigits = 4;

/// A row's residual lies so many bytes after its projection.
constexpr std::size_t kResidualsAfter = kGroupRows * sizeof(std::uint16_t);

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
        const auto row = static_cast<std::size_t>(__builtin_ctz(passing));
        PassedRow& one = passed[count++];
        one.row = first_row + static_cast<std::uint32_t>(row);
        one.query = query;
        one.sum = sums[row];
        __builtin_memcpy(&one.projection, bounds + 2 * row, sizeof one.projection);
        __builtin_memcpy(&one.residual, bounds + kResidualsAfter + 2 * row, sizeof one.residual);
    }
    return count;
}

}  // namespace

#ifdef __x86_64__

// ---- AVX-512 with VNNI: sixteen rows a vector, four byte products per instruction

GLOVED_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace avx512_vnni {
namespace {

constexpr std::size_t kRows = 16;
constexpr std::size_t kShortSteps = 0;
using Sums = std::int32_t __attribute__((vector_size(64)));
using Floats = __m512;

inline void load_codes(const std::byte* from, Sums (&codes)[2]) {
    const __m512i mask = _mm512_set1_epi8(kCodeMask);
    const __m512i packed = _mm512_loadu_si512(from);
    codes[0] = Sums(_mm512_and_si512(packed, mask));
    codes[1] = Sums(_mm512_and_si512(_mm512_srli_epi16(packed, 4), mask));
}

inline void load_codes(const std::byte* from, Sums (&codes)[1]) {
    codes[0] = Sums(_mm512_loadu_si512(from));
}

/// In assembly, because g++ 12 would copy each sum twice and broadcast the digits by an instruction
/// of their own.
inline void add_products(Sums& sums, Sums codes, const std::int8_t* digits) {
    using Word = const std::int32_t __attribute__((may_alias, aligned(1)));
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sums)
        : "v"(codes), "m"(*reinterpret_cast<Word*>(digits)));
}

inline Sums add_shorts(Sums sums, Sums shorts) { return sums + shorts; }

inline Floats load_floats(const std::byte* from) {
    // g++ 12 warns about its own header where these operations have no mask.
    constexpr __mmask16 kAll = 0xFFFF;
    const auto stored = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepu16_epi32(kAll, stored));
}

inline Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

inline unsigned not_below(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }

#include "kernels/cpu/plane_loops.inc"

}  // namespace
}  // namespace avx512_vnni
GLOVED_TARGET_END

// ---- AVX2: eight rows a vector, four byte products in two instructions

GLOVED_TARGET_BEGIN("avx2,fma")
namespace avx2 {
namespace {

constexpr std::size_t kRows = 8;
/// A step adds two sums of two products, and a product of a code and a high byte is at most 15 ·
/// 127. 4 · 2 · 2 · 15 · 127 = 30480 < 2¹⁵, so nothing saturates.
constexpr std::size_t kShortSteps = 4;
using Sums = std::int32_t __attribute__((vector_size(32)));
using Floats = __m256;

inline void load_codes(const std::byte* from, Sums (&codes)[2]) {
    const __m256i mask = _mm256_set1_epi8(kCodeMask);
    const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    codes[0] = Sums(_mm256_and_si256(packed, mask));
    codes[1] = Sums(_mm256_and_si256(_mm256_srli_epi16(packed, 4), mask));
}

inline void add_products(Sums& sums, Sums codes, const std::int8_t* digits) {
    std::int32_t word;
    __builtin_memcpy(&word, digits, sizeof word);
    const __m256i products = _mm256_maddubs_epi16(__m256i(codes), _mm256_set1_epi32(word));
    sums = Sums(_mm256_add_epi16(__m256i(sums), products));
}

inline Sums add_shorts(Sums sums, Sums shorts) {
    return sums + Sums(_mm256_madd_epi16(__m256i(shorts), _mm256_set1_epi16(1)));
}

inline Floats load_floats(const std::byte* from) {
    const auto stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(stored));
}

inline Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

inline unsigned not_below(Floats a, Floats b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ)));
}

#include "kernels/cpu/plane_loops.inc"

}  // namespace
}  // namespace avx2
GLOVED_TARGET_END

#elif defined(__aarch64__)

// ---- NEON with dot products: four rows a vector, four byte products per lane and instruction.
// Codes are at most 15, so they are signed bytes too.

GLOVED_TARGET_BEGIN("arch=armv8.2-a+dotprod")
namespace neon_dotprod {
namespace {

constexpr std::size_t kRows = 4;
constexpr std::size_t kShortSteps = 0;
using Sums = int32x4_t;
using Floats = float32x4_t;

inline void load_codes(const std::byte* from, Sums (&codes)[2]) {
    uint8x16_t packed;
    __builtin_memcpy(&packed, from, sizeof packed);
    codes[0] = vreinterpretq_s32_u8(vandq_u8(packed, vdupq_n_u8(kCodeMask)));
    codes[1] = vreinterpretq_s32_u8(vshrq_n_u8(packed, 4));
}

inline void add_products(Sums& sums, Sums codes, const std::int8_t* digits) {
    std::int32_t word;
    __builtin_memcpy(&word, digits, sizeof word);
    sums = vdotq_s32(sums, vreinterpretq_s8_s32(codes), vreinterpretq_s8_s32(vdupq_n_s32(word)));
}

inline Sums add_shorts(Sums sums, Sums shorts) { return sums + shorts; }

inline Floats load_floats(const std::byte* from) {
    uint16x4_t stored;
    __builtin_memcpy(&stored, from, sizeof stored);
    return vcvtq_f32_u32(vmovl_u16(stored));
}

inline Floats fused(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }

inline unsigned not_below(Floats a, Floats b) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vbicq_u32(bits, vcltq_f32(a, b)));
}

#include "kernels/cpu/plane_loops.inc"

}  // namespace
}  // namespace neon_dotprod
GLOVED_TARGET_END

#endif

namespace {

#ifdef __x86_64__
constexpr PlaneKernel kAvx512Vnni = {
    "avx512-vnni",
    has_avx512_vnni,
    {8,
     {avx512_vnni::filter_block<1, 1, 2>, avx512_vnni::filter_block<2, 2, 2>,
      avx512_vnni::filter_block<4, 2, 2>, avx512_vnni::filter_block<8, 2, 2>}},
    {16,
     {avx512_vnni::filter_block<1, 1, 1>, avx512_vnni::filter_block<2, 1, 1>,
      avx512_vnni::filter_block<4, 1, 1>, avx512_vnni::filter_block<8, 1, 1>,
      avx512_vnni::filter_block<16, 1, 1>}}};
constexpr PlaneKernel kAvx2 = {
    "avx2",
    has_avx2,
    {4, {avx2::filter_block<1, 2, 2>, avx2::filter_block<2, 2, 2>, avx2::filter_block<4, 1, 2>}},
    {}};
#elif defined(__aarch64__)
constexpr PlaneKernel kNeonDotprod = {
    "neon-dotprod",
    has_neon_dotprod,
    {4,
     {neon_dotprod::filter_block<1, 4, 2>, neon_dotprod::filter_block<2, 4, 2>,
      neon_dotprod::filter_block<4, 4, 2>}},
    {}};
#endif

/// The null ends a list that has nothing else on other architectures.
constexpr const PlaneKernel* kKernels[] = {
#ifdef __x86_64__
    &kAvx512Vnni, &kAvx2,
#elif defined(__aarch64__)
    &kNeonDotprod,
#endif
    nullptr};

}  // namespace

QueryBlock::QueryBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t step_dims)
    : width(std::bit_ceil(queries.size())), used(queries.size()) {
    assert(!queries.empty() && kStepDims % step_dims == 0);
    // PlaneQuery::bytes has steps of kStepDims: their high bytes, then their low bytes.
    const std::size_t steps = queries[0]->bytes.size() / (2 * step_dims);
    digits.assign(steps * width * step_dims, 0);
    for (std::size_t q = 0; q < used; ++q) {
        for (std::size_t step = 0; step < steps; ++step) {
            const std::size_t first = step * step_dims;
            std::memcpy(
                digits.data() + (step * width + q) * step_dims,
                queries[q]->bytes.data() + first / kStepDims * 2 * kStepDims + first % kStepDims,
                step_dims);
        }
    }
}

std::span<const PlaneKernel* const> all_plane_kernels() {
    return std::span(kKernels).first(std::size(kKernels) - 1);
}

const PlaneKernel* plane_kernel_for(std::string_view simd) {
    bool allowed = false;
    for (const PlaneKernel* kernel : all_plane_kernels()) {
        allowed = allowed || kernel->name.starts_with(simd);
        if (allowed && kernel->supported()) return kernel;
    }
    return nullptr;
}

}  // namespace gloved::kernels::cpu
