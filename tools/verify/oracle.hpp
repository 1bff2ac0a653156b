// The oracle: finds the nearest words by a plain float64 loop over all rows. Engines are checked
// against it, so it shares no arithmetic with them, only the type of a hit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/engine.hpp"

namespace gloved::verify {

/// An expression as (coefficient, row) pairs, in the order of its words.
using Weights = std::vector<std::pair<double, std::uint32_t>>;
/// Lists of rows, each in ascending order: list i is bit i of Filter::within and without.
using Lists = std::vector<std::vector<std::uint32_t>>;
/// Tells whether a row with this score may be in the answer.
using Eligible = std::function<bool(std::uint32_t row, double score)>;

/// The query vector of an expression, by the rule of kernels/query_vector.hpp: float64 sums in the
/// order of the words, rounded once to float32. `unit`: each row is divided by its norm first.
std::vector<float> oracle_query(const format::Model& model, const Weights& weights, bool unit);

/// Whether a row is in each of the lists `filter.within` and in none of `filter.without`.
bool oracle_takes_lists(const kernels::Filter& filter, const Lists& lists, std::uint32_t row);

/// The norm of every row's vector, in the order of rows: computed, not read.
std::vector<double> oracle_norms(const format::Model& model);

/// The canonical score of every row for `query`, in the order of rows. `norms` are those of
/// oracle_norms, which callers with many queries compute once. NaN for a row that contains NaN.
std::vector<double> oracle_scores(const format::Model& model, std::span<const double> norms,
                                  std::span<const float> query);
std::vector<double> oracle_scores(const format::Model& model, std::span<const float> query);

/// The 3CosMul score of every row, in the order of rows: Π((1+cos)/2 of positives) / (Π((1+cos)/2
/// of negatives) + 1e-6).
std::vector<double> oracle_cosmul(const format::Model& model, std::span<const double> norms,
                                  const std::vector<std::vector<float>>& positives,
                                  const std::vector<std::vector<float>>& negatives);
std::vector<double> oracle_cosmul(const format::Model& model,
                                  const std::vector<std::vector<float>>& positives,
                                  const std::vector<std::vector<float>>& negatives);

/// The k best eligible rows by `scores` (one per row), best first, equal scores in the order of
/// rows. Skips NaN.
std::vector<kernels::Hit> oracle_top(std::span<const double> scores, std::size_t k,
                                     const Eligible& eligible);

}  // namespace gloved::verify
