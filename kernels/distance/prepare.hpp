// Converts the rows of a matrix to the float32 points that distance engines compute with.
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

/// The values of a matrix, shape (rows, dim), row-major.
using Values = std::variant<std::span<const float>, std::span<const double>>;

/// Points, and their memory if they are not the caller's values themselves.
struct Points {
    std::vector<float> storage;
    PointsView view;  ///< of `storage`, or of the caller's values, which must then outlive it
};

/// Names a row in messages: «matrix.txt: row 3 (line 5)».
using RowName = std::function<std::string(std::size_t row)>;

/// Makes the points for a metric. For sqeuclidean and euclidean, float32 values are the points
/// themselves, and so are float64 values that are all exactly float32. Of other float64 values, the
/// mean of each column is subtracted, in float64, before they are rounded: that changes no
/// distance, and rounding loses less. For cosine, each row is divided by its norm, in float64, then
/// rounded. canonical.hpp bounds the effect of rounding on a distance.
///
/// The same values give the same points for any number of threads. `values` has at least one row
/// and one column. Error: bad_source, whose message names the first row (`name`) at fault, for a
/// value that is not finite; a row of zeros with cosine; values so large that a squared distance
/// may exceed float32; more columns than kMaxDim.
Result<Points> prepare(ThreadPool& pool, Values values, std::size_t rows, std::size_t dim,
                       Metric metric, const RowName& name);

}  // namespace gloved::kernels::distance
