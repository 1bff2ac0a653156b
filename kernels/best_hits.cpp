#include "kernels/best_hits.hpp"

#include <algorithm>
#include <utility>

namespace gloved::kernels {
namespace {

/// By what part of k the list grows before it is cut to k again. Small, so that the threshold is
/// near the k-th score; the cost of cutting is that of so many comparisons for each hit.
constexpr std::size_t kGrowth = 8;

}  // namespace

void BestHits::raise(double score) {
    double current = threshold();
    while (current < score &&
           !threshold_.compare_exchange_weak(current, score, std::memory_order_relaxed)) {
    }
}

void BestHits::add(std::span<const Hit> hits) {
    const std::lock_guard lock(mutex_);
    for (const Hit& hit : hits) {
        // Negated so that NaN is left out.
        if (!(hit.score >= threshold())) continue;
        hits_.push_back(hit);
        if (hits_.size() == limit_) keep_best();
    }
}

void BestHits::keep_best() {
    // Of one too many, which is usual for small k, the worst goes.
    if (hits_.size() == k_ + 1) {
        std::swap(*std::ranges::max_element(hits_, comes_before), hits_.back());
        hits_.pop_back();
        raise(std::ranges::max_element(hits_, comes_before)->score);
        return;
    }
    const auto kth = hits_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(hits_.begin(), kth, hits_.end(), comes_before);
    raise(kth->score);
    hits_.resize(k_);
    limit_ = k_ + std::max<std::size_t>(1, k_ / kGrowth);
}

std::vector<Hit> BestHits::take() {
    std::ranges::sort(hits_, comes_before);
    if (hits_.size() > k_) hits_.resize(k_);
    return std::exchange(hits_, {});
}

}  // namespace gloved::kernels
