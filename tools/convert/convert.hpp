// Converts a download to a model and publishes it.
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
    std::string member;  ///< of a zip archive; empty: its only member
    std::string model_dir;
    source::SourceOptions source;
    source::Duplicates duplicates = source::Duplicates::first;
    /// Memory limit; 0: a quarter of the machine's, and kMinMemory at least.
    std::uint64_t memory_bytes = 0;
    /// The part of memory_bytes that holds rows before the spool's file takes them; absent: half.
    std::optional<std::uint64_t> spool_bytes;
    bool planes = true;  ///< write the planes file too
};

inline constexpr std::uint64_t kMinMemory = std::uint64_t{256} << 20;

/// Converts options.input to a model and publishes it as options.model_dir, with progress on a
/// terminal. Calls `say` on the calling thread with what was found and with warnings. Stages: lines
/// are parsed, and their rows stored in buckets by key (row_buckets.hpp); the keys of each bucket
/// are sorted, which finds duplicates, ranks and sizes; bucket after bucket is written in order;
/// planes are made of the written values. The process's memory stays below options.memory_bytes for
/// a source of any size. The model's bytes depend neither on memory nor on threads.
///
/// Errors: bad_source, conflict, io; interrupted once `stop` is set. After any error or exception,
/// options.model_dir is unchanged and no other file is left.
Result<source::Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                               const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
