// Eligible: tells which rows may be in the answer to a query, for the cpu engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/engine.hpp"

namespace gloved::kernels::cpu {

/// Tests a row against the query's limit on ranks and its excluded rows. The other conditions are
/// applied elsewhere: a pass reads only the query's row range, and its threshold starts at
/// min_score.
class Eligible {
  public:
    explicit Eligible(const Query& query)
        : rank_below_(query.filter.rank_below), excluded_(query.excluded) {
        std::ranges::sort(excluded_);
    }
    /// Whether `row` is eligible. `ranks` are those of all rows; read only if the query limits
    /// ranks.
    bool operator()(Row row, std::span<const std::uint32_t> ranks) const {
        if (rank_below_ != std::numeric_limits<std::uint32_t>::max() && ranks[row] >= rank_below_)
            return false;
        return !std::ranges::binary_search(excluded_, row);
    }

  private:
    std::uint32_t rank_below_;
    std::vector<Row> excluded_;
};

}  // namespace gloved::kernels::cpu
