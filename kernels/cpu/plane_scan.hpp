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
    std::int32_t sum = 0;     ///< D′ = Σ a Q of codes a and digits Q
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;  ///< 0 exactly for rows that the plane does not cover (FORMAT.md)
};

/// A block of queries, compared with each row together, as the loops see it. The first comparison
/// uses the high bytes of digits, which is half the work. On 7-bit codes there is no other; on
/// 4-bit codes, rows that reach the cutoff are compared with whole digits.
struct QueryBlockView {
    std::size_t width = 0;  ///< a power of two: number of queries, with padding ones at the end
    const std::int8_t* digits = nullptr;           ///< high bytes: (steps, width, dims of a step)
    const std::int8_t* const* bytes = nullptr;     ///< without padding: each PlaneQuery::bytes
    const planes::PlaneCutoff* cutoffs = nullptr;  ///< (width), kNothingPasses in padding
    const planes::PlaneCutoff* whole_cutoffs = nullptr;  ///< (width), for whole digits
};

/// Owns what a QueryBlockView points to, except the cutoffs, of which each thread has its own.
class QueryBlock {
  public:
    /// `queries` are at least one, and must outlive the block. The width is the next power of two.
    /// `step_dims`: components of a step of the plane, at most kStepDims.
    QueryBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t step_dims);

    std::size_t width() const { return width_; }
    std::size_t used() const { return bytes_.size(); }
    /// `cutoffs` and `whole_cutoffs`: (width) each.
    QueryBlockView view(const planes::PlaneCutoff* cutoffs,
                        const planes::PlaneCutoff* whole_cutoffs) const {
        return {width_, digits_.data(), bytes_.data(), cutoffs, whole_cutoffs};
    }

  private:
    std::size_t width_;
    std::vector<std::int8_t> digits_;
    std::vector<const std::int8_t*> bytes_;
};

/// A cutoff that no row reaches.
inline constexpr planes::PlaneCutoff kNothingPasses = {0, 0, HUGE_VALF};

/// The loops over the codes of one plane.
struct PlaneLoop {
    /// Lists in `passed` the rows that reach a query's cutoff, for each query in ascending order,
    /// and returns their number. The rows are `groups` groups of `steps` steps (PlaneShape,
    /// FinePlane), from `bytes` on. `passed` has room for every row for every query.
    /// Prefetches memory beyond the groups. Does not allocate; any thread.
    using Filter = std::size_t(const std::byte* bytes, std::size_t groups, std::size_t steps,
                               const QueryBlockView& block, PassedRow* passed);

    /// The largest width of a block: as many queries as registers hold. 0: there is no loop.
    std::size_t width = 0;
    /// filters[i] takes blocks of width 2^i: padding queries cost as much as others.
    Filter* filters[5] = {};

    Filter& filter(const QueryBlockView& block) const {
        return *filters[std::countr_zero(block.width)];
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
/// aarch64, then «baseline», which runs everywhere.
std::span<const PlaneKernel* const> all_plane_kernels();

/// The best loop that this processor supports and that does not go beyond the instruction set
/// `simd`, one of simd_names(); null if there is none.
const PlaneKernel* plane_kernel_for(std::string_view simd);

}  // namespace gloved::kernels::cpu
