// A way to reduce many equal matrices, element by element, that is fed with them piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"

namespace gloved::kernels::reduce {

/// By a device's own events, or by the clock of the processor that computes.
struct ReduceTimes {
    double transfer_ms = 0;
    double compute_ms = 0;
};

/// What a reducer is told at its making.
struct ReducerOptions {
    std::size_t width = 1;    ///< elements of a matrix, 1 or more
    std::uint64_t count = 0;  ///< matrices that will come, as they were announced; 0: not known
    int device = 0;           ///< cuda and original: the device's number
    unsigned threads = 0;     ///< cpu; 0: one a processor that the process may use
    bool keep = false;        ///< cpu and sequential: keep the values, so that time_again works
};

/// Fed by one thread at a time. After an error it is of no more use.
template <class T>
class Reducer {
  public:
    Reducer() = default;
    Reducer(const Reducer&) = delete;
    Reducer& operator=(const Reducer&) = delete;
    virtual ~Reducer() = default;

    /// Whole matrices, one behind the other: values.size() is a multiple of the width. May block;
    /// at its return the span is the caller's again. Errors: device.
    virtual Status add(std::span<const T> values) = 0;
    /// Of all that was added. Once, after the last add. Errors: device.
    virtual Result<MinMax<T>> finish() = 0;
    /// Computes all once more, over the values where they are, and gives the milliseconds of it.
    /// After finish. Errors: unavailable, where the values are not kept; device.
    virtual Result<double> time_again() = 0;
    /// Of what add and finish have done.
    virtual ReduceTimes times() const = 0;
};

}  // namespace gloved::kernels::reduce
