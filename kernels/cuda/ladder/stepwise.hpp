// One search in the way that v1 to v3 have in common: DotProduct writes an entry for every row,
// FirstMerge and BotchedMergeSort select from them; every query allocates what it needs and gives
// it back, and the host waits after every step. v4 is what remains without the last two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/ladder/entry.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/cuda/ladder/phases.hpp"
#include "kernels/cuda/ladder/selection.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {

/// The launch signature that the DotProduct kernels of v1 to v4 share. All pointers are device
/// memory.
struct DotArguments {
    const float* vectors = nullptr;  ///< (rows, dim), 256-byte aligned; single rows are only 4-byte
                                     ///< aligned
    const float* norms = nullptr;    ///< (rows)
    const float* query = nullptr;    ///< (dim), scaled
    Entry* entries = nullptr;  ///< (slots) written: a row's score, or a default entry from `rows`
                               ///< on
    std::size_t rows = 0;
    std::size_t slots = 0;  ///< rows rounded up to whole lists
    std::uint32_t dim = 0;
    float query_norm = 0;
};

/// Enqueues a DotProduct kernel.
using LaunchDot = Status (*)(const DotArguments& arguments, const cuda::Stream& stream);

/// What a search needs of its rung. The device is current.
struct StepwiseSearch {
    LaunchDot launch_dot = nullptr;
    ListsIn lists_in = ListsIn::private_memory;
    const float* vectors = nullptr;  ///< device memory, as in DotArguments
    const float* norms = nullptr;
    std::size_t rows = 0;
    std::size_t dim = 0;
};

/// `times`, where given, gets the three phases; `total` is the caller's. Errors: device.
Result<std::vector<Hit>> run_stepwise(const StepwiseSearch& search, const QueryVector& query,
                                      std::size_t k, const cuda::Stream& stream, Phases& phases,
                                      RungTimes* times);

}  // namespace gloved::kernels::ladder
