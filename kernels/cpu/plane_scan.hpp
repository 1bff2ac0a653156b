// Inner loops of the cpu engine's passes over a plane, of 4-bit codes or of 7-bit ones, for each
// instruction set, chosen at run time. They compare the sum of each row's codes with queries'
// cutoffs. Sums are exact and the comparison is in float32 (docs/certified-search.md): all loops
// let nearly the same rows survive, and none rules out a row that may belong to an answer.
#pragma once

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
    std::int32_t sum = 0;     ///< Σ a Q of codes a and digits Q
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;  ///< 0 exactly for rows that the plane does not cover (FORMAT.md)
};

/// A block of queries, compared with each row together, as the loops see it. On 4-bit codes, the
/// first comparison uses only the high bytes of digits, which is half the work; rows that reach its
/// coarse cutoff are compared with whole digits. On 7-bit codes, the high bytes are the digits.
struct QueryBlockView {
    std::size_t width = 0;  ///< a power of two: number of queries, with padding ones at the end
    const std::int8_t* high_bytes = nullptr;    ///< (steps, width, dims of a step), 0 in padding
    const std::int8_t* const* bytes = nullptr;  ///< without padding: each PlaneQuery::bytes
    const planes::PlaneCutoff* coarse_cutoffs = nullptr;  ///< (width), kNothingPasses in padding
    const planes::PlaneCutoff* cutoffs = nullptr;  ///< (width); 4-bit codes: for whole digits
};

/// Owns what a QueryBlockView points to, except the cutoffs, of which each thread has its own.
class QueryBlock {
  public:
    /// `queries` are at least one, and must outlive the block. The width is the next power of two.
    /// `step_dims`: components of a step of the plane, at most kStepDims.
    QueryBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t step_dims);

    std::size_t width() const { return width_; }
    std::size_t used() const { return bytes_.size(); }
    /// `coarse_cutoffs` and `cutoffs`: (width) each.
    QueryBlockView view(const planes::PlaneCutoff* coarse_cutoffs,
                        const planes::PlaneCutoff* cutoffs) const {
        return {width_, high_bytes_.data(), bytes_.data(), coarse_cutoffs, cutoffs};
    }

  private:
    std::size_t width_;
    std::vector<std::int8_t> high_bytes_;
    std::vector<const std::int8_t*> bytes_;
};

/// A cutoff that no row reaches.
inline constexpr planes::PlaneCutoff kNothingPasses = {0, 0, HUGE_VALF};

/// The loop over the codes of one plane.
struct PlaneLoop {
    /// The largest width of a block that `filter` accepts: as many queries as registers hold. It
    /// also accepts smaller powers of two, since padding queries cost as much as others.
    std::size_t width;
    /// Lists in `passed` the rows that reach a query's cutoff, for each query in ascending order,
    /// and returns their number. The rows are `groups` groups of `steps` steps (PlaneShape,
    /// FinePlane), from `bytes` on. `passed` has room for every row for every query.
    /// Prefetches memory beyond the groups. Does not allocate; any thread.
    std::size_t (*filter)(const std::byte* bytes, std::size_t groups, std::size_t steps,
                          const QueryBlockView& block, PassedRow* passed);
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
/// `simd`, one of simd_names().
const PlaneKernel& plane_kernel_for(std::string_view simd);

}  // namespace gloved::kernels::cpu
