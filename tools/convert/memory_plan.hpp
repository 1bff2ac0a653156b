// How a conversion divides its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/convert/convert.hpp"

namespace gloved::convert {

struct MemoryPlan {
    std::size_t threads = 1;
    std::uint64_t spool_bytes = 0;
    std::size_t bucket_bytes = 0;
    std::uint64_t index_bytes = 0;
};

/// Half for the spool, a quarter for what threads work on (batches, then buckets), and a quarter
/// for all that grows with the number of rows.
MemoryPlan plan_memory(const ConvertOptions& options);

}  // namespace gloved::convert
