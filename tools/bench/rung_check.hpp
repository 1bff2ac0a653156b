// Checks the answers of a rung, a version of a kernel in kernels/cuda/ladder, before it is timed.
#pragma once

#include <span>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::bench {

/// Checks a rung's `hits` for `query`, whose scores may be off by `bound`. `exact` is the canonical
/// answer for the same k without excluded rows, so it has min(k, rows) hits. `hits` must have as
/// many, of different rows, in descending order of scores. Each score must be within `bound` of the
/// row's canonical score, which may be at most 2 · bound below the last of `exact`. The scores of
/// rows whose norm the bounds do not cover (kernels/bounds.hpp) are not checked so. The error says
/// what is wrong.
Status check_hits(const format::Model& model, const kernels::QueryVector& query,
                  std::span<const kernels::Hit> hits, std::span<const kernels::Hit> exact,
                  double bound);

}  // namespace gloved::bench
