// Histogram: counts durations, for the percentiles in STATS.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gloved::daemon {

/// A number that one thread writes and any thread reads.
template <class Number>
class Tally {
  public:
    Tally() = default;
    Tally(const Tally& other) : value_(other) {}
    Tally& operator=(const Tally& other) { return *this = Number(other); }
    Tally& operator=(Number value) {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    operator Number() const { return value_.load(std::memory_order_relaxed); }
    Tally& operator+=(Number more) { return *this = Number(*this) + more; }
    Tally& operator++() { return *this += 1; }

  private:
    std::atomic<Number> value_ = 0;
};

/// Counts durations in buckets: one per microsecond below 16 µs, then sixteen from each power of
/// two to the next. So percentiles are right to 6.3 %. Durations above 71 minutes count as 71
/// minutes. One thread may count while others read.
class Histogram {
  public:
    /// Counts a duration, in whole microseconds.
    void add(std::chrono::nanoseconds duration) {
        const auto us = std::max<std::int64_t>(duration.count(), 0) / 1000;
        ++counts_[bucket_of(static_cast<std::uint64_t>(us))];
        ++count_;
        sum_us_ += static_cast<double>(us);
    }

    /// Adds the durations of another one.
    void add(const Histogram& other) {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
        count_ += other.count_;
        sum_us_ += other.sum_us_;
    }

    std::uint64_t count() const { return count_; }
    double sum_us() const { return sum_us_; }

    /// The duration in µs that the part `share` (0 to 1) of all durations does not exceed, rounded
    /// up to the end of its bucket; 0 if none was counted.
    std::uint64_t percentile_us(double share) const {
        const double wanted = share * static_cast<double>(count_);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen > 0 && static_cast<double>(seen) >= wanted) return last_of(i);
        }
        return 0;
    }

    /// How many durations are below 2^`power` µs; `power` < kMaxPower.
    std::uint64_t below_power(unsigned power) const {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < bucket_of(std::uint64_t{1} << power); ++i) sum += counts_[i];
        return sum;
    }

    /// Durations of 2^kMaxPower µs or more share the last bucket.
    static constexpr unsigned kMaxPower = 32;

  private:
    static constexpr unsigned kSubBits = 4;
    static constexpr std::size_t kSub = std::size_t{1} << kSubBits;
    static constexpr std::size_t kBuckets = (kMaxPower - kSubBits + 1) * kSub;

    static std::size_t bucket_of(std::uint64_t us) {
        if (us < kSub) return static_cast<std::size_t>(us);
        const auto octave = static_cast<unsigned>(std::bit_width(us)) - 1;
        if (octave >= kMaxPower) return kBuckets - 1;
        const std::size_t sub = static_cast<std::size_t>(us >> (octave - kSubBits)) - kSub;
        return (octave - kSubBits + 1) * kSub + sub;
    }

    /// The largest duration of a bucket.
    static std::uint64_t last_of(std::size_t bucket) {
        if (bucket < kSub) return bucket;
        const std::size_t octave = bucket / kSub + kSubBits - 1;
        const std::uint64_t first = (kSub + bucket % kSub) << (octave - kSubBits);
        return first + (std::uint64_t{1} << (octave - kSubBits)) - 1;
    }

    std::array<Tally<std::uint64_t>, kBuckets> counts_{};
    Tally<std::uint64_t> count_;
    Tally<double> sum_us_;
};

}  // namespace gloved::daemon
