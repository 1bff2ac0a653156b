// Inner loops that compare a plane's rows with cutoffs, one set per instruction set, chosen at run
// time. Sums are exact and the comparison is in float32 (docs/certified-search.md): all sets pass
// nearly the same rows, and none drops a row that may belong to an answer.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/planes/plane.hpp"

namespace gloved::kernels::cpu {

/// A row that reached a query's cutoff, with what a comparison with a later cutoff needs.
struct PassedRow {
    std::uint32_t row = 0;    ///< counted from the first row of the call
    std::uint32_t query = 0;  ///< index in the block
    std::int32_t sum = 0;     ///< Σ a Q, all of Q
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;  ///< 0 exactly for rows that the plane does not cover (FORMAT.md)
};

/// Queries that are compared with each row together, as the loops see them. The first comparison
/// uses the digits' high bytes alone, half the work; rows that pass it meet whole digits.
struct QueryBlockView {
    std::size_t width = 0;                      ///< queries, including the padding ones at the end
    std::size_t used = 0;                       ///< queries, without padding
    const std::int8_t* high_bytes = nullptr;    ///< (steps, width, 8), 0 in padding
    const std::int8_t* const* bytes = nullptr;  ///< (used), each as PlaneQuery has it
    const std::int16_t* const* digits = nullptr;          ///< likewise
    const planes::PlaneCutoff* coarse_cutoffs = nullptr;  ///< (width), kNothingPasses in padding
    const planes::PlaneCutoff* cutoffs = nullptr;         ///< likewise
};

/// Owns what a QueryBlockView points to, except the cutoffs: each thread has its own.
class QueryBlock {
  public:
    /// At least one query and at most `width`. The queries must outlive the block.
    QueryBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t width);

    std::size_t width() const { return width_; }
    std::size_t used() const { return bytes_.size(); }
    /// `coarse_cutoffs` and `cutoffs`: (width) each.
    QueryBlockView view(const planes::PlaneCutoff* coarse_cutoffs,
                        const planes::PlaneCutoff* cutoffs) const {
        return {width_,         used(), high_bytes_.data(), bytes_.data(), digits_.data(),
                coarse_cutoffs, cutoffs};
    }

  private:
    std::size_t width_;
    std::vector<std::int8_t> high_bytes_;
    std::vector<const std::int8_t*> bytes_;
    std::vector<const std::int16_t*> digits_;
};

/// A cutoff that no row reaches.
inline constexpr planes::PlaneCutoff kNothingPasses = {0, 0, HUGE_VALF};

struct PlaneKernel {
    std::string_view name;
    /// Whether this processor and operating system can run it.
    bool (*supported)();
    /// Block width that `filter` takes besides 1: as many queries as registers hold.
    std::size_t width;
    /// Whether `coarse_cutoffs` are compared first. If not, `cutoffs` alone decide.
    bool high_bytes_first;
    /// Lists the rows of `groups` groups, from `bytes` on, that may reach a query's cutoff; the
    /// rows of each query ascend. Returns their number. `passed` has room for every row in every
    /// query. `block.width` is 1 or `width`. Prefetches beyond the groups. Does not allocate; any
    /// thread.
    std::size_t (*filter)(const std::byte* bytes, std::size_t groups, std::size_t steps,
                          const QueryBlockView& block, PassedRow* passed);
};

/// All of this build, best first: «avx512-vnni», «avx2», «baseline». The last runs on every x86-64.
std::span<const PlaneKernel* const> all_plane_kernels();

/// The best kernel that this processor supports and that an engine of instruction set `simd`
/// («avx512», «avx2», «baseline») may use.
const PlaneKernel& plane_kernel_for(std::string_view simd);

}  // namespace gloved::kernels::cpu
