// Builds query vectors from weighted rows.
#pragma once

#include <span>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels {

/// A coefficient and the row that it multiplies.
struct WeightedRow {
    double coefficient = 1.0;
    Row row = 0;
};

/// Σ coefficient × row, summed in float64 in the given order and rounded once to float32. With
/// `unit`, each row is divided by its norm first, and a zero row contributes nothing. Errors:
/// bad_request if an element is not finite, zero_vector if the norm is 0.
Result<QueryVector> make_query_vector(const format::Model& model,
                                      std::span<const WeightedRow> terms, bool unit);

/// Takes `values` as the query vector and computes its canonical norm. Same errors.
Result<QueryVector> make_query_vector(std::vector<float> values);

}  // namespace gloved::kernels
