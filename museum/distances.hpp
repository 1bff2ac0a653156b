// The distances between all rows of a matrix, as the student project computed them. All ways give
// the canonical bytes (kernels/distance/canonical.hpp).
//
// A component of a pair of points costs a subtraction and a fused multiply-add. If no operand had
// to be waited for, the 128 lanes of each multiprocessor would set the limit. These kernels show
// what it takes not to wait for operands.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::museum {

/// On the device, the components of a point are padded with zeros to a multiple of this, which no
/// tile's edge exceeds. Kernels need not know where a point ends, since fma(0, 0, acc) is acc.
inline constexpr std::size_t kPointPadding = 32;

/// What a launch computes: the squared Euclidean distances of all pairs of points. Device memory.
struct DistanceTask {
    const float* points = nullptr;  ///< (rows, stride)
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::size_t stride = 0;  ///< dim rounded up to kPointPadding
    float* out = nullptr;    ///< (rows, rows)
};

/// Each enqueues on `stream`, and returns the launch's error.
cudaError_t launch_global(const DistanceTask& task, cudaStream_t stream);
template <unsigned kTile>
cudaError_t launch_shared(const DistanceTask& task, cudaStream_t stream);

/// A way to compute them.
struct DistanceVersion {
    std::string_view name;
    std::string_view idea;  ///< one sentence
    /// nullptr: the plain loop, on one thread of the processor.
    cudaError_t (*launch)(const DistanceTask& task, cudaStream_t stream) = nullptr;
};

/// sequential, global, shared8, shared16, shared32.
std::span<const DistanceVersion> distance_versions();

/// A result, and milliseconds of `repeat` computations: of the kernel alone, by device events,
/// after one that does not count; of the plain loop by the host's clock.
struct Distances {
    std::vector<float> values;  ///< (rows, rows)
    std::vector<double> ms;
};

/// `points`: (rows, dim). Errors: unavailable, if they do not fit the device; device.
Result<Distances> find_distances(const DistanceVersion& version, std::span<const float> points,
                                 std::size_t rows, int device, std::size_t repeat);

}  // namespace gloved::museum
