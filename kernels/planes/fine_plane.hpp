// FinePlane: a model's 7-bit codes, a byte each. They rule out nearly every row that is not in an
// answer, so that batches of many queries, which compute more than they read, are faster with them
// than with the 4-bit plane. They are made by an engine, and not stored.
//
// § numbers refer to docs/certified-search.md.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::planes {

/// A step of the fine plane is 64 bytes with four components of each row of a group: byte 4 r + i
/// of step s is the code of the group's row r for component 4 s + i.
inline constexpr std::size_t kFineStepDims = 4;

/// Encodes a row of this norm, which `bound_covers`, with codes in 0 … 127. A damaged row, whose
/// components are not finite or have another norm, gets bounds that rule it out nowhere and make no
/// threshold.
RowCode encode_fine_row(std::span<const float> row, double norm);

/// Groups of kGroupRows rows: `steps()` steps, then 16 projections and 16 residuals, uint16 each,
/// as in a PlaneShape. Immutable: any number of threads may read.
class FinePlane {
  public:
    /// Encodes all rows on the threads of `pool`. Rows whose norm is not one that `bound_covers`
    /// get codes, projection and residual 0. If `stop` is requested meanwhile, ends soon, and the
    /// plane is no use. Throws std::bad_alloc.
    FinePlane(const format::Model& model, ThreadPool& pool, const std::stop_token& stop = {});

    /// The size of the plane of a model.
    static std::size_t bytes_of(const PlaneShape& shape);

    std::span<const std::byte> bytes() const { return bytes_; }
    std::size_t steps() const { return steps_; }
    std::size_t group_bytes() const { return (steps_ + 1) * kStepBytes; }

  private:
    std::size_t steps_;
    std::vector<std::byte> bytes_;
};

}  // namespace gloved::kernels::planes
