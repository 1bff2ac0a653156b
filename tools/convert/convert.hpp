// From a download to a published model.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"

namespace gloved::convert {

struct ConvertOptions {
    std::string input;   ///< a path, or «-» for stdin
    std::string member;  ///< of a zip archive; empty: the only one
    std::string model_dir;
    source::SourceOptions source;
    source::Duplicates duplicates = source::Duplicates::first;
    /// The memory that a conversion may take; 0: a quarter of the machine's, and kMinMemory at
    /// least.
    std::uint64_t memory_bytes = 0;
    /// What of that holds numbers before the spool file takes them; absent: half of it.
    std::optional<std::uint64_t> spool_bytes;
    bool planes = true;  ///< write the planes file too
};

inline constexpr std::uint64_t kMinMemory = std::uint64_t{256} << 20;

/// Converts options.input to a model and publishes it as options.model_dir, with progress on a
/// terminal. `say` is told, on the calling thread, what was found and what looks odd.
///
/// Stages: lines are parsed and their rows laid aside, grouped by key (row_buckets.hpp); the keys
/// alone are gone through, which tells duplicates, ranks and sizes; then group after group is put
/// in order and written, and planes are made of what was written. The process's own memory stays
/// below options.memory_bytes, whatever the source's size. The model's bytes depend neither on
/// memory nor on threads.
///
/// Errors: bad_source, conflict, io; interrupted once `stop` is set. After any of them, and after
/// an exception, what was at options.model_dir is as it was, and no file of the attempt is left.
Result<source::Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                               const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
