#include "common/format/ranks.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"

namespace gloved::format {

Result<std::vector<Row>> rows_by_rank(const Model& model, RankFault* fault) {
    constexpr auto kFree = std::numeric_limits<Row>::max();
    std::vector<Row> by_rank(model.rows(), kFree);
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const std::uint32_t rank = model.ranks()[row];
        const bool is_rank = rank < by_rank.size();
        if (is_rank && by_rank[rank] == kFree) {
            by_rank[rank] = static_cast<Row>(row);
            continue;
        }
        if (fault != nullptr) {
            fault->row = static_cast<Row>(row);
            if (is_rank) fault->same = by_rank[rank];
        }
        return error_with(
            ErrorCode::damaged,
            "{}/{}: the ranks are not a permutation (row {} has {}); gloved-verify tells more",
            model.path(), kValuesFile, row, rank);
    }
    return by_rank;
}

}  // namespace gloved::format
