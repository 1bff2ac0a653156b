// The rows that may still belong to an answer.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
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

/// A score that k eligible rows reach: what lies below it for certain is no part of the answer.
/// Only rises. Shared by the threads of a scan; relaxed order is enough, since a stale value only
/// keeps more rows.
class Threshold {
  public:
    explicit Threshold(double at_least) : value_(at_least) {}
    double get() const { return value_.load(std::memory_order_relaxed); }
    void raise(double value) {
        double current = get();
        while (current < value &&
               !value_.compare_exchange_weak(current, value, std::memory_order_relaxed)) {
        }
    }

  private:
    std::atomic<double> value_;
};

/// One thread's candidates for one query. Keeps every row whose upper bound reaches the threshold,
/// and raises the threshold to the k-th largest lower bound that it has seen.
class CandidateList {
  public:
    explicit CandidateList(std::size_t k)
        : k_(k), prune_at_(std::max(2 * std::min(k, std::size_t{1} << 20), kFirstPrune)) {}

    void offer(const Candidate& candidate, Threshold& threshold) {
        // Written so that NaN (a damaged norm) is left out.
        if (!(candidate.upper >= threshold.get())) return;
        candidates_.push_back(candidate);
        if (candidates_.size() >= prune_at_) prune(threshold);
    }

    /// Appends all that is still possible to `out`.
    void drain(std::vector<Candidate>& out) {
        out.insert(out.end(), candidates_.begin(), candidates_.end());
        candidates_ = {};
    }

    /// Raises the threshold from the candidates at hand and drops those below it.
    static void prune(std::vector<Candidate>& candidates, std::size_t k, Threshold& threshold);

  private:
    static constexpr std::size_t kFirstPrune = 256;

    void prune(Threshold& threshold) {
        prune(candidates_, k_, threshold);
        // Many near-ties: pruning again before the list has doubled would be wasted work.
        prune_at_ = std::max(prune_at_, 2 * candidates_.size());
    }

    std::size_t k_;
    std::size_t prune_at_;
    std::vector<Candidate> candidates_;
};

/// The answer from all that is possible: canonical scores decide, those below the filter's smallest
/// are left out.
std::vector<Hit> best_hits(std::span<const Candidate> candidates, const Query& query,
                           ThreadPool& pool, const std::function<double(Row)>& canonical);

}  // namespace gloved::kernels::cpu
