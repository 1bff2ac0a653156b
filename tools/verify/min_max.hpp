// The smallest and the largest number of every dimension: a reduction over rows, element by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace gloved::verify {

namespace detail {
inline constexpr std::size_t kMinMaxStep = 8;  // a whole number of vector registers, whatever the instruction set

/// low[i] = min(low[i], below[i]), high[i] = max(high[i], above[i]). A NaN in `below` or `above` is passed over.
inline void merge_min_max(const float* below, const float* above, float* __restrict low, float* __restrict high,
                          std::size_t dim) {
    // The inner loop's constant length lets a compiler vectorise it at -O2; this form of the comparison is what the
    // processors' minimum and maximum do, NaN included.
    std::size_t i = 0;
    for (; i + kMinMaxStep <= dim; i += kMinMaxStep) {
        for (std::size_t l = i; l < i + kMinMaxStep; ++l) low[l] = below[l] < low[l] ? below[l] : low[l];
        for (std::size_t l = i; l < i + kMinMaxStep; ++l) high[l] = above[l] > high[l] ? above[l] : high[l];
    }
    for (; i < dim; ++i) {
        low[i] = below[i] < low[i] ? below[i] : low[i];
        high[i] = above[i] > high[i] ? above[i] : high[i];
    }
}
}  // namespace detail

/// Exact: every result is an element of a row that was added. Of +0 and −0, which are equal, the one that was added
/// first stays, so that parts merged in the order of their rows give the bits that one pass over all rows gives. NaN is
/// passed over; a dimension without any number stays at +infinity and −infinity. Not safe for concurrent use.
class MinMax {
  public:
    explicit MinMax(std::size_t dim) : low_(dim, kInfinity), high_(dim, -kInfinity) {}

    /// As newly made.
    void reset() {
        std::fill(low_.begin(), low_.end(), kInfinity);
        std::fill(high_.begin(), high_.end(), -kInfinity);
    }
    /// `row` has dim elements.
    void add(const float* row) { detail::merge_min_max(row, row, low_.data(), high_.data(), low_.size()); }
    /// Of the same dim.
    void add(const MinMax& later) {
        detail::merge_min_max(later.low_.data(), later.high_.data(), low_.data(), high_.data(), low_.size());
    }

    /// float32, shape (dim).
    std::span<const float> minimum() const { return low_; }
    std::span<const float> maximum() const { return high_; }
    /// Of all dimensions; dim >= 1.
    float least() const { return *std::min_element(low_.begin(), low_.end()); }
    float greatest() const { return *std::max_element(high_.begin(), high_.end()); }

  private:
    static constexpr float kInfinity = std::numeric_limits<float>::infinity();

    std::vector<float> low_;
    std::vector<float> high_;
};

}  // namespace gloved::verify
