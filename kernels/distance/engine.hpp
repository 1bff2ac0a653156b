// What computes the distances between all rows of a matrix: one interface, whatever the hardware.
#pragma once

#include <cstddef>
#include <string>

#include "common/result.hpp"

namespace gloved::kernels::distance {

enum class Metric {
    sqeuclidean,  ///< Σ (x[k] − y[k])²
    euclidean,    ///< its square root
    cosine,  ///< 1 − cos(x, y), which is half of sqeuclidean for rows of norm 1: points must be
             ///< such rows
};

/// float32, shape (rows, dim), row-major. Not owned. At least one row and one column; every value
/// finite, and of norms at most kMaxNorm (prepare.hpp sees to both).
struct PointsView {
    const float* data = nullptr;
    std::size_t rows = 0;
    std::size_t dim = 0;

    const float* row(std::size_t i) const { return data + i * dim; }
};

/// Rows first_row … against rows first_column … of the same points.
struct Rectangle {
    std::size_t first_row = 0;
    std::size_t rows = 0;
    std::size_t first_column = 0;
    std::size_t columns = 0;

    /// Whether rows and columns are the same, so that one half says all.
    bool square() const { return first_row == first_column && rows == columns; }
};

/// What an engine may be told at its making.
struct EngineOptions {
    unsigned threads = 0;   ///< cpu: 0: one a processor that the process may use
    std::string simd = {};  ///< cpu: instruction set by name (see simd_names); empty: the best that
                            ///< the processor has
    int device = 0;         ///< those that run on a GPU: its number
};

/// Distances on one set of points, all of them by canonical.hpp, so that every engine gives the
/// same bytes. One thread at a time (an engine has its own threads inside).
class Engine {
  public:
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// out[i * stride + j] = distance of row first_row + i to row first_column + j. Where `mirror`
    /// is not null, mirror[j * mirror_stride + i] gets the same. Host memory; `out` and `mirror` do
    /// not overlap. A square rectangle may be computed by half. Error: device, after which the
    /// engine is of no more use.
    virtual Status run(const Rectangle& rectangle, float* out, std::size_t stride, float* mirror,
                       std::size_t mirror_stride) = 0;
    /// Milliseconds for all rows × all rows, computed once more and left where the engine computes,
    /// without copies to the host: for measuring; the first call may be slower. Errors:
    /// unavailable, where the result does not fit; device.
    virtual Result<double> time_resident() = 0;
    /// One line for people: the engine's name, instruction set or device, threads.
    virtual std::string description() const = 0;

  protected:
    Engine() = default;
};

}  // namespace gloved::kernels::distance
