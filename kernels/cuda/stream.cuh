// The float32 pass by bulk copies, for GPUs of compute capability 9.0 and up. Used by estimate.cu
// alone.
#pragma once

#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Whether `launch_stream` can take a pass: the device and the code built for it have bulk copies,
/// the stride is one that it has a loop for, and every row is in the queries' range.
bool can_stream(const DeviceModel& model, const DeviceQueries& queries, const DeviceShape& shape);

/// Warps that launch_stream starts.
std::uint32_t stream_warps(const DeviceModel& model, const DeviceShape& shape);

/// As launch_scan; reads queries.host alone.
cudaError_t launch_stream(const DeviceModel& model, const DeviceQueries& queries,
                          const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                          cudaStream_t stream);

}  // namespace gloved::kernels::cuda
