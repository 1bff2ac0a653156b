// Launch functions of the distance kernels: rungs of one ladder, all with the same bytes
// (kernels/distance/canonical.hpp).
//
// Each rung is a file: global.cu, shared.cu, register_tiled.cu. A component of a pair costs a
// subtraction and a fused multiply-add, so that 128 lanes a multiprocessor set the limit once
// operands are at hand: 16,384 x 300 by halves are 4.0e10 pairs of components, 2.7 ms on an H100 of
// 132 multiprocessors at 1.755 GHz. The lower rungs show what it takes to have them at hand.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/distance/engine.hpp"

namespace gloved::kernels::cuda {

/// Rows of points on the device are padded with zeros to a multiple of this: fma(0, 0, acc) is acc,
/// so that kernels need not know where a row ends. A block of the canonical sum is a multiple of
/// it, too.
inline constexpr std::uint32_t kPointPadding = 32;

/// What a launch computes. Pointers are device memory.
struct DistanceTask {
    const float* points = nullptr;  ///< (rows, point_stride), 16-byte aligned
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::size_t point_stride = 0;  ///< dim rounded up to kPointPadding
    distance::Metric metric = distance::Metric::sqeuclidean;
    distance::Rectangle rectangle;
    float* out = nullptr;  ///< (rectangle.rows, stride)
    std::size_t stride = 0;
    float* mirror = nullptr;  ///< (rectangle.columns, mirror_stride), or null. Of a square
                              ///< rectangle it is null: `out` is symmetric
    std::size_t mirror_stride = 0;
    int processors = 0;  ///< the device's multiprocessors
};

// Each function enqueues on `stream` and returns at once, with the launch's error.

/// Computes one distance a thread, which reads both rows from global memory.
cudaError_t launch_global(const DistanceTask& task, cudaStream_t stream);

/// Computes one distance a thread in blocks of `tile` x `tile`, which copy tiles of both operands
/// to shared memory. tile: 8, 16 or 32.
cudaError_t launch_shared(const DistanceTask& task, unsigned tile, cudaStream_t stream);

/// Computes a square of distances a thread in registers, 256 threads a block. Of a square rectangle
/// only the upper triangle is computed, and written twice. `tile`: edge of a block's square, 32, 64
/// or 128; 0: chosen by size.
cudaError_t launch_register_tiled(const DistanceTask& task, unsigned tile, cudaStream_t stream);

}  // namespace gloved::kernels::cuda
