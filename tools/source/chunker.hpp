// Cuts a source into batches, at the ends of lines or of binary records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/result.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/input.hpp"

namespace gloved::source {

/// How much a chunk holds, unless a line or a record is longer.
inline constexpr std::size_t kChunkBytes = 4 << 20;
/// Rows of a chunk, but for the first.
inline constexpr std::size_t kMaxBatchRows = std::size_t{1} << 18;

/// What of SourceOptions and of the source matters for cutting it.
struct ChunkerOptions {
    std::vector<char> head;  ///< the first bytes of the input, already read from it
    bool head_is_all = false;
    Detected detected;
    std::uint64_t limit = 0;  ///< lines or records to hand out at most, the header's line not
                              ///< counted; 0: all
    bool discard_too_long = false;
    std::size_t chunk_bytes = kChunkBytes;
};

class Chunker {
  public:
    /// A chunker for lines, or for records where the format is word2vec_bin. It starts behind the
    /// header.
    static std::unique_ptr<Chunker> create(Input& input, ChunkerOptions options);
    virtual ~Chunker() = default;

    /// Fills the reader's part of `batch`, or returns false at the end. A line of more than
    /// kMaxLineBytes makes a batch of its own (`too_long`); with ChunkerOptions::discard_too_long
    /// it is passed over without being held in memory, otherwise the source ends for us there.
    /// Errors: those of Input::read; bad_source for a record that is none.
    virtual Result<bool> next(Batch& batch) = 0;

    /// Whether the limit left something unread.
    bool stopped_at_limit() const { return stopped_at_limit_; }
    /// Bytes handed out or passed over so far.
    std::uint64_t offset() const { return offset_; }
    /// Where data follows the last record that the header promises, but an LF and zeros; known at
    /// the end.
    std::optional<std::uint64_t> surplus_offset() const { return surplus_offset_; }

  protected:
    Chunker(Input& input, ChunkerOptions options);

    /// Makes a batch that was used before one of the place where reading is now; false when all was
    /// handed out.
    bool begin(Batch& batch) const;
    /// Fills `batch.buffer` with what was carried over and with as much of the input as fits;
    /// returns how much that is. All there is, if it is less than the buffer: then input_ended_ is
    /// set.
    Result<std::size_t> fill(Batch& batch);
    /// Reads on from `filled`, into the rest of the buffer. Returns how much is there then.
    Result<std::size_t> read_on(std::vector<char>& buffer, std::size_t filled);

    Input& input_;
    ChunkerOptions options_;
    std::vector<char> carry_;
    std::uint64_t offset_;
    bool input_ended_;
    bool ended_ = false;
    bool stopped_at_limit_ = false;
    std::optional<std::uint64_t> surplus_offset_;
};

}  // namespace gloved::source
