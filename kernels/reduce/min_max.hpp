// The smallest and the largest number of every element of many equal matrices: a reduction over
// rows, element by element.
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

/// Takes rows of `width` numbers in and holds, for each of the `width` elements, the smallest and
/// the largest that came by. T is float, double or std::int32_t.
///
/// Exact: every result is an element of a row that was added. −0 is smaller than +0, so that the
/// bits of the results do not depend on the order in which rows came, or how they were split over
/// several MinMax. NaN is passed over; an element without any number stays at +infinity and
/// −infinity, of std::int32_t at the largest and smallest of the type. Not safe for concurrent use.
template <class T>
class MinMax {
  public:
    /// `width` is 1 or more.
    explicit MinMax(std::size_t width);
    /// Of results that were found elsewhere, both of the same width.
    MinMax(std::span<const T> minimum, std::span<const T> maximum);

    /// As newly made.
    void reset();
    /// `count` rows of `width` elements each, one behind the other.
    void add(const T* rows, std::size_t count);
    /// Of the same width.
    void add(const MinMax& other);

    std::size_t width() const { return width_; }
    /// Shape (width). It stays where it is as long as this does.
    std::span<const T> minimum() const { return std::span(low_).first(width_); }
    std::span<const T> maximum() const { return std::span(high_).first(width_); }
    /// Of all elements.
    T least() const;
    T greatest() const;

  private:
    void take(std::size_t element, T low, T high);
    void add_long(const T* rows, std::size_t count);
    void settle_zeros(const T* rows, std::size_t count);

    std::size_t width_;
    std::size_t period_;   // numbers in a long row, see min_max.cpp: `low_` and `high_` have room
                           // for as many
    std::vector<T> low_;   // behind the first `width_`, limits between two calls of add
    std::vector<T> high_;  // likewise
    std::vector<detail::Bits<T>> any_;  // scratch of add, a member so that it is allocated once
};

/// The smallest and largest elements of all rows in `values`, shape (rows, width), by all threads
/// of `pool`.
template <class T>
MinMax<T> min_max(ThreadPool& pool, std::span<const T> values, std::size_t width);

extern template class MinMax<float>;
extern template class MinMax<double>;
extern template class MinMax<std::int32_t>;

}  // namespace gloved::kernels::reduce
