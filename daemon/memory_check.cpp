#include "daemon/memory_check.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/list_file.hpp"
#include "common/format/planes.hpp"
#include "common/process_memory.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::daemon {
namespace {

/// Of each row: the offset of its key 8, the index of words 12, that of cases 4 at most, the
/// spelling index 9, and 12 more while that is made.
constexpr std::uint64_t kBytesPerRow = 8 + 12 + 4 + 9 + 12;
/// Stacks and buffers of an engine's threads.
constexpr std::uint64_t kEngineBytes = std::uint64_t{8} << 20;

/// The header of the values file in a model's directory.
Result<format::Header> read_header(int directory_fd, const std::string& path) {
    const auto file = open_file_at(directory_fd, format::kValuesFile, path);
    if (!file) return file.error();
    std::array<std::byte, format::kHeaderBytes> bytes;
    if (Status read = read_all_at(file->get(), bytes, 0, path); !read) return read.error();
    return format::decode_header(bytes);
}

/// What the lists of a model take while they are read, one after the other, and what they keep.
std::uint64_t memory_for_lists(std::span<const ListSetting> lists, std::uint64_t rows) {
    if (lists.empty()) return 0;
    std::uint64_t kept = rows * sizeof(kernels::ListMask);
    std::uint64_t largest = 0;
    for (const ListSetting& list : lists) {
        struct stat status {};
        // A list that is no file is made of what the daemon holds of it already.
        const bool is_file = ::stat(list.path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
        const auto bytes = is_file ? static_cast<std::uint64_t>(status.st_size) : 0;
        largest = std::max(largest, format::list_memory_bytes(bytes, rows));
        kept += std::min(rows, std::uint64_t{kernels::kMaxShortList}) * sizeof(format::Row) +
                std::min<std::uint64_t>(bytes, format::kMaxOtherBytes);
    }
    return kept + largest;
}

Status check(const std::string& path, std::uint64_t needed, std::uint64_t available) {
    if (needed <= available) return {};
    return error_with(ErrorCode::unavailable,
                      "{}: loading takes {} MiB of memory, and {} MiB are available", path,
                      needed >> 20, available >> 20);
}

/// What check_memory_for compares with the memory that is available; nullopt if the model cannot be
/// read.
std::optional<std::uint64_t> memory_for(const ModelSetting& setting,
                                        std::span<const ListSetting> lists, bool planes,
                                        bool locks_files) {
    const auto directory = open_directory(setting.path);
    if (!directory) return std::nullopt;
    const auto header = read_header(directory->get(), setting.path);
    if (!header) return std::nullopt;
    const format::PlaneShape plane{static_cast<std::size_t>(header->rows), header->dim};
    const bool has_plane = ::faccessat(directory->get(), format::kPlanesFile, F_OK, 0) == 0;
    std::uint64_t needed =
        header->rows * kBytesPerRow + kEngineBytes + memory_for_lists(lists, header->rows);
    if (planes && !has_plane) needed += plane.bytes();
    if (locks_files) needed += header->file_bytes + (has_plane ? plane.bytes() : 0);
    return needed;
}

}  // namespace

Status check_memory_for(const ModelSetting& setting, std::span<const ListSetting> lists,
                        bool planes, bool locks_files) {
    const auto needed = memory_for(setting, lists, planes, locks_files);
    const auto available = available_memory();
    return needed && available ? check(setting.path, *needed, *available) : Status();
}

Status check_memory_for_fine_plane(const ModelSetting& setting, bool planes, std::size_t bytes) {
    const auto available = available_memory();
    // As if its files were locked, even where they are not: a model that does not stay in memory is
    // slower than one without a fine plane.
    const auto reload = memory_for(setting, setting.lists, planes, true).value_or(0);
    if (!available || bytes + reload <= *available) return {};
    return error_with(ErrorCode::unavailable,
                      "it takes {} MiB of memory and a reload {} MiB, and {} MiB are available",
                      bytes >> 20, reload >> 20, *available >> 20);
}

Status check_memory_for_lists(const ModelSetting& setting, std::span<const ListSetting> lists,
                              std::size_t rows) {
    const auto available = available_memory();
    return available ? check(setting.path, memory_for_lists(lists, rows), *available) : Status();
}

}  // namespace gloved::daemon
