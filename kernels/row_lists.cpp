#include "kernels/row_lists.hpp"

#include <atomic>
#include <bit>
#include <cassert>
#include <utility>

namespace gloved::kernels {

namespace {

std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

}  // namespace

RowLists::RowLists(std::size_t rows) : serial_(next_serial()), rows_(rows) {}

RowLists::RowLists(std::size_t rows, std::vector<std::vector<format::Row>> lists) : RowLists(rows) {
    for (std::vector<format::Row>& list : lists) add(std::move(list));
}

void RowLists::add(std::vector<format::Row> list) {
    assert(size() < kMaxLists);
    memberships_.resize(rows_);
    const ListMask mask = ListMask{1} << size();
    for (const format::Row row : list) memberships_[row] |= mask;
    counts_.push_back(list.size());
    short_lists_.push_back(list.size() <= kMaxShortList ? std::move(list)
                                                        : std::vector<format::Row>());
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

std::size_t RowLists::bytes() const {
    std::size_t bytes = memberships_.capacity() * sizeof(ListMask);
    for (const auto& list : short_lists_) bytes += list.capacity() * sizeof(format::Row);
    return bytes;
}

}  // namespace gloved::kernels
