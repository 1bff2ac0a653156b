// The inner loop that encodes a row for a plane, one per instruction set, chosen at run time.
//
// § numbers refer to docs/certified-search.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gloved::kernels::planes {

/// Components encoded at a time; every sum has as many lanes.
inline constexpr std::size_t kCodeLanes = 16;

/// Clip widths: the largest level of a row's codes stands for its largest component times one of
/// these (§2), and larger components are clipped to that level. All are tried for every row, and
/// the best is kept. Most real rows are best with fine levels and a few components clipped; rows
/// with one large component are best without clipping.
inline constexpr std::size_t kClips = 8;
/// Not std::array: its operator[] would be an inline function between target pragmas.
inline constexpr float kClipWidths[kClips] = {0.45F, 0.55F, 0.63F, 0.70F,
                                              0.77F, 0.84F, 0.92F, 1.0F};

/// Sums over the components x of a row and their levels c = 2 a − 15, where a is the code.
struct CodeSums {
    double product = 0;  ///< Σ x c: each product exact in float64, the sum rounded in an order that
                         ///< is always the same
    double square = 0;  ///< Σ c², exact
};

/// The loop of one instruction set. All loops give the same codes and the same bits of the sums:
/// each sum has 16 lanes, lanes are added in a fixed order, and no operation is fused.
struct EncodeKernel {
    const char* name;
    bool (*supported)();
    /// Encodes `row`, shape (dim), with the clip width that gives the smallest angle between the
    /// row and its levels. Writes the codes to `codes`, which has room for dim rounded up to
    /// kCodeLanes, and 0 to the padding. The code of a NaN component is 0.
    CodeSums (*encode)(const float* row, std::size_t dim, std::uint8_t* codes);
};

/// The loops of this build, best first; the last one runs everywhere.
std::span<const EncodeKernel* const> all_encode_kernels();

/// The best loop that this processor supports.
const EncodeKernel& best_encode_kernel();

}  // namespace gloved::kernels::planes
