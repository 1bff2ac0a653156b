// Inner loops that encode a row for a plane, one per instruction set.
//
// § numbers refer to docs/certified-search.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gloved::kernels::planes {

/// Components encoded at a time; every sum has as many lanes.
inline constexpr std::size_t kCodeLanes = 16;

/// Clip widths: a row's codes end at its largest component times one of these (§2). All are tried
/// and the best is kept. Real rows are encoded best with fine levels and a few components clipped;
/// rows with one large component, with that unclipped.
inline constexpr std::size_t kClips = 8;
/// Not std::array: its operator[] would be an inline function between target pragmas.
inline constexpr float kClipWidths[kClips] = {0.45F, 0.55F, 0.63F, 0.70F,
                                              0.77F, 0.84F, 0.92F, 1.0F};

/// Sums over a row and its levels c = 2 a − 15.
struct CodeSums {
    double product = 0;  ///< Σ x c: each product exact in float64, the sum rounded in an order that
                         ///< is always the same
    double square = 0;  ///< Σ c², exact
};

/// The loop of one instruction set. All give the same codes and the same bits of the sums: each sum
/// has 16 lanes, lanes are added in one order, and nothing is fused.
struct EncodeKernel {
    const char* name;
    bool (*supported)();
    /// Encodes `row`, shape (dim), with the clip width of kClipWidths that gives the smallest angle
    /// between row and code. `codes` has room for dim rounded up to kCodeLanes; the padding becomes
    /// 0. A NaN component gets the code 0.
    CodeSums (*encode)(const float* row, std::size_t dim, std::uint8_t* codes);
};

/// All of this build, best first; the last one runs everywhere.
std::span<const EncodeKernel* const> all_encode_kernels();

/// The best that this processor supports.
const EncodeKernel& best_encode_kernel();

}  // namespace gloved::kernels::planes
