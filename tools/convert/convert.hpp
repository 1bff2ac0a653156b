// Converts downloads to a model and publishes it: all of gloved-convert's work except its command
// line and exports.
//
//  1. Inputs are read one after the other; lines, rows and batches are numbered on from one to the
//     next. RowBuckets group the rows of each batch by key. Keys of the first batch set the limits
//     of the buckets. Each bucket's rows go to the Spool as one block: first to memory, then to a
//     file.
//  2. After the last row, buckets that are too large are split. The keys of each bucket are sorted
//     once. That gives duplicates, ranks, the exact size of the model, and each row's place in it,
//     which the spool keeps.
//  3. A second pass over the spool moves the vectors to their places. format::ModelWriter writes
//     them.
//  4. `planes` reads the values back piece by piece and writes their codes. --planes-only does only
//     this, for an existing model.
//  5. The model is renamed to its name.
//
// So memory holds a few buckets and never the whole model, and all reads and writes are large. The
// result depends neither on threads nor on memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"

namespace gloved::convert {

/// What to convert and how.
struct ConvertOptions {
    /// Paths of the downloads, one or more, in the order in which they are read; «-» for stdin.
    std::vector<std::string> inputs;
    std::string member;            ///< name of the file in an archive; empty: its only one
    std::string model_dir;         ///< path of the model to make
    source::SourceOptions source;  ///< how to read each; its `limit` is for all together
    source::Duplicates duplicates = source::Duplicates::first;
    /// Limit on the process's memory; 0: a quarter of the machine's, at least kMinMemory.
    std::uint64_t memory_bytes = 0;
    /// The part of memory_bytes in which the spool may hold rows, before it uses its file; nullopt:
    /// half of it.
    std::optional<std::uint64_t> spool_bytes;
    bool planes = true;  ///< write the planes file too
};

/// Minimum of ConvertOptions::memory_bytes.
inline constexpr std::uint64_t kMinMemory = std::uint64_t{256} << 20;

/// Converts options.inputs to a model and publishes it as options.model_dir, with progress on a
/// terminal. Calls `say` on the calling thread with messages for people: what was found, and
/// warnings.
///
/// Inputs are opened before the first is read, except pipes; of the same word in two, the earlier
/// input is the first. Words of a later input have later ranks.
///
/// It works in stages. Lines are parsed, and their rows stored in buckets by key (row_buckets.hpp).
/// The keys of each bucket are sorted, which finds duplicates, ranks and sizes. The buckets are
/// written one after the other. Planes are made from the written values. The process's memory stays
/// below options.memory_bytes for a source of any size. The model's bytes depend neither on memory
/// nor on threads.
///
/// Errors: bad_source, conflict, io; interrupted once `stop` is set. After any error or exception,
/// options.model_dir is unchanged and no other file is left.
Result<source::Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                               const std::function<void(const std::string&)>& say);

}  // namespace gloved::convert
