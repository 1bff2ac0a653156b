#include "kernels/row_lists.hpp"

#include <bit>
#include <cassert>
#include <utility>

namespace gloved::kernels {

RowLists::RowLists(std::size_t rows, std::vector<std::vector<format::Row>> lists) {
    assert(lists.size() <= kMaxLists);
    if (lists.empty()) return;
    memberships_.resize(rows);
    for (std::size_t list = 0; list < lists.size(); ++list) {
        for (const format::Row row : lists[list]) memberships_[row] |= ListMask{1} << list;
        counts_.push_back(lists[list].size());
        if (lists[list].size() > kMaxShortList) lists[list] = {};
    }
    short_lists_ = std::move(lists);
}

std::size_t RowLists::shortest(ListMask lists) const {
    assert(lists != 0);
    auto shortest = static_cast<std::size_t>(std::countr_zero(lists));
    for (ListMask left = lists & (lists - 1); left != 0; left &= left - 1) {
        const auto list = static_cast<std::size_t>(std::countr_zero(left));
        if (counts_[list] < counts_[shortest]) shortest = list;
    }
    return shortest;
}

}  // namespace gloved::kernels
