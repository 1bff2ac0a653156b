// What memory a process has, as the kernel counts it.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gloved {

struct ProcessMemory {
    std::uint64_t resident_bytes = 0;  ///< VmRSS: pages of mapped files among them
    std::uint64_t own_bytes = 0;       ///< RssAnon + RssShmem: without them
};

/// Reads a file like /proc/self/status. Error: unavailable, where the lines are not there.
Result<ProcessMemory> process_memory(const std::string& status_path);

}  // namespace gloved
