// Plane: a model's 4-bit codes, from which an engine proves, without reading vectors, which rows
// cannot be in an answer. Also encodes rows and queries for it.
//
// The inequality and the rounding of every step are in docs/certified-search.md; § numbers here
// refer to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/encode.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::planes {

/// The code of one row, as stored.
struct RowCode {
    std::vector<std::uint8_t> codes;  ///< (dim), 0 … the top level
    std::uint16_t projection = 0;  ///< see HACKING.md's glossary; in steps of stored_step, rounded
                                   ///< down by less than kStoredWithin
    std::uint16_t residual = 0;    ///< the same, rounded up by less than kStoredWithin
};

/// A row's projection and residual, as stored (§3).
struct StoredBounds {
    std::uint16_t projection = 0;
    std::uint16_t residual = 0;
};

/// Rounds projection and residual of a row with this norm and these sums to steps of `step`, each
/// to its safe side.
StoredBounds stored_bounds(const CodeSums& sums, double norm, double step);

/// Encodes a row of this norm, which `bound_covers`. The result is the same on every machine and
/// with every `kernel`.
RowCode encode_row(std::span<const float> row, double norm,
                   const EncodeKernel& kernel = best_encode_kernel());

/// What a plane is built from: the vectors and norms of a model, perhaps one that is being written.
struct PlaneSource {
    std::span<const float> vectors;  ///< shape (rows, dim)
    std::span<const double> norms;   ///< shape (rows)
    std::size_t dim = 0;

    PlaneShape shape() const { return {norms.size(), dim}; }
};

/// Encodes the groups from `first` to `last` − 1 into `bytes`, which has exactly their size, in the
/// layout of PlaneShape. The result depends on vectors and norms alone. Throws std::bad_alloc.
void build_groups(const PlaneSource& source, std::size_t first, std::size_t last,
                  std::span<std::byte> bytes);

/// Encodes all groups of a model's plane, on the threads of `pool`. Throws std::bad_alloc.
std::vector<std::byte> build_plane(const format::Model& model, ThreadPool& pool);

/// The rows that a plane cannot rule out, because their norm is not one that `bound_covers`;
/// ascending.
std::vector<Row> uncovered_rows(std::span<const double> norms);

/// A model's plane. Immutable: any number of threads may read. The model must outlive it.
class Plane {
  public:
    /// Uses the plane stored with the model, in place, or builds one on the threads of `pool`.
    /// Throws std::bad_alloc.
    Plane(const format::Model& model, ThreadPool& pool);
    Plane(Plane&&) noexcept = default;
    Plane& operator=(Plane&&) noexcept = default;

    /// Whether the plane is the model's mapped file, which takes no time and no memory of its own.
    bool stored() const { return built_.empty(); }
    const PlaneShape& shape() const { return shape_; }
    /// All groups, in the layout of PlaneShape.
    std::span<const std::byte> bytes() const { return bytes_; }
    /// The bytes from group `group` on.
    const std::byte* group(std::size_t group) const {
        return bytes_.data() + group * shape_.group_bytes();
    }
    /// See uncovered_rows.
    std::span<const Row> uncovered() const { return uncovered_; }

  private:
    PlaneShape shape_;
    std::vector<std::byte> built_;      // empty where the model has a plane
    std::span<const std::byte> bytes_;  // of built_, whose storage does not move with the Plane, or
                                        // of the model
    std::vector<Row> uncovered_;
};

/// A query's direction as integers, its digits Q (§4).
struct PlaneQuery {
    /// (steps, 16): each digit as two bytes, Q = 128 high + low. For each step, the high bytes of
    /// its eight components, then the low bytes.
    std::vector<std::int8_t> bytes;
    DigitFacts facts;
    DigitFacts high_facts;  ///< if only the high bytes are used as digits
};

/// Computes the digits of a query. `largest`, kTwoByteDigit or kOneByteDigit, is the limit on |Q|.
PlaneQuery make_plane_query(const QueryVector& query, int largest = kTwoByteDigit);

}  // namespace gloved::kernels::planes
