// Measures engines next to a plain read of memory and OpenBLAS.
#pragma once

#include <optional>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/settings.hpp"
#include "tools/bench/words.hpp"

namespace gloved::bench {

/// Makes queries for `count` random words, as NEAR does. Error: as make_query_vector.
Result<std::vector<kernels::Query>> make_queries(const format::Model& model, RandomWords& words,
                                                 std::size_t count, std::size_t k);

/// Whether the measurement uses a GPU: the engine is cuda, or auto or all and cuda can run.
bool wants_device(const Settings& settings);
/// Whether the measurement uses a CPU engine.
bool wants_processor(const Settings& settings);

/// Makes the engines of `settings`, prints how long that took, measures them in turns with the
/// plain read and OpenBLAS, and prints the table. `blas` may be null. Errors: of making and running
/// engines; interrupted.
Status print_engines(const format::Model& model, const Settings& settings, const OpenBlas* blas);

}  // namespace gloved::bench
