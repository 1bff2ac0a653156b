// What the threads of gloved-bench load count, and how it is printed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/log_buckets.hpp"
#include "tools/bench/measure.hpp"

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

/// An answer that differs from the expected one.
struct WrongAnswer {
    std::string request;
    std::string expected;  ///< the whole reply
    std::string received;
};

/// What a worker counted.
struct LoadCounts {
    explicit LoadCounts(std::size_t parts)
        : latencies(parts), answers_in_time(parts), errors(parts) {}
    /// Counts an ERR reply to a request of a part of the mix.
    void add_error(std::size_t part, std::string_view code);
    /// Adds what `other` counted.
    void add(const LoadCounts& other);

    std::vector<LatencyHistogram> latencies;     ///< of OK replies, by part of the mix
    std::vector<std::uint64_t> answers_in_time;  ///< of these, those that came before the end
    std::vector<std::uint64_t> errors;           ///< ERR replies, by part of the mix
    std::vector<std::pair<std::string, std::uint64_t>> codes;  ///< ERR replies by code
    std::uint64_t checked = 0;                                 ///< compared replies
    std::uint64_t wrong = 0;
    std::optional<WrongAnswer> first_wrong;
    LatencyHistogram lateness;     ///< open loop: from when a request was due until it was sent
    std::uint64_t unsent = 0;      ///< open loop: due, but never sent
    std::uint64_t unanswered = 0;  ///< sent, but not answered when the worker gave up
};

/// What a load measured.
struct LoadFigures {
    std::vector<std::string> parts{};            ///< names of the parts of the mix
    LoadCounts counts;                           ///< of all clients but the lone one
    std::optional<LoadCounts> lone{};            ///< of the lone client, if there was one
    double seconds = 0;                          ///< how long requests were sent
    double own_cpu_seconds = 0;                  ///< processor time of this process
    std::optional<double> daemon_cpu_seconds{};  ///< and of the daemon, if it is known
    double wall_seconds = 0;  ///< during which the two were measured: until the last reply
};

/// The replies to each part of the mix, to all parts, and to the lone client: how many, and
/// percentiles of their latencies.
Table answers_table(const LoadFigures& figures);

/// The processor time of both sides, in all and per answer.
Table processor_table(const LoadFigures& figures);

/// Lines about what else happened: checked answers, ERR replies by code, requests that were sent
/// late, or not at all, or not answered.
std::vector<std::string> load_notes(const LoadFigures& figures);

/// A wrong answer as lines: the request, both status lines, and both replies from the first line
/// on that differs.
std::vector<std::string> wrong_answer_text(const WrongAnswer& wrong);

}  // namespace gloved::bench
