// launch_stream: the fastest float32 pass for one query. It copies rows to shared memory in bulk
// (cp.async.bulk), which needs compute capability 9.0.
#pragma once

#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Whether launch_stream can run a pass: device and code have bulk copies, there is a loop for the
/// model's stride, and the query's range is the whole shard.
bool can_stream(const DeviceModel& model, const DeviceQueries& queries, const DeviceShape& shape);

/// Number of warps that launch_stream starts.
std::uint32_t stream_warps(const DeviceModel& model, const DeviceShape& shape);

/// Does what launch_scan does (launches.hpp); reads only queries.host.
cudaError_t launch_stream(const DeviceModel& model, const DeviceQueries& queries,
                          const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                          cudaStream_t stream);

}  // namespace gloved::kernels::cuda
