// How much memory a process has and can still get, and which files it maps, as the kernel tells.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gloved {

/// Memory of a process in RAM.
struct ProcessMemory {
    std::uint64_t resident_bytes = 0;  ///< with pages of mapped files (VmRSS)
    std::uint64_t own_bytes = 0;       ///< without pages of mapped files (RssAnon + RssShmem)
};

/// Reads a file in the format of /proc/self/status. Error: unavailable, if lines are missing.
Result<ProcessMemory> process_memory(const std::string& status_path);

/// Bytes that this process can still allocate: the system's MemAvailable, or, if that is less, what
/// memory.max leaves in the process's control group (version 2) or one above. Unlocked pages of
/// files count as available. `root` is put before all paths, for tests. Error: unavailable, if the
/// system does not tell MemAvailable.
Result<std::uint64_t> available_memory(const std::string& root = "");

/// Bytes: the smallest memory.max of this process's control group (version 2) and all above it;
/// UINT64_MAX if none is set.
std::uint64_t control_group_memory_limit();

/// From now on, every block of 4 MiB or more is a mapping of its own, which goes back to the system
/// when it is freed. By itself, glibc learns from the first large block that is freed: it takes the
/// next ones from a thread's heap, whose free end trim_heap does not reach. Call it at the start.
void map_large_blocks();

/// Returns unused memory of all heaps to the system (malloc_trim). Each thread's heap keeps the
/// memory that was freed in it; after many reloads that adds up to megabytes.
void trim_heap();

/// The path of the file that is mapped at an address, as it is called now; empty if there is none.
/// The kernel writes a line end in it as \012.
std::string mapped_path(const void* address);

}  // namespace gloved
