// How much memory a process has and can still get, as the kernel counts it.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gloved {

struct ProcessMemory {
    std::uint64_t resident_bytes = 0;  ///< VmRSS: pages of mapped files among them
    std::uint64_t own_bytes = 0;       ///< RssAnon + RssShmem: without them
};

/// Reads a file in the format of /proc/self/status. Error: unavailable, if lines are missing.
Result<ProcessMemory> process_memory(const std::string& status_path);

/// Bytes that this process can still allocate: MemAvailable, or what memory.max leaves in its
/// control group (version 2) or one above, if that is less. Unlocked pages of files count as
/// available. `root` stands before all paths. Error: unavailable, where MemAvailable is not there.
Result<std::uint64_t> available_memory(const std::string& root = "");

/// The smallest memory.max of this process's control group (version 2) and all above it; the
/// maximum of the type without one.
std::uint64_t control_group_memory_limit();

/// Gives free memory of all heaps back to the system. Each thread's heap keeps what it has freed;
/// after many reloads that adds up to megabytes.
void trim_heap();

}  // namespace gloved
