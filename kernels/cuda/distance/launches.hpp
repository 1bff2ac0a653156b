// The launch function of the distance kernel, which gives the bytes that
// kernels/distance/canonical.hpp defines.
//
// A component of a pair of points costs a subtraction and a fused multiply-add. If no operand had
// to be waited for, the 128 lanes of each multiprocessor would set the limit: half of the pairs of
// 16,384 points of 300 components take 4.0e10 of each, 2.7 ms on an H100 with 132 multiprocessors
// at 1.755 GHz.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/distance/engine.hpp"

namespace gloved::kernels::cuda {

/// On the device, the components of a point are padded with zeros to a multiple of this. The
/// kernel need not know where a point ends, since fma(0, 0, acc) is acc. kBlock of the canonical
/// sum is a multiple of it, too.
inline constexpr std::uint32_t kPointPadding = 32;

/// What a launch computes: the distances of `rectangle`, in `out` and perhaps `mirror`. Pointers
/// are device memory.
struct DistanceTask {
    const float* points = nullptr;  ///< (rows, point_stride), 16-byte aligned
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::size_t point_stride = 0;  ///< dim rounded up to kPointPadding
    distance::Metric metric = distance::Metric::sqeuclidean;
    distance::Rectangle rectangle;
    float* out = nullptr;  ///< (rectangle.rows, stride)
    std::size_t stride = 0;
    float* mirror = nullptr;  ///< (rectangle.columns, mirror_stride): the transposed result.
                              ///< nullptr if not wanted, and on the diagonal
                              ///< (Rectangle::on_diagonal), where `out` is symmetric
    std::size_t mirror_stride = 0;
    int processors = 0;  ///< the device's multiprocessors
};

/// Enqueues the kernel on `stream` and returns at once, with the launch's error. The kernel
/// computes a small square of distances per thread in registers, with 256 threads per block. Of a
/// rectangle on the diagonal it computes only the upper triangle, and writes it twice. `tile` is
/// the edge of a block's square, 32, 64 or 128; 0: chosen by the size of the rectangle.
cudaError_t launch_register_tiled(const DistanceTask& task, unsigned tile, cudaStream_t stream);

}  // namespace gloved::kernels::cuda
