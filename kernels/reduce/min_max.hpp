// MinMax: the minimum and maximum of each element over many matrices of one shape. Here a matrix is
// a row of `width` numbers, and many of them are a table that is reduced over its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace gloved::kernels {
class ThreadPool;
}

namespace gloved::kernels::reduce {

namespace detail {
/// An integer as wide as T.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
}  // namespace detail

/// Holds the minimum and the maximum of each of `width` elements over the rows added so far. T is
/// float, double or std::int32_t.
///
/// Exact: every result is an element of an added row. −0 is smaller than +0, so the bits of the
/// results depend neither on the order of rows nor on how they are split over several MinMax. NaN
/// is ignored. An element without any number keeps +infinity and −infinity; for std::int32_t, the
/// largest and smallest value of the type. Not safe for concurrent use.
template <class T>
class MinMax {
  public:
    /// `width` is at least 1.
    explicit MinMax(std::size_t width);
    /// Starts from results that were computed elsewhere; both spans have the width.
    MinMax(std::span<const T> minimum, std::span<const T> maximum);

    /// Forgets all rows.
    void reset();
    /// Adds `count` contiguous rows of `width` elements each.
    void add(const T* rows, std::size_t count);
    /// Adds the rows that were added to `other`, which has the same width.
    void add(const MinMax& other);

    std::size_t width() const { return width_; }
    /// Shape (width). The memory stays valid as long as this object.
    std::span<const T> minimum() const { return std::span(low_).first(width_); }
    std::span<const T> maximum() const { return std::span(high_).first(width_); }
    /// The smallest minimum and the largest maximum of all elements.
    T least() const;
    T greatest() const;

  private:
    void take(std::size_t element, T low, T high);
    void add_long(const T* rows, std::size_t count);
    void settle_zeros(const T* rows, std::size_t count);

    std::size_t width_;
    std::size_t period_;   // numbers in a long row (min_max.cpp), and size of `low_` and `high_`
    std::vector<T> low_;   // after the first `width_`: no number, between two calls of add
    std::vector<T> high_;  // likewise
    std::vector<detail::Bits<T>> any_;  // scratch of add, a member to be allocated once
};

/// Reduces `values`, shape (rows, width), on all threads of `pool`.
template <class T>
MinMax<T> min_max(ThreadPool& pool, std::span<const T> values, std::size_t width);

extern template class MinMax<float>;
extern template class MinMax<double>;
extern template class MinMax<std::int32_t>;

}  // namespace gloved::kernels::reduce
