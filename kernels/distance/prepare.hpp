// From the rows of a matrix to the float32 points that engines take.
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

/// Points, and their memory where they are not the caller's own.
struct Points {
    std::vector<float> storage;
    PointsView view;  ///< of `storage`, or of the values that were given, which must live on
};

/// What a row is called in messages: «matrix.txt: row 3 (line 5)».
using RowName = std::function<std::string(std::size_t row)>;

/// sqeuclidean, euclidean: float32 values are the points. float64 values are, too, where each is
/// exactly a float32; otherwise the mean of each column is subtracted from it, in float64, before
/// rounding. That changes no distance, and a common offset would take digits from all of them.
/// cosine: each row divided by its norm, in float64, then rounded. canonical.hpp says how far that
/// moves a distance.
///
/// The same values give the same points, whatever the threads. `values` has at least one row and
/// one column. Errors (bad_source), with the name of the first such row: a value that is not
/// finite, with its column; a row of zeros with cosine; values so large that a squared distance
/// might exceed float32; and more columns than canonical.hpp's bound covers.
Result<Points> prepare(ThreadPool& pool, Values values, std::size_t rows, std::size_t dim,
                       Metric metric, const RowName& name);

}  // namespace gloved::kernels::distance
