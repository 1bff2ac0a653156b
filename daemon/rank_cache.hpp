// RankCache: orders of rows that are kept, since word games ask for many ranks in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Keeps the rows that RANK orders by their scores against a vector, once ranks in that order were
/// asked for repeatedly: a further rank is then found by bisection. It belongs to an engine of a
/// running model; orders within lists are of one RowLists, so that after these are replaced the old
/// orders are not found. Not safe for concurrent use.
class RankCache {
  public:
    /// The eligible rows, best first.
    using Order = std::vector<kernels::Hit>;

    /// Keeps orders of up to `max_bytes` in all; the least recently used go first. 0: none.
    explicit RankCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    /// What ranks in one order have in common, for a CountBefore query: vector, filter and excluded
    /// rows.
    static std::string key_of(const kernels::Query& query);
    /// How many rows of the order come before `target`.
    static std::size_t count_before(const Order& order, const kernels::Hit& target);

    /// Whether an order of so many rows can be kept.
    bool has_room_for(const std::string& key, std::size_t rows) const {
        const std::size_t beside = key.size() + sizeof(Kept);
        return beside <= max_bytes_ && rows <= (max_bytes_ - beside) / kBytesOfRow;
    }
    /// The order with this key, or nullptr. Valid until `keep`.
    const Order* find(const std::string& key);
    /// Notes that a rank in an order that is not kept was asked for. True once that happened
    /// `enough` times lately; then the count begins again, so that an order which is soon dropped
    /// is not made for every rank.
    bool reaches(const std::string& key, unsigned enough);
    void keep(const std::string& key, Order order);
    /// Drops all orders.
    void clear();

    /// Memory of all orders.
    std::size_t bytes() const { return bytes_; }

  private:
    static constexpr std::size_t kBytesOfRow = sizeof(kernels::Hit);
    /// Orders whose requests are counted.
    static constexpr std::size_t kCounted = 256;

    struct Kept {
        std::string key;
        Order order;

        std::size_t bytes() const;
    };
    struct Requests {
        std::size_t key_hash = 0;
        unsigned count = 0;
    };

    std::size_t max_bytes_;
    std::size_t bytes_ = 0;
    std::list<Kept> kept_;  // the most recently used first
    std::unordered_map<std::string_view, std::list<Kept>::iterator> by_key_;
    std::vector<Requests> requests_;  // a ring, whose oldest is at `oldest_`
    std::size_t oldest_ = 0;
};

}  // namespace gloved::daemon
