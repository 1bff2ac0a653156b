// launch_stream: the fastest float32 pass for one query. It copies rows to shared memory in bulk
// (cp.async.bulk), which needs compute capability 9.0 or newer.
#pragma once

#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Whether launch_stream can run a pass: device and code have bulk copies, there is a loop for the
/// model's stride, a block has enough shared memory, and the one query's range is the whole shard.
bool can_stream(const DeviceModel& model, const DeviceQueries& queries, const DeviceShape& shape);

/// Number of warps that launch_stream starts.
std::uint32_t stream_warps(const DeviceModel& model, const DeviceShape& shape);

/// Called by launch_scan (launches.hpp) if can_stream. Writes to `work` what launch_scan's own
/// kernel would, and sets `warps` to stream_warps. Takes the query from queries.host, not from
/// device memory.
cudaError_t launch_stream(const DeviceModel& model, const DeviceQueries& queries,
                          const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                          cudaStream_t stream);

}  // namespace gloved::kernels::cuda
