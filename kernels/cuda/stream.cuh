// The float32 pass by bulk copies, for GPUs of compute capability 9.0 and up.
#pragma once

#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Whether launch_stream can take a pass: device and code have bulk copies, there is a loop for the
/// stride, and every row is in the queries' range.
bool can_stream(const DeviceModel& model, const DeviceQueries& queries, const DeviceShape& shape);

/// Warps that launch_stream starts.
std::uint32_t stream_warps(const DeviceModel& model, const DeviceShape& shape);

/// Does what launch_scan does; reads only queries.host.
cudaError_t launch_stream(const DeviceModel& model, const DeviceQueries& queries,
                          const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                          cudaStream_t stream);

}  // namespace gloved::kernels::cuda
