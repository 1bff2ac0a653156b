// BestHits: the answer to a query while an engine's threads find it.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/engine.hpp"

namespace gloved::kernels {

/// The k best hits so far, and a threshold: a score that k eligible rows are known to reach, so
/// that a row with a lower score is not in the answer. The threshold only rises. Any thread may
/// call all but `take`.
class BestHits {
  public:
    /// The threshold starts at `min_score`.
    BestHits(std::size_t k, double min_score) : k_(k), limit_(k), threshold_(min_score) {}

    /// Relaxed order is enough, since an old threshold only keeps more rows.
    double threshold() const { return threshold_.load(std::memory_order_relaxed); }

    /// Raises the threshold to `score` if that is higher: k eligible rows are known to reach it.
    void raise(double score);

    /// Adds hits on eligible rows, each row once. Those below the threshold, and those whose score
    /// is NaN, are left out.
    void add(std::span<const Hit> hits);

    /// The k best hits, best first.
    std::vector<Hit> take();

  private:
    void keep_best();

    std::size_t k_;
    std::size_t limit_;  // number of hits that are cut to k: first k, then a little more
    std::atomic<double> threshold_;
    // Apart from the threshold, which others read while one thread holds the mutex.
    alignas(64) std::mutex mutex_;
    std::vector<Hit> hits_;
};

}  // namespace gloved::kernels
