// Order: maps numbers to integers (keys) so that the order stays the same and −0 is below +0. The
// kernels of the reducers find minima and maxima by comparing keys.
#pragma once

#include <cstdint>
#include <limits>

namespace gloved::kernels::cuda {

/// Keys of numbers of type T. kNoLow and kNoHigh are the keys of a minimum and a maximum over no
/// number.
template <class T>
struct Order;

template <>
struct Order<std::int32_t> {
    using Key = std::int32_t;
    static __device__ Key key(std::int32_t value) { return value; }
    static __device__ std::int32_t value(Key key) { return key; }
    static __device__ bool is_number(std::int32_t) { return true; }
    static constexpr Key kNoLow = std::numeric_limits<std::int32_t>::max();
    static constexpr Key kNoHigh = std::numeric_limits<std::int32_t>::min();
};

// The bits of a float, read as an integer, grow with its magnitude. So all bits of a negative
// number but the sign are inverted («turned»).
template <>
struct Order<float> {
    using Key = std::int32_t;
    static __device__ Key turned(Key bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }
    static __device__ Key key(float value) { return turned(__float_as_int(value)); }
    static __device__ float value(Key key) { return __int_as_float(turned(key)); }
    static __device__ bool is_number(float value) { return value == value; }
    static constexpr Key kNoLow = 0x7F800000;        // +infinity
    static constexpr Key kNoHigh = -0x7F800000 - 1;  // −infinity, turned
};

template <>
struct Order<double> {
    using Key = long long;
    static __device__ Key turned(Key bits) { return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF); }
    static __device__ Key key(double value) { return turned(__double_as_longlong(value)); }
    static __device__ double value(Key key) { return __longlong_as_double(turned(key)); }
    static __device__ bool is_number(double value) { return value == value; }
    static constexpr Key kNoLow = 0x7FF0000000000000;
    static constexpr Key kNoHigh = -0x7FF0000000000000 - 1;
};

/// The smallest and the largest key of the numbers taken so far. NaN is ignored.
template <class T>
struct Extremes {
    using Key = typename Order<T>::Key;
    Key low = Order<T>::kNoLow;
    Key high = Order<T>::kNoHigh;

    __device__ void take(T value) { take(value, value); }
    /// Takes the minimum and maximum that another thread or launch has found. Those over no number
    /// change nothing.
    __device__ void take(T other_low, T other_high) {
        if (Order<T>::is_number(other_low)) take_low(Order<T>::key(other_low));
        if (Order<T>::is_number(other_high)) take_high(Order<T>::key(other_high));
    }
    __device__ void take_low(Key key) { low = key < low ? key : low; }
    __device__ void take_high(Key key) { high = key > high ? key : high; }
};

}  // namespace gloved::kernels::cuda
