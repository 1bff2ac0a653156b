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
        Lane& lane = lanes_[source];
        if (lane.entries.empty()) {
            lane.source = source;
            turns_.insert(urgent ? turns_.begin() : turns_.end(), &lane);
        }
        lane.entries.push_back(std::move(value));
        if (lane.entries.size() == 1) ++single_lanes_;
        if (lane.entries.size() == 2) --single_lanes_;
        ++size_;
    }

    /// Removes the next entry; nullopt if the queue is empty.
    std::optional<T> pop() {
        if (size_ == 0) return std::nullopt;
        Lane& lane = *turns_.front();
        std::optional<T> value(std::move(lane.entries.front()));
        --size_;
        lane.entries.pop_front();
        if (lane.entries.empty()) {
            --single_lanes_;
            turns_.pop_front();
            lanes_.erase(lane.source);
        } else {
            if (lane.entries.size() == 1) ++single_lanes_;
            turns_.splice(turns_.end(), turns_, turns_.begin());
        }
        return value;
    }

    /// Number of entries.
    std::size_t size() const { return size_; }
    /// Whether some sources have one entry and others several.
    bool is_mixed() const { return single_lanes_ > 0 && single_lanes_ < lanes_.size(); }

  private:
    struct Lane {
        std::uint64_t source = 0;
        std::deque<T> entries;
    };

    std::unordered_map<std::uint64_t, Lane> lanes_;  // none is empty
    std::list<Lane*> turns_;                         // next first
    std::size_t size_ = 0;
    std::size_t single_lanes_ = 0;  // with one entry
};

}  // namespace gloved::daemon
