// Chunker: divides the bytes of a source into batches, each of which ends at the end of a line, of
// a binary record or of an array's row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/result.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/input.hpp"
#include "tools/source/token_list.hpp"

namespace gloved::source {

/// Bytes of a batch, unless one line or record is longer.
inline constexpr std::size_t kChunkBytes = 4 << 20;
/// Maximum number of rows in a batch.
inline constexpr std::size_t kMaxBatchRows = std::size_t{1} << 18;

/// How to divide a source: from SourceOptions and from what detect() found.
struct ChunkerOptions {
    Detected detected;
    /// Maximum number of lines or records, without the header's line; 0: all.
    std::uint64_t limit = 0;
    bool skip_faults = false;          ///< see next() and make_array_chunker
    std::unique_ptr<TokenList> words;  ///< of an array
    std::size_t chunk_bytes = kChunkBytes;
};

/// Reads an Input and fills batches with its bytes. Not safe for concurrent use.
class Chunker {
  public:
    /// Creates a chunker for lines, records of word2vec_bin, or rows of an array. `input`, which
    /// must outlive it, has been read up to options.detected.body_offset.
    static std::unique_ptr<Chunker> create(Input& input, ChunkerOptions options);
    virtual ~Chunker() = default;

    /// Fills the chunker's part of `batch`, or returns false at the end. A line of more than
    /// kMaxLineBytes is replaced by an empty batch marked `too_long`. With skip_faults the next
    /// batch follows the line, and the line takes bounded memory; otherwise the source ends there.
    /// Errors: those of Input::read; bad_source for a malformed record.
    virtual Result<bool> next(Batch& batch) = 0;

    /// Whether the source continues after the limit.
    bool stopped_at_limit() const { return stopped_at_limit_; }
    /// Number of bytes of the source that were returned or skipped so far.
    std::uint64_t offset() const { return offset_; }
    /// In a binary format: offset of data after the last record or row that the header promises;
    /// nullopt if there is none, or of records if it is an LF and NULs. Known once `next` has
    /// returned false.
    std::optional<std::uint64_t> surplus_offset() const { return surplus_offset_; }

  protected:
    Chunker(Input& input, ChunkerOptions options);

    /// How many of the rows that a binary source's header promises are within the limit.
    std::uint64_t rows_within_limit() const;
    /// Resets `batch` for the current offset; false at the end.
    bool start(Batch& batch) const;
    /// Fills `batch.buffer` from the input. Returns the number of bytes in it; fewer than its size
    /// mean the end of the input.
    Result<std::size_t> fill_buffer(Batch& batch);
    /// The same from position `filled` on, up to which it is full, of a buffer of `bytes`.
    Result<std::size_t> read_on(std::vector<char>& buffer, std::size_t filled, std::size_t bytes);
    /// Puts back what the buffer holds from `begin` to `filled`, for the next batch.
    void put_back(const std::vector<char>& buffer, std::size_t begin, std::size_t filled);

    Input& input_;
    ChunkerOptions options_;
    std::uint64_t offset_;
    bool ended_ = false;
    bool stopped_at_limit_ = false;
    std::optional<std::uint64_t> surplus_offset_;
};

}  // namespace gloved::source
