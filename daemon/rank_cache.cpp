#include "daemon/rank_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

namespace gloved::daemon {
namespace {

template <class Value>
void append(std::string& key, const Value* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<Value>);
    key.append(reinterpret_cast<const char*>(values), count * sizeof(Value));
}

}  // namespace

std::string RankCache::key_of(const kernels::Query& query) {
    const kernels::Filter& filter = query.filter;
    const kernels::QueryVector& vector = std::get<kernels::CountBefore>(query.kind).vector;
    const bool has_rows = filter.rows.has_value();
    const auto rows = filter.rows.value_or(kernels::RowRange{});
    std::string key;
    append(key, &filter.rank_below, 1);
    append(key, &has_rows, 1);
    append(key, &rows.first, 1);
    append(key, &rows.last, 1);
    append(key, &filter.min_score, 1);
    const std::uint64_t lists = filter.names_lists() ? filter.lists->serial() : 0;
    append(key, &lists, 1);
    append(key, &filter.within, 1);
    append(key, &filter.without, 1);
    const std::size_t excluded = query.excluded.size();
    append(key, &excluded, 1);
    append(key, query.excluded.data(), excluded);
    append(key, vector.values.data(), vector.values.size());
    return key;
}

std::size_t RankCache::count_before(const Order& order, const kernels::Hit& target) {
    const auto found = std::ranges::lower_bound(order, target, kernels::comes_before);
    return static_cast<std::size_t>(found - order.begin());
}

std::size_t RankCache::Kept::bytes() const {
    return order.capacity() * kBytesOfRow + key.capacity() + sizeof(Kept);
}

const RankCache::Order* RankCache::find(const std::string& key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found->second);
    return &found->second->order;
}

bool RankCache::reaches(const std::string& key, unsigned enough) {
    // Two keys with one hash only make an order a little early.
    const std::size_t hash = std::hash<std::string>()(key);
    auto found = std::ranges::find(requests_, hash, &Requests::key_hash);
    if (found == requests_.end()) {
        if (requests_.size() < kCounted) {
            found = requests_.insert(found, {hash, 0});
        } else {
            found = requests_.begin() + static_cast<std::ptrdiff_t>(oldest_);
            oldest_ = (oldest_ + 1) % kCounted;
            *found = {hash, 0};
        }
    }
    if (++found->count < enough) return false;
    found->count = 0;
    return true;
}

void RankCache::clear() {
    by_key_.clear();
    kept_.clear();
    bytes_ = 0;
}

void RankCache::keep(const std::string& key, Order order) {
    if (!has_room_for(key, order.size()) || by_key_.contains(key)) return;
    order.shrink_to_fit();
    kept_.push_front({key, std::move(order)});
    by_key_.emplace(kept_.front().key, kept_.begin());
    bytes_ += kept_.front().bytes();
    while (bytes_ > max_bytes_) {
        bytes_ -= kept_.back().bytes();
        by_key_.erase(kept_.back().key);
        kept_.pop_back();
    }
}

}  // namespace gloved::daemon
