// The launch function of the kernels for the element-wise minimum and maximum.
//
// They read the matrices in the order of the file, each number once. A thread loads some
// neighbouring numbers at a time, always of the same elements of different matrices. So it holds
// only a smallest and a largest value for each number of a load.
//
// T is float, double or std::int32_t. −0 is smaller than +0, NaN is ignored (min_max.hpp). All
// pointers are device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gloved::kernels::cuda {

/// How values are divided between threads. The values are a table with rows of `period`
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

/// The results, and intermediate results.
template <class T>
struct ReduceResult {
    T* low = nullptr;           ///< (width) smallest value of each element
    T* high = nullptr;          ///< (width) largest value of each element
    T* partial_low = nullptr;   ///< (partial_rows, width)
    T* partial_high = nullptr;  ///< (partial_rows, width)
};

/// Reduces `values` to `result`: `count` numbers in all, a multiple of the width and at most the
/// plan's, 16-byte aligned. With `first`, sets result.low and result.high; otherwise continues with
/// what they hold. Enqueues on `stream` and returns at once, with the launch's error.
template <class T>
cudaError_t launch_one_pass(const ReducePlan& plan, const T* values, std::size_t count, bool first,
                            const ReduceResult<T>& result, cudaStream_t stream);

}  // namespace gloved::kernels::cuda
