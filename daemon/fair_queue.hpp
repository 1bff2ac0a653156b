// Requests that wait for an engine, taken from each connection in turn.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gloved::daemon {

/// A bounded queue of T with one lane a source. `pop` serves the sources that have something waiting round-robin, each
/// in its own order, so that a source with ten thousand entries delays another's single one by one entry. Any thread
/// may call.
template <class T>
class FairQueue {
  public:
    explicit FairQueue(std::size_t capacity) : capacity_(capacity) {}

    /// Adds to the end of `source`'s lane; false, and `value` is left alone, when the queue is full or closed.
    bool push(std::uint64_t source, T&& value) {
        {
            const std::lock_guard lock(mutex_);
            if (closed_ || size_ == capacity_) return false;
            auto& lane = lanes_[source];
            if (lane.empty()) turns_.push_back(source);
            lane.push_back(std::move(value));
            ++size_;
        }
        filled_.notify_one();
        return true;
    }

    /// Waits for an entry; nothing once the queue is closed and empty.
    std::optional<T> pop() {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [this] { return closed_ || size_ > 0; });
        return take();
    }

    /// An entry if there is one now.
    std::optional<T> try_pop() {
        const std::lock_guard lock(mutex_);
        return take();
    }

    /// Refuses further entries; what waits can still be popped.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        filled_.notify_all();
    }

    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return size_;
    }

  private:
    std::optional<T> take() {
        if (size_ == 0) return std::nullopt;
        const std::uint64_t source = turns_.front();
        turns_.pop_front();
        const auto lane = lanes_.find(source);
        T value = std::move(lane->second.front());
        lane->second.pop_front();
        --size_;
        if (lane->second.empty()) {
            lanes_.erase(lane);
        } else {
            turns_.push_back(source);
        }
        return value;
    }

    const std::size_t capacity_;
    mutable std::mutex mutex_;
    std::condition_variable filled_;
    std::unordered_map<std::uint64_t, std::deque<T>> lanes_;
    std::deque<std::uint64_t> turns_;  // sources with a lane, next first
    std::size_t size_ = 0;
    bool closed_ = false;
};

}  // namespace gloved::daemon
