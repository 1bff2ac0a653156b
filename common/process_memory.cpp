#include "common/process_memory.hpp"

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "common/control_groups.hpp"

namespace gloved {
namespace {

[[maybe_unused]] constexpr int kLargeBlockBytes = 4 << 20;

/// The number of the line «key number» in a file; without a key, the number that the file begins
/// with. Nothing if there is none.
std::optional<std::uint64_t> read_number(const std::string& path, std::string_view key = {}) {
    std::ifstream file(path);
    std::uint64_t number = 0;
    std::string rest;
    for (std::string word; !key.empty() && file >> word && word != key;) std::getline(file, rest);
    return file >> number ? std::optional(number) : std::nullopt;
}

/// What a control group's memory.max leaves; nothing where it sets no limit.
std::optional<std::uint64_t> available_in_group(const std::string& directory) {
    const auto limit = read_number(directory + "/memory.max");
    const auto current = read_number(directory + "/memory.current");
    if (!limit || !current) return std::nullopt;
    const std::string stat = directory + "/memory.stat";
    const std::uint64_t files = read_number(stat, "active_file").value_or(0) +
                                read_number(stat, "inactive_file").value_or(0);
    const std::uint64_t used = *current - std::min(*current, files);
    return *limit - std::min(*limit, used);
}

}  // namespace

Result<ProcessMemory> process_memory(const std::string& status_path) {
    std::ifstream status(status_path);
    ProcessMemory memory;
    int found = 0;
    for (std::string key; status >> key;) {
        const bool resident = key == "VmRSS:";
        const bool own = key == "RssAnon:" || key == "RssShmem:";
        std::uint64_t kibibytes = 0;
        if ((resident || own) && status >> kibibytes) {
            (resident ? memory.resident_bytes : memory.own_bytes) += kibibytes * 1024;
            ++found;
        }
        std::string rest;
        std::getline(status, rest);
    }
    if (found != 3) {
        return Error{ErrorCode::unavailable,
                     status_path + ": VmRSS, RssAnon and RssShmem are not there"};
    }
    return memory;
}

Result<std::uint64_t> available_memory(const std::string& root) {
    const std::string meminfo = root + "/proc/meminfo";
    const auto kibibytes = read_number(meminfo, "MemAvailable:");
    if (!kibibytes) return Error{ErrorCode::unavailable, meminfo + ": MemAvailable is not there"};
    std::uint64_t available = *kibibytes * 1024;
    for (const std::string& directory : control_groups(root))
        available = std::min(available, available_in_group(directory).value_or(available));
    return available;
}

std::uint64_t control_group_memory_limit() {
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    for (const std::string& directory : control_groups()) {
        // «max» is not a number.
        limit = std::min(limit, read_number(directory + "/memory.max").value_or(limit));
    }
    return limit;
}

void map_large_blocks() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);
#endif
}

std::string mapped_path(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const char* const line_end = line.data() + line.size();
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        const char* const hyphen = std::from_chars(line.data(), line_end, begin, 16).ptr;
        if (hyphen == line_end) continue;
        std::from_chars(hyphen + 1, line_end, end, 16);
        if (wanted < begin || wanted >= end) continue;
        const std::size_t slash = line.find('/');
        return slash == std::string::npos ? std::string() : line.substr(slash);
    }
    return {};
}

void trim_heap() {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

}  // namespace gloved
