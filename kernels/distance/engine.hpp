// The interface of distance engines, which compute the distances between all rows of a matrix, for
// gloved-distmat. (kernels/engine.hpp is the interface of the engines that search a model.)
#pragma once

#include <cstddef>
#include <string>

#include "common/result.hpp"

namespace gloved::kernels::distance {

/// What a distance of two points x and y is.
enum class Metric {
    sqeuclidean,  ///< Σ (x[k] − y[k])²
    euclidean,    ///< its square root
    cosine,       ///< 1 − cos(x, y) = sqeuclidean / 2; points must have norm 1
};

/// Points: float32, shape (rows, dim), row-major. Not owned. At least one row and one column; every
/// value finite, every norm at most kMaxNorm (prepare.hpp ensures both).
struct PointsView {
    const float* data = nullptr;
    std::size_t rows = 0;
    std::size_t dim = 0;

    const float* row(std::size_t i) const { return data + i * dim; }
};

/// A rectangle of the distance matrix: the distances of `rows` points from first_row on to
/// `columns` points from first_column on.
struct Rectangle {
    std::size_t first_row = 0;
    std::size_t rows = 0;
    std::size_t first_column = 0;
    std::size_t columns = 0;

    /// Whether rows and columns are the same points, so that computing half of the distances
    /// suffices.
    bool on_diagonal() const { return first_row == first_column && rows == columns; }
};

/// Options of an engine.
struct DistanceOptions {
    unsigned threads = 0;   ///< cpu; 0: one per usable processor
    std::string simd = {};  ///< cpu: instruction set (simd_names); empty: the processor's best
    int device = 0;         ///< on a GPU: device number
    /// For tests, on a GPU: the edge of a thread block's square of distances, 32, 64 or 128. Then
    /// even small rectangles are computed in several pieces. 0: the engine chooses.
    unsigned tile = 0;
};

/// Computes distances of one set of points as canonical.hpp defines them, so that every engine
/// gives the same bytes. One thread at a time may call it; an engine has its own threads inside.
class Engine {
  public:
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Sets out[i * stride + j] to the distance of points first_row + i and first_column + j.
    /// Unless `mirror` is nullptr, sets mirror[j * mirror_stride + i] to the same, the transposed
    /// rectangle. Both are host memory and do not overlap. Error: device; the engine is then
    /// unusable.
    virtual Status run(const Rectangle& rectangle, float* out, std::size_t stride, float* mirror,
                       std::size_t mirror_stride) = 0;
    /// Computes the whole distance matrix in the engine's own memory (on a GPU, the device's), and
    /// returns the milliseconds. For benchmarks; the first call may be slower. Errors: unavailable,
    /// if the matrix does not fit; device.
    virtual Result<double> time_resident() = 0;
    /// One line for the user: engine, instruction set or device, threads.
    virtual std::string description() const = 0;

  protected:
    Engine() = default;
};

}  // namespace gloved::kernels::distance
