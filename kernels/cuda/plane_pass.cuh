// What the kernels of a pass over the plane for many queries share.
#pragma once

#include <cstdint>

#include "kernels/cuda/launches.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {

/// A part of a plane: every 2^shift-th group from `offset` on.
struct Part {
    std::uint32_t shift = 0;
    std::uint32_t offset = 0;
    std::uint32_t groups = 0;  ///< in all
};

/// A key is the largest estimate of a group, a float whose low bits name the row. Keys up to this
/// one stand for no row.
inline constexpr float kNoKeyAtMost = -1e38F;
inline constexpr std::uint32_t kRowBits = planes::kGroupRows - 1;

/// Multiplies the part's rows with the queries and writes the key of each group to `keys`,
/// (queries, part.groups).
cudaError_t multiply_to_keys(const DeviceModel& model, const DeviceQueries& queries,
                             const Part& part, const Workspace& work, const DeviceShape& shape,
                             cudaStream_t stream);
/// The same, and appends the rows that reach their query's cutoff to `survivors`.
cudaError_t multiply_to_survivors(const DeviceModel& model, const DeviceQueries& queries,
                                  const Part& part, const Workspace& work, const DeviceShape& shape,
                                  cudaStream_t stream);

}  // namespace gloved::kernels::cuda
