// Measures how fast engines answer queries, beside a plain read of memory and OpenBLAS, for
// gloved-bench.
#pragma once

#include <cstddef>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/settings.hpp"
#include "tools/bench/words.hpp"

namespace gloved::bench {

/// Makes queries for `count` random words, as NEAR does, with the k and the filters of `settings`.
/// Error: as make_query_vector.
Result<std::vector<kernels::Query>> make_queries(const format::Model& model, RandomWords& words,
                                                 std::size_t count, const Settings& settings);

/// Whether the measurement uses a GPU: the engine is cuda, or it is auto or all and cuda can run.
bool wants_device(const Settings& settings);
/// Whether the measurement uses a CPU engine.
bool wants_processor(const Settings& settings);

/// Makes the engines of `settings` and prints how long that took. Measures them in turns with the
/// plain read and OpenBLAS (unless `blas` is nullptr), and prints the table on stdout. Errors:
/// those of making and running engines; interrupted.
Status print_engines(const format::Model& model, const Settings& settings, const OpenBlas* blas);

}  // namespace gloved::bench
