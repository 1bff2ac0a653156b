// The code of a row, chosen and summed up: the inner loops of building a plane, once per
// instruction set.
//
// The sections (§) are those of docs/certified-search.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gloved::kernels::planes {

/// Rows are coded this many components at a time; every sum has as many lanes.
inline constexpr std::size_t kCodeLanes = 16;

/// The largest component of a row, times one of these, is where its codes end (§2). The best is
/// found by trying: real rows want most of their components fine and a few cut off, rows of one
/// large component want it whole.
inline constexpr std::size_t kClips = 8;
/// Not std::array: its operator[] would be a header's function between target pragmas.
inline constexpr float kClipWidths[kClips] = {0.45F, 0.55F, 0.63F, 0.70F,
                                              0.77F, 0.84F, 0.92F, 1.0F};

/// What a row and its levels 2 a − 15 sum up to.
struct CodeSums {
    double product = 0;  ///< Σ x c: each product exact in float64, the sum rounded in an order that
                         ///< is always the same
    double square = 0;  ///< Σ c², exact
};

/// One instruction set's loop. All give the same codes and the same bits of the sums: components
/// are 16 lanes apart in every sum, lanes are added in one order, and nothing is fused.
struct EncodeKernel {
    const char* name;
    bool (*supported)();
    /// Of the row, shape (dim), the code that has the smallest angle to it among those of
    /// kClipWidths. `codes` has room for dim rounded up to kCodeLanes; what lies behind dim becomes
    /// 0. A component that is NaN gets the code 0.
    CodeSums (*encode)(const float* row, std::size_t dim, std::uint8_t* codes);
};

/// Best first; the last one runs everywhere.
std::span<const EncodeKernel* const> all_encode_kernels();

/// The first that this processor supports.
const EncodeKernel& best_encode_kernel();

}  // namespace gloved::kernels::planes
