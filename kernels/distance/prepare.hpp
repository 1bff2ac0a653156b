// Converts the rows of a matrix to the float32 points that engines take.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::distance {

/// Shape (rows, dim), row-major.
using Values = std::variant<std::span<const float>, std::span<const double>>;

/// Points, and their memory unless it is the caller's.
struct Points {
    std::vector<float> storage;
    PointsView view;  ///< of `storage`, or of the values given, which must outlive it
};

/// Names a row in messages: «matrix.txt: row 3 (line 5)».
using RowName = std::function<std::string(std::size_t row)>;

/// sqeuclidean, euclidean: float32 values are the points, and so are float64 values that are all
/// exactly float32. From other float64 values the mean of each column is subtracted, in float64,
/// before rounding. That changes no distance, and a common offset would cost digits. cosine: each
/// row is divided by its norm, in float64, then rounded. canonical.hpp bounds the effect on a
/// distance.
///
/// The same values give the same points for any number of threads. `values` has at least one row
/// and one column. Errors (bad_source), naming the first such row: a value that is not finite, with
/// its column; a row of zeros with cosine; values so large that a squared distance may exceed
/// float32; more columns than canonical.hpp's bound covers.
Result<Points> prepare(ThreadPool& pool, Values values, std::size_t rows, std::size_t dim,
                       Metric metric, const RowName& name);

}  // namespace gloved::kernels::distance
