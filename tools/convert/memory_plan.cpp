#include "tools/convert/memory_plan.hpp"

#include <unistd.h>

#include <algorithm>

#include "common/process_memory.hpp"

namespace gloved::convert {
namespace {

/// Memory of a batch: its text, its numbers, and the block that is written.
constexpr std::uint64_t kBatchMemoryBytes = 16 << 20;
/// Larger buckets gain nothing: slices have ten KiB and more already.
constexpr std::uint64_t kMaxBucketBytes = 32 << 20;

std::uint64_t default_memory() {
    const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
    const auto page_bytes = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGE_SIZE), 0L));
    return std::max(std::min(pages * page_bytes, control_group_memory_limit()) / 4, kMinMemory);
}

}  // namespace

MemoryPlan plan_memory(const ConvertOptions& options) {
    const std::uint64_t memory =
        options.memory_bytes == 0 ? default_memory() : options.memory_bytes;
    const std::uint64_t worker_bytes = memory / 4;
    MemoryPlan plan;
    // run_ordered has two items more than threads.
    const std::uint64_t max_threads = worker_bytes / kBatchMemoryBytes;
    plan.threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
        options.source.threads, 1, std::max<std::uint64_t>(max_threads, 3) - 2));
    plan.index_bytes = memory / 8;
    plan.spool_bytes = options.spool_bytes.value_or(memory / 2);
    plan.bucket_bytes = static_cast<std::size_t>(
        std::min<std::uint64_t>(worker_bytes / (plan.threads + 2), kMaxBucketBytes));
    return plan;
}

}  // namespace gloved::convert
