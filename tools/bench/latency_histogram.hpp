// LatencyHistogram: counts the latencies of a load, for its percentiles.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/log_buckets.hpp"

namespace gloved::bench {

/// Counts latencies in buckets: one per nanosecond below 64 ns, then 64 from each power of two to
/// the next. So percentiles are right to 1.6 %. Latencies above an hour (2^42 ns) share the last
/// bucket. Each thread has its own and adds them up at the end.
class LatencyHistogram {
  public:
    /// Counts a latency; a negative one as 0.
    void add(std::int64_t latency_ns) {
        const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency_ns, 0));
        ++counts_[bucket_of(ns)];
        ++count_;
        max_ns_ = std::max(max_ns_, ns);
    }
    /// Adds all that `other` has counted.
    void add(const LatencyHistogram& other) {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
        count_ += other.count_;
        max_ns_ = std::max(max_ns_, other.max_ns_);
    }

    std::uint64_t count() const { return count_; }
    std::uint64_t max_ns() const { return max_ns_; }

    /// The latency in nanoseconds that the part `share` (above 0, up to 1) of all does not exceed,
    /// rounded up to the end of its bucket, but at most the largest; 0 if none was counted.
    std::uint64_t percentile_ns(double share) const {
        const double wanted = share * static_cast<double>(count_);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen > 0 && static_cast<double>(seen) >= wanted)
                return std::min(Buckets::last_of(i), max_ns_);
        }
        return max_ns_;
    }

  private:
    static constexpr unsigned kMaxPower = 42;
    using Buckets = LogBuckets<6, kMaxPower>;

    static std::size_t bucket_of(std::uint64_t ns) {
        return ns >> kMaxPower != 0 ? Buckets::kCount : Buckets::bucket_of(ns);
    }

    std::array<std::uint64_t, Buckets::kCount + 1> counts_{};  // the last for longer ones
    std::uint64_t count_ = 0;
    std::uint64_t max_ns_ = 0;
};

}  // namespace gloved::bench
