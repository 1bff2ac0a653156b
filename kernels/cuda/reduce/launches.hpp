// Launch functions of the kernels for the element-wise minimum and maximum, in two ways.
//
// `one_pass` reads the matrices as they lie in the file, each number once: whatever a
// thread loads, it is always the same element of a matrix, so that two running values (smallest,
// largest) of each number of its load are all that it holds. `original` first puts all values of an
// element side by side and then halves them, launch after launch.
//
// T is float, double or std::int32_t. −0 is smaller than +0, NaN is passed over. All pointers are
// device memory; every function enqueues on `stream` and returns at once, with what the launch
// reported.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace gloved::kernels::cuda {

/// How `one_pass` divides values between threads: they are cut into super-rows of `period` numbers,
/// a whole number of matrices (or of matrices of a thread's load: all numbers of a load are of the
/// same matrix element in every super-row). Blocks form a grid of `tiles` across a super-row and
/// `slices` down the super-rows.
struct ReducePlan {
    std::size_t width = 1;
    std::size_t period = 1;
    unsigned load = 1;  ///< numbers that a thread loads at once: 16 bytes of them, or 1
    unsigned tiles = 1;
    unsigned slices = 1;
    bool folded = false;  ///< a block folds its numbers of an element before it writes them; else
                          ///< it writes all
    std::size_t partial_rows = 0;  ///< rows of `width` numbers that the pass leaves, twice:
                                   ///< smallest and largest
};

/// The plan for at most `values` numbers on a device of `processors` multiprocessors.
template <class T>
ReducePlan plan_reduce(std::size_t width, std::size_t values, int processors);

/// The results, and intermediate results of `one_pass`.
template <class T>
struct ReduceResult {
    T* low = nullptr;           ///< (width)
    T* high = nullptr;          ///< (width)
    T* partial_low = nullptr;   ///< (partial_rows, width), `one_pass` only
    T* partial_high = nullptr;  ///< likewise
};

/// Takes `values`, `count` numbers (a multiple of the width, at most those of the plan), 16-byte
/// aligned, into `result`; what was there before counts too unless `first`. Two kernels: the pass,
/// and one that folds what its blocks leave.
template <class T>
cudaError_t launch_one_pass(const ReducePlan& plan, const T* values, std::size_t count, bool first,
                            const ReduceResult<T>& result, cudaStream_t stream);

/// laid_out[e * capacity + at + i] = matrices[i * width + e] for i < count and e < width.
template <class T>
cudaError_t launch_lay_out(const T* matrices, std::size_t count, std::size_t width, std::size_t at,
                           std::size_t capacity, T* laid_out, cudaStream_t stream);

/// Values that a block of the original's reduction reduces to one.
inline constexpr unsigned kOriginalValues = 2048;
/// Numbers that `gathered` of launch_original has room for: two lists, of smallest and of largest,
/// and two more to gather them in.
inline std::size_t original_scratch(std::size_t capacity, std::size_t width) {
    return 4 * width * ((capacity + kOriginalValues - 1) / kOriginalValues);
}

/// Takes what launch_lay_out left, `count` values (1 or more) of each element, into `result`; what
/// was there before counts too unless `first`. In place: smallest and largest of each element are
/// among what stays in `laid_out`, but not all else.
template <class T>
cudaError_t launch_original(T* laid_out, std::size_t count, std::size_t width, std::size_t capacity,
                            bool first, T* gathered, const ReduceResult<T>& result,
                            cudaStream_t stream);

}  // namespace gloved::kernels::cuda
