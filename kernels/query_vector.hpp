// Makes the vector of a query: from words and their coefficients, or from given numbers.
#pragma once

#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels {

/// A coefficient and the row that it multiplies.
struct WeightedRow {
    double coefficient = 1.0;
    Row row = 0;
};

/// Computes Σ coefficient × vector over `terms`: each component is summed in float64 in the given
/// order and rounded once to float32. With `normalize`, each row's vector is divided by its norm
/// first, and a zero vector contributes nothing. One row as it is gives QueryVector::row. Errors:
/// bad_request, if a component of the result is not finite; zero_vector, if its norm is 0.
Result<QueryVector> make_query_vector(const format::Model& model,
                                      std::span<const WeightedRow> terms, bool normalize);

/// Computes Σ coefficient × vector as make_query_vector does; it may be zero. Error: bad_request,
/// if a component is not finite.
Result<std::vector<float>> weighted_sum(const format::Model& model,
                                        std::span<const WeightedRow> terms, bool normalize);

/// As weighted_sum, but divides each component of the sum by Σ |coefficient| before it is rounded
/// to float32. If all coefficients are 0, the mean is zero.
Result<std::vector<float>> weighted_mean(const format::Model& model,
                                         std::span<const WeightedRow> terms, bool normalize);

/// Makes `values`, dim of them, the query vector, and computes its canonical norm (canonical.hpp).
/// Errors as above.
Result<QueryVector> make_query_vector(std::vector<float> values);

}  // namespace gloved::kernels
