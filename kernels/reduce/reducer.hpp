// The interface of reducers: minimum and maximum of many matrices, element by element, added piece
// by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"

namespace gloved::kernels::reduce {

/// Measured by the device's events, or by the clock for reducers on the CPU.
struct ReduceTimes {
    double transfer_ms = 0;
    double compute_ms = 0;
};

/// Options of a reducer.
struct ReducerOptions {
    std::size_t width = 1;    ///< elements of a matrix, 1 or more
    std::uint64_t count = 0;  ///< matrices that are announced; 0: unknown
    int device = 0;           ///< cuda and original: device number
    unsigned threads = 0;     ///< cpu; 0: one per usable processor
    bool keep = false;        ///< cpu and sequential: keep the values, so that time_again works
};

/// One thread at a time. Unusable after an error.
template <class T>
class Reducer {
  public:
    Reducer() = default;
    Reducer(const Reducer&) = delete;
    Reducer& operator=(const Reducer&) = delete;
    virtual ~Reducer() = default;

    /// Adds whole matrices: values.size() is a multiple of the width. May block. The span may be
    /// reused on return. Errors: device.
    virtual Status add(std::span<const T> values) = 0;
    /// The result over all that was added. Call once, after the last add. Errors: device.
    virtual Result<MinMax<T>> finish() = 0;
    /// Reduces the same values again where they are, after finish, and returns the milliseconds.
    /// Errors: unavailable, if the values are not kept; device.
    virtual Result<double> time_again() = 0;
    /// Times of add and finish.
    virtual ReduceTimes times() const = 0;
};

}  // namespace gloved::kernels::reduce
