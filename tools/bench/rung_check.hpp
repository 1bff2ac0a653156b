// Checks a rung's answers before it is timed.
#pragma once

#include <cstddef>
#include <span>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::bench {

/// Compares a rung's `hits` for `query` with canonical scores. `exact` is the canonical answer for
/// the same k without exclusions, so it has min(k, rows) hits. Correct hits are as many, of
/// different rows, in descending order, each score within `bound` of the canonical one, and no
/// canonical score more than 2 · bound below the k-th best, since smaller differences can be
/// mistaken. Rows whose norm no bound covers (kernels/bounds.hpp) are only counted. The error says
/// what is wrong.
Status check_hits(const format::Model& model, const kernels::QueryVector& query,
                  std::span<const kernels::Hit> hits, std::span<const kernels::Hit> exact,
                  double bound);

}  // namespace gloved::bench
