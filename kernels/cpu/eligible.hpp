// Eligible: tells which rows may be in the answer to a query, for the cpu engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::kernels::cpu {

/// Tests a row against the query's limit on ranks, its lists and its excluded rows. The other
/// conditions are applied elsewhere: a pass reads only the query's row range, and its threshold
/// starts at min_score.
class Eligible {
  public:
    /// `query` and `model` must outlive it. `passed`: only rows that meet the filter are tested.
    Eligible(const Query& query, const format::Model& model, bool passed = false)
        : filter_(query.filter), excluded_(query.excluded) {
        std::ranges::sort(excluded_);
        excluded_.erase(std::unique(excluded_.begin(), excluded_.end()), excluded_.end());
        if (passed) return;
        if (filter_.rank_below != std::numeric_limits<std::uint32_t>::max()) ranks_ = model.ranks();
        if (filter_.names_lists()) memberships_ = filter_.lists->memberships();
    }
    /// Whether every row passes but the excluded ones.
    bool takes_all_others() const { return ranks_.empty() && memberships_.empty(); }
    /// The excluded rows, in ascending order.
    std::span<const Row> excluded() const { return excluded_; }
    bool operator()(Row row) const {
        if (!ranks_.empty() && ranks_[row] >= filter_.rank_below) return false;
        if (!memberships_.empty() && !filter_.takes_lists(memberships_[row])) return false;
        return !std::ranges::binary_search(excluded_, row);
    }

  private:
    const Filter& filter_;
    std::span<const std::uint32_t> ranks_;   // empty if the query does not limit ranks
    std::span<const ListMask> memberships_;  // empty if it names no list
    std::vector<Row> excluded_;
};

}  // namespace gloved::kernels::cpu
