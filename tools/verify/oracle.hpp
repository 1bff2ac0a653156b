// The oracle: nearest words by a plain float64 loop over all rows. It shares only the hit type with
// the engines.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"

namespace gloved::verify {

/// (coefficient, row) pairs in order of appearance.
using Weights = std::vector<std::pair<double, std::uint32_t>>;
/// Whether a row may be a hit.
using Eligible = std::function<bool(std::uint32_t row, double score)>;

/// The query vector of an expression, as the exactness contract defines it.
std::vector<float> oracle_query(const format::Model& model, const Weights& weights, bool unit);

/// The cosine of `query` with every row, in row order; norms are computed here, not read. NaN for a
/// row that holds NaN.
std::vector<double> oracle_scores(const format::Model& model, std::span<const float> query);

/// Π((1+cos)/2 of positives) / (Π((1+cos)/2 of negatives) + 1e-6) of every row, in row order.
std::vector<double> oracle_cosmul(const format::Model& model,
                                  const std::vector<std::vector<float>>& positives,
                                  const std::vector<std::vector<float>>& negatives);

/// The k best of `scores` among the eligible rows, ties by row. Skips NaN.
std::vector<kernels::Hit> oracle_top(std::span<const double> scores, std::size_t k,
                                     const Eligible& eligible);

}  // namespace gloved::verify
