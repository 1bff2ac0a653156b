// RowLists: the lists of rows that the filters of queries may name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/format/model.hpp"

namespace gloved::kernels {

/// A set of lists: bit i stands for list i.
using ListMask = std::uint64_t;

/// Maximum number of lists.
inline constexpr std::size_t kMaxLists = 64;
/// A list with more rows is long: its rows are kept in no other form than the memberships.
inline constexpr std::size_t kMaxShortList = std::size_t{1} << 16;

/// Up to kMaxLists lists of rows of one model. Takes 8 bytes for each row of the model, however
/// many lists there are and however long they are, and 4 bytes for each row of a short list.
/// Once complete, any threads may read it.
class RowLists {
  public:
    /// No lists, and none can be added.
    RowLists() : RowLists(0) {}
    /// No lists yet, for a model of `rows` rows.
    explicit RowLists(std::size_t rows);
    /// These lists, each as for `add`.
    RowLists(std::size_t rows, std::vector<std::vector<format::Row>> lists);
    /// Adds a list, which may be empty: rows in ascending order, without repetition.
    void add(std::vector<format::Row> list);

    RowLists(const RowLists&) = delete;
    RowLists& operator=(const RowLists&) = delete;

    /// A number that no other RowLists of the process has, also later at the same address.
    std::uint64_t serial() const { return serial_; }
    std::size_t size() const { return counts_.size(); }
    /// (rows) the lists that each row of the model is in; empty if there are no lists.
    std::span<const ListMask> memberships() const { return memberships_; }
    /// The number of rows of a list.
    std::size_t count(std::size_t list) const { return counts_[list]; }
    /// The rows of a list, in ascending order; none for a long list.
    std::span<const format::Row> short_list(std::size_t list) const { return short_lists_[list]; }
    /// The list of `lists` that has the fewest rows. `lists` is not empty.
    std::size_t shortest(ListMask lists) const;
    /// Memory of all lists.
    std::size_t bytes() const;

  private:
    const std::uint64_t serial_;
    const std::size_t rows_;
    std::vector<ListMask> memberships_;
    std::vector<std::size_t> counts_;
    std::vector<std::vector<format::Row>> short_lists_;
};

inline std::shared_ptr<const RowLists> no_lists() { return std::make_shared<const RowLists>(); }

}  // namespace gloved::kernels
