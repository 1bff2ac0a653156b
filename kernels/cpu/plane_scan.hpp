// The loops that hold a plane's rows against a cutoff, one set for each instruction set, chosen at
// run time. What they compute is exact but for a last comparison in float32
// (docs/certified-search.md), so that all of them let nearly the same rows through, and none that
// may belong to an answer is lost.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/planes/plane.hpp"

namespace gloved::kernels::cpu {

/// A row that a plane lets through, with what it takes to hold it against a later cutoff.
struct Passed {
    std::uint32_t row = 0;   ///< counted from the first row of the call
    std::uint32_t lane = 0;  ///< of the block
    std::int32_t sum = 0;    ///< Σ a Q, all of Q
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;  ///< 0 for rows of which the plane says nothing, for no others
                                 ///< (shape.hpp)
};

/// Directions that meet a plane's rows together, in lanes, as the loops see them. The first
/// comparison is of the digits' highs, half the work; rows that pass it meet the second, of whole
/// digits.
struct LaneView {
    std::size_t width = 0;               ///< lanes, those that only fill the block among them
    std::size_t used = 0;                ///< the lanes that do not
    const std::int8_t* highs = nullptr;  ///< (steps, width, 8), 0 in lanes that fill
    const std::int8_t* const* bytes = nullptr;            ///< (used), each as PlaneQuery has it
    const std::int16_t* const* digits = nullptr;          ///< likewise
    const planes::PlaneCutoff* coarse_cutoffs = nullptr;  ///< (width); nothing passes those of
                                                          ///< lanes that fill
    const planes::PlaneCutoff* cutoffs = nullptr;  ///< likewise
};

/// What a LaneView looks at, but for the cutoffs, of which each thread has its own.
class LaneBlock {
  public:
    /// At least one query and at most `width`. The queries must outlive it.
    LaneBlock(std::span<const planes::PlaneQuery* const> queries, std::size_t width);

    std::size_t width() const { return width_; }
    std::size_t used() const { return bytes_.size(); }
    /// `coarse_cutoffs` and `cutoffs`: (width) each.
    LaneView view(const planes::PlaneCutoff* coarse_cutoffs,
                  const planes::PlaneCutoff* cutoffs) const {
        return {width_,         used(),         highs_.data(), bytes_.data(),
                digits_.data(), coarse_cutoffs, cutoffs};
    }

  private:
    std::size_t width_;
    std::vector<std::int8_t> highs_;
    std::vector<const std::int8_t*> bytes_;
    std::vector<const std::int16_t*> digits_;
};

/// A cutoff that no row reaches.
inline constexpr planes::PlaneCutoff kNothingPasses = {0, 0, HUGE_VALF};

struct PlaneKernel {
    std::string_view name;
    /// Whether this processor and operating system can run it.
    bool (*supported)();
    /// How many lanes `sift` takes beside 1: as many as registers hold.
    std::size_t width;
    /// Whether highs come first. If not, the cutoffs of whole digits alone decide.
    bool highs_first;
    /// Lists what of `groups` groups from `bytes` on may reach the cutoff of a lane, rows of one
    /// lane ascending; returns how many. `passed` has room for all rows in all lanes. `block.width`
    /// is 1 or `width`. Asks for memory that lies behind the groups ahead of its use. Does not
    /// allocate; any thread.
    std::size_t (*sift)(const std::byte* bytes, std::size_t groups, std::size_t steps,
                        const LaneView& block, Passed* passed);
};

/// All of this build, best first: «avx512-vnni», «avx2», «baseline». The last one runs on every
/// x86-64.
std::span<const PlaneKernel* const> all_plane_kernels();

/// The best that this processor has among those an engine of instruction set `simd` («avx512»,
/// «avx2», «baseline») may use.
const PlaneKernel& plane_kernel_for(std::string_view simd);

}  // namespace gloved::kernels::cpu
