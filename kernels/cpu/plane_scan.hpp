// Inner loops of the cpu engine's passes over a plane, of 4-bit codes or of 7-bit ones, for each
// instruction set, chosen at run time. They compare the sum of each row's codes with queries'
// cutoffs. Sums are exact and the comparison is in float32 (docs/certified-search.md): all loops
// let nearly the same rows survive, and none rules out a row that may belong to an answer.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/plane.hpp"

namespace gloved::kernels::cpu {

/// A row that reached a query's cutoff, with the numbers for comparing it with a later cutoff.
struct PassedRow {
    std::uint32_t row = 0;    ///< from 0 at the first row of the call
    std::uint32_t query = 0;  ///< index in the block
    std::int32_t sum = 0;     ///< D′ = Σ a Q of codes a and the high bytes Q of digits
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;  ///< 0 exactly for rows that the plane does not cover (FORMAT.md)
};

/// A block of queries, compared with each row together.
struct QueryBlock {
    /// `queries` are at least one. `step_dims`: components of a step of the plane, at most
    /// kStepDims.
    QueryBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t step_dims);

    std::size_t width;  ///< the next power of two: number of queries, with padding ones at the end
    std::size_t used;   ///< number of queries
    /// High bytes of digits: (steps, width, dims of a step), 0 in padding.
    std::vector<std::int8_t> digits;
};

/// A cutoff that no row reaches.
inline constexpr planes::PlaneCutoff kNothingPasses = {0, 0, HUGE_VALF};

/// The loops over the codes of one plane.
struct PlaneLoop {
    /// Lists in `passed` the rows that reach a query's cutoff, for each query in ascending order,
    /// and returns their number. The rows are `groups` groups of `steps` steps (PlaneShape,
    /// FinePlane), from `bytes` on. `passed` has room for every row for every query.
    /// `digits`: the block's. `cutoffs`: (width), kNothingPasses in padding.
    /// Prefetches memory beyond the groups. Does not allocate; any thread.
    using Filter = std::size_t(const std::byte* bytes, std::size_t groups, std::size_t steps,
                               const std::int8_t* digits, const planes::PlaneCutoff* cutoffs,
                               PassedRow* passed);

    /// The largest width of a block: as many queries as registers hold. 0: there is no loop.
    std::size_t width = 0;
    /// filters[i] takes blocks of width 2^i: padding queries cost as much as others.
    Filter* filters[5] = {};

    Filter& filter(std::size_t width_of_block) const {
        return *filters[std::countr_zero(width_of_block)];
    }
};

/// The loops of one instruction set.
struct PlaneKernel {
    std::string_view name;
    /// Whether this processor and operating system can run them.
    bool (*supported)();
    PlaneLoop loop;       ///< on 4-bit codes
    PlaneLoop fine_loop;  ///< on 7-bit codes; width 0 where they would not be faster
};

/// All loops of this build, best first: «avx512-vnni» and «avx2» on x86-64, «neon-dotprod» on
/// aarch64. Other processors have none, and scan vectors instead.
std::span<const PlaneKernel* const> all_plane_kernels();

/// The best loop that this processor supports and that does not go beyond the instruction set
/// `simd`, one of simd_names(); null if there is none.
const PlaneKernel* plane_kernel_for(std::string_view simd);

}  // namespace gloved::kernels::cpu
