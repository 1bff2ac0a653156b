// What plane_pass.cu and plane_multiply.cu share: the two halves of a pass over the plane for many
// queries. plane_pass.cu goes through the plane in parts; plane_multiply.cu multiplies codes.
#pragma once

#include <cstdint>

#include "kernels/cuda/launches.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// A part of a plane: every 2^shift-th group, from group `offset` on.
struct Part {
    std::uint32_t shift = 0;
    std::uint32_t offset = 0;
    std::uint32_t groups = 0;  ///< number of groups in the part
};

/// The key of a group is the largest estimate of its rows, a float whose lowest bits (kRowBits) are
/// replaced by the number of that row within the group. Keys up to this one stand for no row.
inline constexpr float kNoKeyAtMost = -1e38F;
inline constexpr std::uint32_t kRowBits = planes::kGroupRows - 1;

/// Multiplies the part's codes with the queries' digits, and writes each group's key for each query
/// to `work.plane.keys`, shape (queries, part.groups).
cudaError_t multiply_to_keys(const DeviceModel& model, const DeviceQueries& queries,
                             const Part& part, const Workspace& work, const DeviceShape& shape,
                             cudaStream_t stream);
/// Multiplies in the same way, and appends to `work.plane.survivors` the rows of the part that
/// reach a query's cutoff.
cudaError_t multiply_to_survivors(const DeviceModel& model, const DeviceQueries& queries,
                                  const Part& part, const Workspace& work, const DeviceShape& shape,
                                  cudaStream_t stream);

}  // namespace gloved::kernels::cuda
