// Whether a rung answers right: before it is timed.
#pragma once

#include <cstddef>
#include <span>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::bench {

/// Compares a rung's `hits` for `query` with canonical scores. `exact` is the canonical answer of
/// the same k, nothing excluded, so that it has min(k, rows) hits. Right are as many hits, each of
/// another row of the model, in descending order, each score within `bound` of the canonical one,
/// and none whose canonical score is more than 2 · bound below the k-th best: less can be mistaken.
/// Rows whose norm no bound covers (kernels/bounds.hpp) are only counted. The error says what is
/// wrong.
Status check_hits(const format::Model& model, const kernels::QueryVector& query,
                  std::span<const kernels::Hit> hits, std::span<const kernels::Hit> exact,
                  double bound);

}  // namespace gloved::bench
