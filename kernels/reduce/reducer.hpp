// Reducer: the interface of what computes the minimum and maximum of each element over many
// matrices of one shape. gloved-matmin makes one for cuda; with cpu, the threads that read reduce
// what they read themselves. gloved-bench makes one for cpu too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"

namespace gloved::kernels::reduce {

/// Milliseconds that a reducer has spent on copying values to where it computes, and on computing.
/// On a GPU they are measured by CUDA events, on the CPU by the clock.
struct ReduceTimes {
    double transfer_ms = 0;
    double compute_ms = 0;
};

/// Options of a reducer.
struct ReducerOptions {
    std::size_t width = 1;    ///< number of elements of a matrix (rows × columns), 1 or more
    std::uint64_t count = 0;  ///< expected number of matrices, for allocating memory; 0: unknown
    int device = 0;           ///< of reducers on a GPU: number of the device
    unsigned threads = 0;     ///< of cpu; 0: one per usable processor
    bool keep = false;        ///< keep the values for time_again; only cpu can
};

/// Reduces matrices: call `add` for all of them, then `finish`. One thread at a time. Unusable
/// after an error `device`.
template <class T>
class Reducer {
  public:
    Reducer() = default;
    Reducer(const Reducer&) = delete;
    Reducer& operator=(const Reducer&) = delete;
    virtual ~Reducer() = default;

    /// Takes in one or more whole matrices: values.size() is a multiple of the width. May
    /// wait for the device. On return the caller may reuse the memory of `values`. Error: device.
    virtual Status add(std::span<const T> values) = 0;
    /// Returns the minimum and maximum over all matrices. Call it once, after the last `add`.
    /// Error: device.
    virtual Result<MinMax<T>> finish() = 0;
    /// Repeats the computation, without the copies, after `finish`, and returns the milliseconds.
    /// For benchmarks. Errors: unavailable, if the reducer has not kept all values; device.
    virtual Result<double> time_again() = 0;
    /// Sum of the times of all calls of `add` and of `finish`.
    virtual ReduceTimes times() const = 0;
};

}  // namespace gloved::kernels::reduce
