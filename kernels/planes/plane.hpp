// The plane: a 4-bit copy of a model's directions that proves, without reading vectors, which rows
// cannot be in an answer.
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
    std::vector<std::uint8_t> codes;  ///< (dim), 0 … 15
    std::uint16_t projection = 0;     ///< of the row's direction on its code, rounded down by less
                                      ///< than kStoredWithin
    /// Length of what the code leaves of it, times the code's length, rounded up by less than
    /// kStoredWithin.
    std::uint16_t residual = 0;
};

/// Encodes a row whose norm `bound_covers`. The same on every machine and instruction set.
RowCode encode_row(std::span<const float> row, double norm,
                   const EncodeKernel& kernel = best_encode_kernel());

/// What a plane is built from: a model, or one that is being written.
struct PlaneSource {
    std::span<const float> vectors;  ///< shape (rows, dim)
    std::span<const double> norms;   ///< shape (rows)
    std::size_t dim = 0;

    PlaneShape shape() const { return {norms.size(), dim}; }
};

/// Encodes the groups [first, last) into `bytes`, which has room for exactly them. The layout is
/// shape.hpp's. The result depends on vectors and norms alone. Throws std::bad_alloc.
void build_groups(const PlaneSource& source, std::size_t first, std::size_t last,
                  std::span<std::byte> bytes);

/// Encodes all groups of a model's plane. Throws std::bad_alloc.
std::vector<std::byte> build_plane(const format::Model& model, ThreadPool& pool);

/// Rows that a plane does not cover, because the bounds do not cover their norms; ascending.
std::vector<Row> uncovered_rows(std::span<const double> norms);

/// A model's plane. Immutable. The model outlives it.
class Plane {
  public:
    /// Uses the plane stored with the model, in place, or builds one. Throws std::bad_alloc.
    Plane(const format::Model& model, ThreadPool& pool);
    Plane(Plane&&) noexcept = default;
    Plane& operator=(Plane&&) noexcept = default;

    /// Whether the groups are the model's mapped file. They then take no memory of the process and
    /// no time at start.
    bool stored() const { return built_.empty(); }
    const PlaneShape& shape() const { return shape_; }
    /// All groups.
    std::span<const std::byte> bytes() const { return bytes_; }
    /// Bytes from group `group` on.
    const std::byte* group(std::size_t group) const {
        return bytes_.data() + group * shape_.group_bytes();
    }
    std::span<const Row> uncovered() const { return uncovered_; }

  private:
    PlaneShape shape_;
    std::vector<std::byte> built_;      // empty where the model has a plane
    std::span<const std::byte> bytes_;  // of built_, whose storage does not move with the Plane, or
                                        // of the model
    std::vector<Row> uncovered_;
};

/// A query's direction as integers (§4).
struct PlaneQuery {
    std::vector<std::int16_t> digits;  ///< (steps, 8), Q
    /// (steps, 16), the same as Q = 128 high + low: the high bytes of a step's eight components,
    /// then the low bytes.
    std::vector<std::int8_t> bytes;
    DigitFacts facts;
    DigitFacts high_facts;  ///< of the high bytes alone
};

/// Computes the digits, with |Q| of at most `largest`: kTwoByteDigit or kOneByteDigit.
PlaneQuery make_plane_query(const QueryVector& query, int largest = kTwoByteDigit);

}  // namespace gloved::kernels::planes
