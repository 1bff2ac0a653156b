#include "common/process_memory.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>

#include "common/control_groups.hpp"
#include "common/quoting.hpp"

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

/// What note_mapping has noted. A handler of SIGBUS may read it at any time: the entry of pages
/// that somebody reads does not change.
class Mappings {
  public:
    void add(const char* begin, std::size_t bytes, const std::string& path) {
        const std::lock_guard lock(mutex_);
        Mapping* const unused = find(nullptr);
        if (unused == nullptr) return;
        unused->bytes = bytes;
        unused->path = without_control_bytes(path);
        unused->begin = begin;
    }

    void remove(const void* begin) {
        const std::lock_guard lock(mutex_);
        if (Mapping* const mapping = find(begin)) mapping->begin = nullptr;
    }

    std::string_view path_at(const void* address) const {
        for (const Mapping& mapping : all_) {
            const char* const begin = mapping.begin;
            if (begin != nullptr && address >= begin && address < begin + mapping.bytes)
                return mapping.path;
        }
        return {};
    }

  private:
    struct Mapping {
        std::atomic<const char*> begin = nullptr;  // nullptr: unused
        std::size_t bytes = 0;
        std::string path;
    };

    Mapping* find(const void* begin) {
        const auto found = std::ranges::find_if(
            all_, [&](const Mapping& mapping) { return mapping.begin == begin; });
        return found == all_.end() ? nullptr : &*found;
    }

    std::mutex mutex_;  // of `add` and `remove`
    std::array<Mapping, 1024> all_;
};

/// Never destroyed: threads may read mapped files until the process ends.
Mappings& mappings() {
    static auto& mappings = *new Mappings;
    return mappings;
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

void note_mapping(const void* begin, std::size_t bytes, const std::string& path) {
    mappings().add(static_cast<const char*>(begin), bytes, path);
}

void forget_mapping(const void* begin) { mappings().remove(begin); }

std::string_view mapped_path(const void* address) { return mappings().path_at(address); }

void trim_heap() {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

}  // namespace gloved
