// Launch functions of the kernels for the element-wise minimum and maximum, in two ways.
//
// `one_pass` reads the matrices in the order of the file, each number once. A thread loads some
// neighbouring numbers at a time, always of the same elements of different matrices. So it holds
// only a smallest and a largest value for each number of a load. `original` does as the program
// that gloved-matmin descends from: it first puts all values of an element side by side, then
// reduces each 2,048 of them to one, launch after launch.
//
// T is float, double or std::int32_t. −0 is smaller than +0, NaN is ignored (min_max.hpp). All
// pointers are device memory; every function enqueues on `stream` and returns at once, with the
// launch's error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gloved::kernels::cuda {

/// How `one_pass` divides values between threads. The values are a table with rows of `period`
/// numbers, called super-rows. The period is a multiple of the width and of a load, so that a
/// column of loads has the same elements in every super-row. A thread handles one column of loads,
/// in every `slices`-th super-row. Blocks form a grid of `tiles` across a super-row by `slices`.
struct ReducePlan {
    std::size_t width = 1;  ///< elements of a matrix
    std::size_t period = 1;
    unsigned load = 1;  ///< numbers that a thread loads at once: 16 bytes of them, or 1
    unsigned tiles = 1;
    unsigned slices = 1;
    /// Whether a block reduces its results for the same element to one before it writes them.
    bool folded = false;
    /// Number of rows of `width` numbers that all blocks write: once of smallest values, and once
    /// of largest. A second kernel reduces them to one row each.
    std::size_t partial_rows = 0;
};

/// The plan for launches with at most `values` numbers, of matrices with `width` elements, on a
/// device with `processors` multiprocessors.
template <class T>
ReducePlan plan_reduce(std::size_t width, std::size_t values, int processors);

/// The results, and intermediate results of `one_pass`.
template <class T>
struct ReduceResult {
    T* low = nullptr;           ///< (width) smallest value of each element
    T* high = nullptr;          ///< (width) largest value of each element
    T* partial_low = nullptr;   ///< (partial_rows, width), for `one_pass`
    T* partial_high = nullptr;  ///< (partial_rows, width), for `one_pass`
};

/// Reduces `values` to `result` by `one_pass`: `count` numbers in all, a multiple of the width and
/// at most the plan's, 16-byte aligned. With `first`, sets result.low and result.high; otherwise
/// continues with what they hold.
template <class T>
cudaError_t launch_one_pass(const ReducePlan& plan, const T* values, std::size_t count, bool first,
                            const ReduceResult<T>& result, cudaStream_t stream);

/// Puts the values of each element side by side, for launch_original: laid_out[e * capacity + at +
/// i] = matrices[i * width + e] for i < count and e < width. `count` is a number of matrices;
/// `capacity` is the room for values of one element; `at` is the number of values that earlier
/// launches have put there.
template <class T>
cudaError_t launch_lay_out(const T* matrices, std::size_t count, std::size_t width, std::size_t at,
                           std::size_t capacity, T* laid_out, cudaStream_t stream);

/// Number of values that a block of `original` reduces to one.
inline constexpr unsigned kOriginalValues = 2048;
/// Number of T that `gathered` of launch_original must have room for: the smallest and the largest
/// value of each block, and the same again, as launches read one pair of lists and write the other.
inline std::size_t original_scratch(std::size_t capacity, std::size_t width) {
    return 4 * width * ((capacity + kOriginalValues - 1) / kOriginalValues);
}

/// Reduces to `result` what launch_lay_out has written: `count` values, 1 or more, of each of
/// `width` elements. With `first`, sets result.low and result.high; otherwise continues with what
/// they hold. Overwrites parts of `laid_out`; a second call on it still gives the same result.
/// `gathered` is scratch memory, see original_scratch.
template <class T>
cudaError_t launch_original(T* laid_out, std::size_t count, std::size_t width, std::size_t capacity,
                            bool first, T* gathered, const ReduceResult<T>& result,
                            cudaStream_t stream);

}  // namespace gloved::kernels::cuda
