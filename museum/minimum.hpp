// The element-wise minimum and maximum over many matrices, as the student project computed them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"

namespace gloved::museum {

/// Number of values that a block reduces to one.
inline constexpr unsigned kBlockValues = 2048;

/// One number for each of some values of each element: element e's begin at e * stride. Smallest
/// and largest in a list of their own, which in the first round are the same list. Device memory.
struct Lists {
    double* low = nullptr;
    double* high = nullptr;
    std::size_t stride = 0;
};

/// Numbers that the scratch memory of launch_minimum must have room for.
inline std::size_t minimum_scratch(std::size_t count, std::size_t width) {
    return 4 * width * ((count + kBlockValues - 1) / kBlockValues);
}

/// Puts the values of each element side by side: laid_out[e * count + i] = matrices[i * width + e].
/// Enqueues on `stream`, and returns the launch's error.
cudaError_t launch_lay_out(const double* matrices, std::size_t count, std::size_t width,
                           double* laid_out, cudaStream_t stream);

/// Reduces what launch_lay_out wrote, `count` values of each of `width` elements, to low and high,
/// (width) each. Overwrites parts of `laid_out`; a second call on it still gives the same result.
cudaError_t launch_minimum(double* laid_out, std::size_t count, std::size_t width, double* scratch,
                           double* low, double* high, cudaStream_t stream);

/// A result, and milliseconds by device events.
struct Minimum {
    kernels::reduce::MinMax<double> range;
    double copy_ms = 0;    ///< to the device
    double layout_ms = 0;  ///< putting an element's values side by side
    double reduce_ms = 0;  ///< the median of `repeat` reductions
};

/// Reduces `values`, matrices of `width` numbers none of which is NaN. Errors: unavailable, if they
/// do not fit the device; device.
Result<Minimum> find_minimum(std::span<const double> values, std::size_t width, int device,
                             std::size_t repeat);

}  // namespace gloved::museum
