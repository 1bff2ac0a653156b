// FairQueue: a bounded queue between threads that takes entries from its sources in turn.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gloved::daemon {

/// A bounded queue of T with one lane, a queue of its own, per source (a connection, say). `pop`
/// takes one entry from each lane in turn. So a source with ten thousand entries delays the only
/// entry of another by one entry. When the queue is full, a source with an empty lane may still add
/// one entry: nobody can lock others out. Any thread may call all functions.
template <class T>
class FairQueue {
  public:
    /// The queue is full at `max_entries` entries, or if the `bytes` given to `push` add up to more
    /// than `max_bytes`.
    FairQueue(std::size_t max_entries, std::size_t max_bytes)
        : max_entries_(max_entries), max_bytes_(max_bytes) {}

    /// Adds an entry of `bytes` at the end of the lane of `source`. If the queue is closed, or full
    /// and the lane not empty, returns false and leaves `value` unchanged; `ignores_limits`: as if
    /// the queue were never full. `urgent`: if the lane was empty, its turn is next.
    bool push(std::uint64_t source, T&& value, std::size_t bytes = 0, bool ignores_limits = false,
              bool urgent = false) {
        {
            const std::lock_guard lock(mutex_);
            if (closed_) return false;
            auto& lane = lanes_[source];
            const bool full = size_ >= max_entries_ || bytes_ + bytes > max_bytes_;
            if (full && !lane.empty() && !ignores_limits) return false;
            if (lane.empty()) turns_.insert(urgent ? turns_.begin() : turns_.end(), source);
            lane.push_back({std::move(value), bytes});
            ++size_;
            waiting_.store(size_, std::memory_order_relaxed);
            bytes_ += bytes;
        }
        filled_.notify_one();
        return true;
    }

    /// Waits for an entry and removes it; nullopt once the queue is closed and empty. Polls for
    /// `spin` before it sleeps, since waking a thread takes longer than some engines need for a
    /// query.
    std::optional<T> pop(std::chrono::microseconds spin = {}) {
        for (const auto until = std::chrono::steady_clock::now() + spin;
             spin.count() > 0 && waiting_.load(std::memory_order_relaxed) == 0 &&
             std::chrono::steady_clock::now() < until;) {
        }
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [this] { return closed_ || size_ > 0; });
        return take();
    }

    /// Removes an entry without waiting; nullopt if the queue is empty.
    std::optional<T> try_pop() {
        const std::lock_guard lock(mutex_);
        return take();
    }

    /// Refuses further entries. Entries in the queue can still be popped.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        filled_.notify_all();
    }

    /// Number of entries.
    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return size_;
    }

  private:
    struct Entry {
        T value;
        std::size_t bytes;
    };

    std::optional<T> take() {
        if (size_ == 0) return std::nullopt;
        const auto lane = lanes_.find(turns_.front());
        std::optional<T> value(std::move(lane->second.front().value));
        bytes_ -= lane->second.front().bytes;
        --size_;
        waiting_.store(size_, std::memory_order_relaxed);
        lane->second.pop_front();
        if (lane->second.empty()) {
            lanes_.erase(lane);
            turns_.pop_front();
        } else {
            turns_.splice(turns_.end(), turns_, turns_.begin());
        }
        return value;
    }

    const std::size_t max_entries_;
    const std::size_t max_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable filled_;
    std::unordered_map<std::uint64_t, std::deque<Entry>> lanes_;
    std::list<std::uint64_t> turns_;  // sources whose lanes are not empty, next first
    std::size_t size_ = 0;
    std::atomic<std::size_t> waiting_ = 0;  // size_, readable without the lock
    std::size_t bytes_ = 0;
    bool closed_ = false;
};

}  // namespace gloved::daemon
