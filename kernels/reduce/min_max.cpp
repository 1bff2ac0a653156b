#include "kernels/reduce/min_max.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/thread_pool.hpp"

namespace gloved::kernels::reduce {
namespace {

/// Minimum length of a long row. Narrow rows are reduced several at a time, as one long row of
/// whole registers, so that registers are full for every width. The several intermediate results of
/// an element are combined at the end.
constexpr std::size_t kLongRow = 64;
/// Long rows reduced together: intermediate results are loaded and stored once for all of them.
constexpr std::size_t kRowsTogether = 4;
/// Prefetch distance. Hardware prefetching alone is too slow for several rows at a time: without
/// this, an array that is not in the cache takes 1.7 times as long (docs/performance-history.md).
constexpr std::size_t kPrefetchBytes = 16384;
/// Bytes that a thread claims at a time.
constexpr std::size_t kGrainBytes = 1 << 20;

template <class T>
constexpr bool kTwoZeros = std::is_floating_point_v<T>;
template <class T>
constexpr T kNoLow = kTwoZeros<T> ? std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::max();
template <class T>
constexpr T kNoHigh = kTwoZeros<T> ? -std::numeric_limits<T>::infinity()
                                   : std::numeric_limits<T>::lowest();

template <class T>
constexpr detail::Bits<T> kSign = detail::Bits<T>{1} << (8 * sizeof(T) - 1);
template <class T>
detail::Bits<T> bits(T x) {
    return std::bit_cast<detail::Bits<T>>(x);
}

template <class T>
bool is_lower(T x, T low) {
    return x < low || (kTwoZeros<T> && x == low && bits(x) > bits(low));
}
template <class T>
bool is_higher(T x, T high) {
    return x > high || (kTwoZeros<T> && x == high && bits(x) < bits(high));
}

/// The 16-byte vector register of every x86-64 and aarch64 processor.
template <class T>
struct Register {
    static constexpr std::size_t kLanes = 16 / sizeof(T);
    // Not `using`: g++ would drop the attribute.
    typedef T Numbers __attribute__((vector_size(16)));
    typedef detail::Bits<T> NumberBits __attribute__((vector_size(16)));

    template <class Lanes>
    static Lanes load(const void* from) {
        Lanes lanes;
        std::memcpy(&lanes, from, sizeof lanes);
        return lanes;
    }
};

/// Folds kRowsTogether rows of `length` into low[i] and high[i] for each i of a whole register, and
/// the OR of their bits into any[i] (floating point only). Whether +0 or −0 results is undefined.
template <class T>
void fold(const T* rows, std::size_t length, T* __restrict low, T* __restrict high,
          detail::Bits<T>* __restrict any) {
    using Numbers = typename Register<T>::Numbers;
    using NumberBits = typename Register<T>::NumberBits;
    for (std::size_t i = 0; i + Register<T>::kLanes <= length; i += Register<T>::kLanes) {
        auto lowest = Register<T>::template load<Numbers>(low + i);
        auto highest = Register<T>::template load<Numbers>(high + i);
        NumberBits all{};
        const auto take = [&](const T* row) {
            __builtin_prefetch(reinterpret_cast<const char*>(row + i) + kPrefetchBytes);
            const auto x = Register<T>::template load<Numbers>(row + i);
            // The form of the minimum and maximum instructions: NaN compares false, and the other
            // number stays.
            lowest = x < lowest ? x : lowest;
            highest = x > highest ? x : highest;
            all |= reinterpret_cast<NumberBits>(x);
        };
        static_assert(kRowsTogether == 4);
        take(rows);
        take(rows + length);
        take(rows + 2 * length);
        take(rows + 3 * length);
        std::memcpy(low + i, &lowest, sizeof lowest);
        std::memcpy(high + i, &highest, sizeof highest);
        if constexpr (kTwoZeros<T>) {
            all |= Register<T>::template load<NumberBits>(any + i);
            std::memcpy(any + i, &all, sizeof all);
        }
    }
}

}  // namespace

template <class T>
MinMax<T>::MinMax(std::size_t width) : width_(width), period_(width) {
    assert(width != 0);
    // 8 numbers are a whole number of registers.
    if (width < kLongRow) period_ *= 8 * ((kLongRow + 8 * width - 1) / (8 * width));
    low_.resize(period_);
    high_.resize(period_);
    if (kTwoZeros<T>) any_.resize(period_);
    reset();
}

template <class T>
MinMax<T>::MinMax(std::span<const T> minimum, std::span<const T> maximum) : MinMax(minimum.size()) {
    assert(maximum.size() == minimum.size());
    std::ranges::copy(minimum, low_.begin());
    std::ranges::copy(maximum, high_.begin());
}

template <class T>
void MinMax<T>::reset() {
    std::ranges::fill(low_, kNoLow<T>);
    std::ranges::fill(high_, kNoHigh<T>);
}

template <class T>
void MinMax<T>::take(std::size_t element, T low, T high) {
    if (is_lower(low, low_[element])) low_[element] = low;
    if (is_higher(high, high_[element])) high_[element] = high;
}

template <class T>
void MinMax<T>::add(const T* rows, std::size_t count) {
    const T* const end = rows + count * width_;
    const std::size_t long_rows = count * width_ / period_ / kRowsTogether * kRowsTogether;
    if (long_rows != 0) add_long(rows, long_rows);
    for (rows += long_rows * period_; rows != end; rows += width_) {
        for (std::size_t i = 0; i < width_; ++i) take(i, rows[i], rows[i]);
    }
}

template <class T>
void MinMax<T>::add_long(const T* rows, std::size_t count) {
    std::ranges::fill(any_, detail::Bits<T>{0});
    for (std::size_t row = 0; row < count; row += kRowsTogether)
        fold(rows + row * period_, period_, low_.data(), high_.data(), any_.data());
    for (std::size_t i = period_ / Register<T>::kLanes * Register<T>::kLanes; i < period_; ++i) {
        for (std::size_t row = 0; row < count; ++row)
            take(i, rows[row * period_ + i], rows[row * period_ + i]);
    }
    if constexpr (kTwoZeros<T>) settle_zeros(rows, count);
    for (std::size_t i = width_; i < period_; ++i) {
        take(i % width_, low_[i], high_[i]);
        low_[i] = kNoLow<T>;
        high_[i] = kNoHigh<T>;
    }
}

template <class T>
void MinMax<T>::settle_zeros(const T* rows, std::size_t count) {
    for (std::size_t i = 0; i < period_; ++i) {
        const auto find_zero = [&](T zero, T& result) {
            for (std::size_t row = 0; row < count; ++row) {
                if (bits(rows[row * period_ + i]) != bits(zero)) continue;
                result = zero;
                return;
            }
        };
        // If a minimum is +0 but some sign bit was set, −0 probably occurred, since NaN is rare.
        // Maxima of −0 are rare.
        if (bits(low_[i]) == 0 && (any_[i] & kSign<T>) != 0) find_zero(-T{0}, low_[i]);
        if (bits(high_[i]) == kSign<T>) find_zero(T{0}, high_[i]);
    }
}

template <class T>
void MinMax<T>::add(const MinMax& other) {
    assert(other.width_ == width_);
    for (std::size_t i = 0; i < width_; ++i) take(i, other.low_[i], other.high_[i]);
}

template <class T>
T MinMax<T>::least() const {
    T least = low_[0];
    for (const T low : minimum()) least = is_lower(low, least) ? low : least;
    return least;
}

template <class T>
T MinMax<T>::greatest() const {
    T greatest = high_[0];
    for (const T high : maximum()) greatest = is_higher(high, greatest) ? high : greatest;
    return greatest;
}

template <class T>
MinMax<T> min_max(ThreadPool& pool, std::span<const T> values, std::size_t width) {
    assert(values.size() % width == 0);
    const std::size_t rows = values.size() / width;
    const std::size_t grain =
        kRowsTogether * std::max<std::size_t>(1, kGrainBytes / sizeof(T) / width / kRowsTogether);
    std::vector<MinMax<T>> parts(pool.size(), MinMax<T>(width));
    pool.for_ranges(rows, grain, [&](unsigned worker, std::size_t begin, std::size_t end) {
        parts[worker].add(values.data() + begin * width, end - begin);
    });
    for (std::size_t part = 1; part < parts.size(); ++part) parts[0].add(parts[part]);
    return std::move(parts[0]);
}

template class MinMax<float>;
template class MinMax<double>;
template class MinMax<std::int32_t>;
template MinMax<float> min_max(ThreadPool&, std::span<const float>, std::size_t);
template MinMax<double> min_max(ThreadPool&, std::span<const double>, std::size_t);
template MinMax<std::int32_t> min_max(ThreadPool&, std::span<const std::int32_t>, std::size_t);

}  // namespace gloved::kernels::reduce
