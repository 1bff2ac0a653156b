// Histogram: counts durations, for the percentiles in STATS.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/log_buckets.hpp"

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
            if (seen > 0 && static_cast<double>(seen) >= wanted) return Buckets::last_of(i);
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
    using Buckets = LogBuckets<4, kMaxPower>;

    static std::size_t bucket_of(std::uint64_t us) {
        constexpr std::uint64_t kLast = (std::uint64_t{1} << kMaxPower) - 1;
        return Buckets::bucket_of(std::min(us, kLast));
    }

    std::array<Tally<std::uint64_t>, Buckets::kCount> counts_{};
    Tally<std::uint64_t> count_;
    Tally<double> sum_us_;
};

}  // namespace gloved::daemon
