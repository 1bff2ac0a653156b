// External sort: the rows of a source in key order, though they do not fit in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/convert/key_sort.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"

namespace gloved::convert {

/// Bits of memory per row of the source: whether it is kept, and a count of kept rows before it.
inline constexpr std::uint64_t kIndexBitsOfRow = 2;

/// A row that is left out because another row has the same key. Lines count from 0.
struct DroppedRow {
    std::uint64_t line = 0;
    std::uint64_t kept_line = 0;
    std::string key;  ///< its first 255 bytes
};

/// Counts dropped rows and lists the first kListedDuplicates of them, so that memory is bounded.
class DroppedRows {
  public:
    void add(DroppedRow row);
    void add(DroppedRows&& others);
    std::uint64_t count() const { return count_; }
    /// In the order of their lines.
    const std::vector<DroppedRow>& listed() {
        trim();
        return listed_;
    }

  private:
    void trim();

    std::uint64_t count_ = 0;
    std::vector<DroppedRow> listed_;
};

/// The keys of a bucket, as they lie in it and in byte order.
struct BucketKeys {
    KeyList keys;                         ///< as they lie in the bucket
    std::vector<std::uint32_t> ordinals;  ///< of each: how many rows stand before it in the source
    std::vector<std::uint32_t> kept;      ///< indices in `keys`, in byte order, one a key
};

/// Divides rows into buckets: each key of a bucket comes before each key of the next. A bucket is
/// small enough to be sorted in memory. It consists of slices, one for each batch with rows in it.
/// The keys of the first batch determine the borders between buckets. Each batch is grouped by
/// bucket and written to the spool as one block, so that writes are sequential. If the first keys
/// were a bad sample (a source in alphabetical order), some buckets are too large; `seal` divides
/// them.
///
/// First `add` and `commit`, then `seal`, then `sort` for every bucket, then `load` and `gather`.
class RowBuckets {
  public:
    /// `bucket_bytes`: memory limit of a bucket. `index_bytes`: memory planned for the list of
    /// slices; a small value makes buckets larger at first. `expected_text_bytes`: the source's
    /// size, or an estimate. A source whose list of slices would exceed `max_index_bytes` is
    /// refused.
    RowBuckets(Spool& spool, std::size_t bucket_bytes, std::uint64_t index_bytes,
               std::uint64_t expected_text_bytes,
               std::uint64_t max_index_bytes = std::numeric_limits<std::uint64_t>::max())
        : spool_(spool),
          bucket_bytes_(bucket_bytes),
          index_bytes_(index_bytes),
          max_index_bytes_(max_index_bytes),
          expected_text_bytes_(expected_text_bytes) {}

    void set_dim(std::size_t dim) { dim_ = dim; }
    /// Writes the batch's rows to the spool. Any thread, batches in any order. `commit` returns the
    /// errors.
    void add(const source::Batch& batch);
    /// Notes how many lines and rows come before the batch. Call it after `add`, in the order of
    /// the source. Errors: io; bad_source for a source that is too large for the memory.
    Status commit(const source::Batch& batch);
    /// Divides buckets that are too large and removes empty ones. Errors: io, interrupted;
    /// bad_source as for `commit`.
    Status seal(const std::atomic<bool>& stop);

    std::size_t size() const { return buckets_.size(); }
    std::uint64_t rows() const { return rows_; }
    /// Size of all keys, duplicates too. Call it before `seal`.
    std::uint64_t key_bytes() const;
    /// Bytes that `seal` writes to the spool again, at least.
    std::uint64_t bytes_to_divide() const;
    /// Sorts the keys of a bucket, tells `dropped` which rows lose against another of the same key,
    /// and notes each row's place in the spool. Once a bucket. Any thread. Errors: io.
    Result<BucketKeys> sort(std::size_t number, source::Duplicates rule, DroppedRows& dropped);
    /// The keys of a sorted bucket. Any thread. Errors: io.
    Result<BucketKeys> load(std::size_t bucket) const;
    /// Puts the vectors of keys.kept, in that order, into `vectors`, shape (kept, dim). Any thread.
    /// Errors: io.
    Status gather(std::size_t bucket, const BucketKeys& keys, std::span<float> vectors) const;

  private:
    /// A batch's rows of one bucket: line numbers (once sorted, places among the kept rows), places
    /// in the batch and key ends (uint32 all), keys; and elsewhere in the block their vectors.
    struct Slice {
        std::uint32_t block = 0;
        std::uint32_t batch = 0;
        std::uint32_t rows = 0;
        std::uint32_t key_bytes = 0;
        std::uint32_t fields_offset = 0;
        std::uint32_t vectors_offset = 0;
    };
    struct Bucket {
        std::vector<Slice> slices;  // by batch once sealed
        std::uint64_t rows = 0;
        std::uint64_t key_bytes = 0;
        bool one_key = false;  // there is nothing to divide
    };
    /// Rows in memory, to be grouped by bucket.
    struct Rows {
        KeyView keys;
        std::span<const std::uint64_t> lines;     // in the batch
        std::span<const std::uint32_t> ordinals;  // in the batch
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
