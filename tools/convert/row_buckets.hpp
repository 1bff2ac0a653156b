// RowBuckets: sorts the rows of a download by their keys, in buckets, although they do not fit in
// memory (an external sort).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/convert/key_sort.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/report.hpp"

namespace gloved::convert {

/// Bits of memory that a conversion needs for each row of the source, besides the buckets: one says
/// whether the row is kept, the other is its share of counts from which ranks are computed.
inline constexpr std::uint64_t kIndexBitsOfRow = 2;

/// A row that is left out because another row has the same key. Lines count from 0.
struct DroppedRow {
    std::uint64_t line = 0;
    std::uint64_t kept_line = 0;  ///< the line of the other row
    std::string key;              ///< its first 255 bytes
};

/// Counts dropped rows and lists the first source::kListedDuplicates of them, so that memory is
/// bounded. Not safe for concurrent use.
class DroppedRows {
  public:
    /// Adds one row, or those of another list.
    void add(DroppedRow row);
    void add(DroppedRows&& others);
    /// Number of rows added, listed or not.
    std::uint64_t count() const { return count_; }
    /// The listed rows, in the order of their lines.
    const std::vector<DroppedRow>& listed() {
        trim();
        return listed_;
    }

  private:
    void trim();

    std::uint64_t count_ = 0;
    std::vector<DroppedRow> listed_;
};

/// The keys of a bucket, in the order in which its rows are stored, and which of them are kept.
struct BucketKeys {
    KeyList keys;                         ///< all, in stored order
    std::vector<std::uint32_t> ordinals;  ///< for each of `keys`: number of rows before it in the
                                          ///< source
    std::vector<std::uint32_t> kept;      ///< indices in `keys` of the kept rows, one for each
                                          ///< different key, in byte order of the keys
};

/// Divides rows into buckets: all keys of a bucket come before all keys of the next. In the end
/// each bucket is small enough to be sorted in memory.
///
/// The keys of the batch that is added first determine the borders between buckets. The rows of
/// each batch are grouped by bucket and written to the spool as one block, so that writes are
/// sequential. A bucket consists of slices, its parts of these blocks. If the first keys were a bad
/// sample, as in a source in alphabetical order, some buckets are too large; `seal` divides them.
///
/// Call `add` and `commit` for every batch, then `seal`, then `sort` for every bucket, then, in a
/// second pass, `load` and `gather` for every bucket.
class RowBuckets {
  public:
    /// Stores rows in `spool`. `bucket_bytes`: limit on the memory for one bucket. `index_bytes`:
    /// memory planned for the list of slices; less of it makes fewer and larger buckets, until
    /// `seal` divides them. `expected_text_bytes`: the source's size, or an estimate. A source is
    /// refused if the memory that grows with it, mostly the list of slices, would exceed
    /// `max_index_bytes`.
    RowBuckets(Spool& spool, std::size_t bucket_bytes, std::uint64_t index_bytes,
               std::uint64_t expected_text_bytes,
               std::uint64_t max_index_bytes = std::numeric_limits<std::uint64_t>::max())
        : spool_(spool),
          bucket_bytes_(bucket_bytes),
          index_bytes_(index_bytes),
          max_index_bytes_(max_index_bytes),
          expected_text_bytes_(expected_text_bytes) {}

    /// Sets the dim of all rows. Call it before `add`.
    void set_dim(std::size_t dim) { dim_ = dim; }
    /// Writes the batch's rows to the spool. Any thread, batches in any order. An error is returned
    /// by a later `commit`.
    void add(const source::Batch& batch);
    /// Notes how many lines and rows of the source come before the batch. Call it after `add`, in
    /// the order of the source. Errors: io, of any `add` so far; bad_source, if the source is too
    /// large for the memory.
    Status commit(const source::Batch& batch);
    /// Ends the input: divides buckets that are too large and removes empty ones. Errors: io;
    /// interrupted, once `stop` is true; bad_source as `commit`.
    Status seal(const std::atomic<bool>& stop);

    /// Number of buckets.
    std::size_t size() const { return buckets_.size(); }
    /// Number of batches committed.
    std::size_t batches() const { return first_lines_.size(); }
    /// Number of rows added, with duplicates.
    std::uint64_t rows() const { return rows_; }
    /// Bytes of all keys, with duplicates. Call it before `seal`.
    std::uint64_t key_bytes() const;
    /// Minimum number of bytes that `seal` will write to the spool to divide buckets. Call it
    /// before `seal`.
    std::uint64_t bytes_to_divide() const;
    /// Sorts the keys of bucket `number` and decides by `rule` which row of each key is kept; adds
    /// the others to `dropped`. Stores in the spool, for `load`, each row's place among the
    /// bucket's kept rows. Call it once for each bucket. Any thread, each with its own `dropped`.
    /// Error: io.
    Result<BucketKeys> sort(std::size_t number, source::Duplicates rule, DroppedRows& dropped);
    /// Reads again what `sort` returned for a bucket, since not all keys fit in memory. Any thread.
    /// Error: io.
    Result<BucketKeys> load(std::size_t bucket) const;
    /// Reads the vectors of a bucket's kept rows, in the order of keys.kept, into `vectors`, shape
    /// (kept, dim). `keys` is what `load` returned for the bucket. Any thread. Error: io.
    Status gather(std::size_t bucket, const BucketKeys& keys, std::span<float> vectors) const;

  private:
    /// Where a batch's rows of one bucket are in their block of the spool. At fields_offset: for
    /// each row its line number in the batch (`sort` replaces it by the place among the kept rows),
    /// then for each its ordinal in the batch, then for each the end of its key, all uint32; then
    /// the keys. At vectors_offset: the vectors.
    struct Slice {
        std::uint32_t block = 0;
        std::uint32_t batch = 0;
        std::uint32_t rows = 0;
        std::uint32_t key_bytes = 0;
        std::uint32_t fields_offset = 0;
        std::uint32_t vectors_offset = 0;
    };
    struct Bucket {
        std::vector<Slice> slices;  // in the order of the batches, once sealed
        std::uint64_t rows = 0;
        std::uint64_t key_bytes = 0;
        bool one_key = false;  // all rows have the same key, so that it cannot be divided
    };
    /// Rows in memory, to be grouped by bucket.
    struct Rows {
        KeyView keys;
        std::span<const std::uint64_t> lines;     // line number of each row in the batch
        std::span<const std::uint32_t> ordinals;  // number of rows before each in the batch
        const float* vectors = nullptr;
    };
    /// The first keys of all buckets but the first, ascending.
    using Borders = std::vector<std::string>;

    static Borders choose_borders(KeyView sample, std::size_t buckets);
    std::size_t buckets_needed(std::uint64_t rows, std::uint64_t key_bytes) const;
    std::uint64_t memory_bytes(std::uint64_t rows, std::uint64_t key_bytes) const;
    /// A bucket of one slice is never too large: it comes from one batch, whose size is bounded.
    bool too_large(const Bucket& bucket) const {
        return !bucket.one_key && bucket.slices.size() > 1 &&
               memory_bytes(bucket.rows, bucket.key_bytes) > bucket_bytes_;
    }
    static std::vector<Bucket> make_buckets(const Borders& borders);
    /// Writes the rows as one block. Returns a slice for each bucket; some have no rows.
    Result<std::vector<Slice>> write_block(const Rows& rows, std::uint32_t batch,
                                           const Borders& borders);
    void append_slices(const std::vector<Slice>& slices, std::vector<Bucket>& buckets);
    Status load_slice(const Slice& slice, BucketKeys& loaded,
                      std::vector<std::uint64_t>& numbers) const;
    Result<BucketKeys> load_all(const Bucket& bucket, std::vector<std::uint64_t>& numbers) const;
    Status note_places(std::span<const Slice> slices, std::span<const std::uint32_t> places);
    Result<std::vector<Bucket>> divide(const Bucket& bucket, const std::atomic<bool>& stop);
    Status check_index_size() const;

    Spool& spool_;
    std::size_t bucket_bytes_;
    std::uint64_t index_bytes_;
    std::uint64_t max_index_bytes_;
    std::uint64_t expected_text_bytes_;
    std::size_t dim_ = 0;
    std::mutex mutex_;
    bool has_borders_ = false;
    Borders borders_;
    std::vector<Bucket> buckets_;
    Status status_;
    std::uint64_t slices_ = 0;                // of all buckets
    std::vector<std::uint64_t> first_lines_;  // of each batch
    std::vector<std::uint64_t> first_rows_;   // of each batch
    std::uint64_t rows_ = 0;
};

}  // namespace gloved::convert
