// FairQueue: a queue that takes entries from its sources in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gloved::daemon {

/// A queue of T with one lane, a queue of its own, per source (a connection, say). `pop` takes one
/// entry from each lane in turn. So a source with ten thousand entries delays the only entry of
/// another by one entry. Not safe for concurrent use.
template <class T>
class FairQueue {
  public:
    /// Adds an entry at the end of the lane of `source`. `urgent`: if the lane was empty, its turn
    /// is next.
    void push(std::uint64_t source, T value, bool urgent = false) {
        auto& lane = lanes_[source];
        if (lane.empty()) turns_.insert(urgent ? turns_.begin() : turns_.end(), source);
        lane.push_back(std::move(value));
        ++size_;
    }

    /// Removes the next entry; nullopt if the queue is empty.
    std::optional<T> pop() {
        if (size_ == 0) return std::nullopt;
        const auto lane = lanes_.find(turns_.front());
        std::optional<T> value(std::move(lane->second.front()));
        --size_;
        lane->second.pop_front();
        if (lane->second.empty()) {
            lanes_.erase(lane);
            turns_.pop_front();
        } else {
            turns_.splice(turns_.end(), turns_, turns_.begin());
        }
        return value;
    }

    /// Number of entries.
    std::size_t size() const { return size_; }

  private:
    std::unordered_map<std::uint64_t, std::deque<T>> lanes_;
    std::list<std::uint64_t> turns_;  // sources whose lanes are not empty, next first
    std::size_t size_ = 0;
};

}  // namespace gloved::daemon
