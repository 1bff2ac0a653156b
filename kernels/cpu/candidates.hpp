// Candidates of the cpu engine: rows that may still be in an answer, and the threshold that they
// must reach. A pass collects candidates; best_hits scores them canonically.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/engine.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {

/// A row whose canonical score is known to lie in [lower, upper].
struct Candidate {
    Row row = 0;
    double lower = 0;
    double upper = 0;
};

/// A score that k eligible rows are known to reach, so that a row whose score is proven to be below
/// it is not in the answer. It only rises. Any thread; relaxed order is enough, since a stale value
/// only keeps more rows.
class Threshold {
  public:
    /// `at_least`: the query's min_score.
    explicit Threshold(double at_least) : value_(at_least) {}
    double get() const { return value_.load(std::memory_order_relaxed); }
    /// Sets the threshold to `value` if that is higher.
    void raise(double value) {
        double current = get();
        while (current < value &&
               !value_.compare_exchange_weak(current, value, std::memory_order_relaxed)) {
        }
    }

  private:
    std::atomic<double> value_;
};

/// One thread's candidates for a query. Keeps every row whose upper bound reaches the threshold,
/// and raises the threshold to the k-th largest lower bound seen.
class CandidateList {
  public:
    explicit CandidateList(std::size_t k)
        : k_(k), prune_at_(std::max(2 * std::min(k, std::size_t{1} << 20), kFirstPrune)) {}

    /// Adds a candidate if it reaches the threshold. Now and then prunes the list.
    void offer(const Candidate& candidate, Threshold& threshold) {
        // Negated so that NaN (from a damaged norm) is left out.
        if (!(candidate.upper >= threshold.get())) return;
        candidates_.push_back(candidate);
        if (candidates_.size() >= prune_at_) prune(threshold);
    }

    /// Moves the remaining candidates to the end of `out`.
    void drain(std::vector<Candidate>& out) {
        out.insert(out.end(), candidates_.begin(), candidates_.end());
        candidates_ = {};
    }

    /// Raises the threshold to the k-th largest lower bound of `candidates`, and removes the
    /// candidates whose upper bound is below it.
    static void prune(std::vector<Candidate>& candidates, std::size_t k, Threshold& threshold);

  private:
    static constexpr std::size_t kFirstPrune = 256;

    void prune(Threshold& threshold) {
        prune(candidates_, k_, threshold);
        // With many near-ties, pruning before the list has doubled would be wasted work.
        prune_at_ = std::max(prune_at_, 2 * candidates_.size());
    }

    std::size_t k_;
    std::size_t prune_at_;
    std::vector<Candidate> candidates_;
};

/// Computes the canonical score of every candidate, `canonical(row)`, on the threads of `pool`, and
/// returns the k best, best first, without scores below `min_score`.
std::vector<Hit> best_hits(std::span<const Candidate> candidates, std::size_t k, double min_score,
                           ThreadPool& pool, const std::function<double(Row)>& canonical);

}  // namespace gloved::kernels::cpu
