#include "tools/convert/row_buckets.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

/// Memory of a row of a loaded bucket beside key and vector: end, line, ordinal, place, sort
/// entries.
constexpr std::size_t kRowBytes = 64;
/// Bytes of a row in a block beside key and vector: line, ordinal in the batch, end of the key.
constexpr std::size_t kRowFieldBytes = 3 * sizeof(std::uint32_t);
/// Buckets made per bucket that the sample asks for: samples are inexact.
constexpr double kBucketsPerEstimate = 1.3;
/// With fewer sampled keys per bucket, borders would be arbitrary.
constexpr std::size_t kMinSampledKeysPerBucket = 4;
/// Slices that borders are sampled from when a bucket is divided.
constexpr std::size_t kSampledSlices = 64;
constexpr std::size_t kListedKeyBytes = 255;
constexpr std::size_t kSampledKeysPerSlice = 1024;
/// The place of a row that is not kept.
constexpr auto kDropped = std::numeric_limits<std::uint32_t>::max();

/// The part of a key that reports list: keys may be 64 KiB long.
std::string listed_key(std::string_view key) { return std::string(key.substr(0, kListedKeyBytes)); }

}  // namespace

void DroppedRows::add(DroppedRow row) {
    ++count_;
    listed_.push_back(std::move(row));
    if (listed_.size() >= 2 * source::kListedDuplicates) trim();
}

void DroppedRows::add(DroppedRows&& others) {
    count_ += others.count_;
    std::move(others.listed_.begin(), others.listed_.end(), std::back_inserter(listed_));
    trim();
}

void DroppedRows::trim() {
    std::ranges::sort(listed_, {}, &DroppedRow::line);
    if (listed_.size() > source::kListedDuplicates) listed_.resize(source::kListedDuplicates);
}

std::uint64_t RowBuckets::memory_bytes(std::uint64_t rows, std::uint64_t key_bytes) const {
    return rows * (dim_ * sizeof(float) + kRowBytes) + key_bytes;
}

std::size_t RowBuckets::buckets_needed(std::uint64_t rows, std::uint64_t key_bytes) const {
    const double needed =
        static_cast<double>(memory_bytes(rows, key_bytes)) / static_cast<double>(bucket_bytes_);
    return needed <= 1 ? 1 : static_cast<std::size_t>(needed * kBucketsPerEstimate) + 1;
}

RowBuckets::Borders RowBuckets::choose_borders(KeyView sample, std::size_t buckets) {
    buckets = std::min(buckets, sample.size() / kMinSampledKeysPerBucket);
    if (buckets <= 1) return {};
    const auto order = sort_keys(sample);
    const std::string_view smallest = sample[order.front()];
    Borders borders;
    for (std::size_t i = 1; i < buckets; ++i) {
        const std::string_view key = sample[order[i * order.size() / buckets]];
        const bool again = !borders.empty() && borders.back() == key;
        if (borders.empty() || borders.back() < key) borders.emplace_back(key);
        // A very frequent key gets a bucket of its own: [key, key + NUL). No key holds a NUL. So
        // does the smallest key: a border before it alone would divide nothing.
        if (again || (borders.size() == 1 && key == smallest))
            borders.emplace_back(std::string(key) + '\0');
    }
    return borders;
}

std::vector<RowBuckets::Bucket> RowBuckets::make_buckets(const Borders& borders) {
    std::vector<Bucket> buckets(borders.size() + 1);
    for (std::size_t i = 1; i < borders.size(); ++i) {
        buckets[i].one_key =
            borders[i].size() == borders[i - 1].size() + 1 && borders[i].back() == '\0';
    }
    return buckets;
}

Result<std::vector<RowBuckets::Slice>> RowBuckets::write_block(const Rows& rows,
                                                               std::uint32_t batch,
                                                               const Borders& borders) {
    const KeyView keys = rows.keys;
    const std::size_t row_bytes = dim_ * sizeof(float);
    std::vector<Slice> slices(borders.size() + 1);
    std::vector<std::uint32_t> bucket_of(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::string_view key = keys[i];
        const auto above = std::ranges::upper_bound(borders, key);
        bucket_of[i] = static_cast<std::uint32_t>(above - borders.begin());
        Slice& slice = slices[bucket_of[i]];
        ++slice.rows;
        slice.key_bytes += static_cast<std::uint32_t>(key.size());
    }
    std::size_t size = 0;
    for (Slice& slice : slices) {
        slice.batch = batch;
        slice.fields_offset = static_cast<std::uint32_t>(size);
        size += slice.rows * kRowFieldBytes + slice.key_bytes;
    }
    size = (size + alignof(float) - 1) / alignof(float) * alignof(float);
    for (Slice& slice : slices) {
        slice.vectors_offset = static_cast<std::uint32_t>(size);
        size += slice.rows * row_bytes;
    }
    assert(size <= std::numeric_limits<std::uint32_t>::max());

    Spool::Draft block = spool_.begin(size);
    struct Cursor {
        std::byte* line;
        std::byte* ordinal;
        std::byte* end;
        std::byte* key;
        std::byte* vector;
        std::uint32_t key_end = 0;
    };
    std::vector<Cursor> cursors;
    for (const Slice& slice : slices) {
        std::byte* const fields = block.bytes + slice.fields_offset;
        const std::size_t numbers = slice.rows * sizeof(std::uint32_t);
        cursors.push_back({fields, fields + numbers, fields + 2 * numbers, fields + 3 * numbers,
                           block.bytes + slice.vectors_offset});
    }
    // The fields of a slice follow the keys of another, so they are not aligned: memcpy.
    const auto put = [](std::byte*& to, const void* from, std::size_t bytes) {
        std::memcpy(to, from, bytes);
        to += bytes;
    };
    for (std::size_t i = 0; i < keys.size(); ++i) {
        Cursor& cursor = cursors[bucket_of[i]];
        const std::string_view key = keys[i];
        const auto line = static_cast<std::uint32_t>(rows.lines[i]);
        cursor.key_end += static_cast<std::uint32_t>(key.size());
        put(cursor.line, &line, sizeof line);
        put(cursor.ordinal, &rows.ordinals[i], sizeof rows.ordinals[i]);
        put(cursor.end, &cursor.key_end, sizeof cursor.key_end);
        put(cursor.key, key.data(), key.size());
        put(cursor.vector, rows.vectors + i * dim_, row_bytes);
    }
    auto number = spool_.finish(std::move(block));
    if (!number) return number.error();
    for (Slice& slice : slices) slice.block = *number;
    return slices;
}

void RowBuckets::append_slices(const std::vector<Slice>& slices, std::vector<Bucket>& buckets) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
        if (slices[i].rows == 0) continue;
        buckets[i].slices.push_back(slices[i]);
        ++slices_;
        buckets[i].rows += slices[i].rows;
        buckets[i].key_bytes += slices[i].key_bytes;
    }
}

void RowBuckets::add(const source::Batch& batch) {
    if (batch.rows() == 0) return;
    const KeyView keys{batch.keys, batch.key_ends};
    {
        const std::lock_guard lock(mutex_);
        if (!has_borders_) {
            // The batch that comes first is not always the first of the source: borders may differ
            // from run to run, the model does not.
            const double batches =
                std::max(1.0, static_cast<double>(expected_text_bytes_) /
                                  static_cast<double>(std::max<std::size_t>(batch.text_bytes, 1)));
            const auto all = [&](std::size_t of_batch) {
                return static_cast<std::uint64_t>(static_cast<double>(of_batch) * batches);
            };
            const auto slices = static_cast<std::size_t>(static_cast<double>(index_bytes_) /
                                                         (sizeof(Slice) * batches));
            const std::size_t needed = buckets_needed(all(batch.rows()), all(keys.bytes.size()));
            borders_ = choose_borders(keys, std::min(needed, std::max<std::size_t>(slices, 1)));
            buckets_ = make_buckets(borders_);
            has_borders_ = true;
        }
    }
    std::vector<std::uint32_t> ordinals(batch.rows());
    std::iota(ordinals.begin(), ordinals.end(), 0U);
    auto slices = write_block({keys, batch.line_numbers, ordinals, batch.values.data()},
                              static_cast<std::uint32_t>(batch.sequence), borders_);
    const std::lock_guard lock(mutex_);
    if (slices) {
        append_slices(*slices, buckets_);
    } else if (status_) {
        status_ = slices.error();
    }
}

Status RowBuckets::commit(const source::Batch& batch) {
    assert(batch.sequence == first_lines_.size());
    first_lines_.push_back(batch.first_line);
    first_rows_.push_back(rows_);
    rows_ += batch.rows();
    const std::lock_guard lock(mutex_);
    if (!status_) return status_;
    return check_index_size();
}

/// Checks the memory that grows with the source: slices, batches, and kIndexBitsOfRow a row.
Status RowBuckets::check_index_size() const {
    const std::uint64_t bytes = slices_ * sizeof(Slice) +
                                first_lines_.size() * 2 * sizeof(std::uint64_t) +
                                rows_ * kIndexBitsOfRow / 8;
    if (bytes <= max_index_bytes_) return {};
    return bad_source(
        "the source is too large to be kept in order in this memory ({} words so "
        "far); give a larger --memory, or take fewer words (--limit)",
        rows_);
}

/// Appends the slice's keys and ordinals to `loaded`, and to `numbers` its lines or, once sorted,
/// its places. Lines and ordinals count in the batch.
Status RowBuckets::load_slice(const Slice& slice, BucketKeys& loaded,
                              std::vector<std::uint64_t>& numbers) const {
    const std::size_t column = slice.rows * sizeof(std::uint32_t);
    std::vector<std::byte> fields(slice.rows * kRowFieldBytes + slice.key_bytes);
    if (Status read = spool_.read(slice.block, slice.fields_offset, fields); !read) return read;
    const std::size_t keys_before = loaded.keys.bytes.size();
    for (std::size_t i = 0; i < slice.rows; ++i) {
        const auto field = [&](std::size_t which) {
            std::uint32_t value = 0;
            std::memcpy(&value, fields.data() + which * column + i * sizeof value, sizeof value);
            return value;
        };
        numbers.push_back(field(0));
        loaded.ordinals.push_back(field(1));
        loaded.keys.ends.push_back(keys_before + field(2));
    }
    loaded.keys.bytes.append(reinterpret_cast<const char*>(fields.data()) + 3 * column,
                             slice.key_bytes);
    return {};
}

std::uint64_t RowBuckets::key_bytes() const {
    std::uint64_t bytes = 0;
    for (const Bucket& bucket : buckets_) bytes += bucket.key_bytes;
    return bytes;
}

std::uint64_t RowBuckets::bytes_to_divide() const {
    std::uint64_t bytes = 0;
    for (const Bucket& bucket : buckets_) {
        if (too_large(bucket))
            bytes += bucket.rows * (kRowFieldBytes + dim_ * sizeof(float)) + bucket.key_bytes;
    }
    return bytes;
}

/// Divides a bucket into smaller ones. Its old blocks stay in the spool, unused.
Result<std::vector<RowBuckets::Bucket>> RowBuckets::divide(const Bucket& bucket,
                                                           const std::atomic<bool>& stop) {
    KeyList sample;
    BucketKeys rows;
    std::vector<std::uint64_t> lines;
    // Sample at most a bucket's worth of bytes: keys may be long.
    const std::uint64_t slice_bytes = bucket.key_bytes / bucket.slices.size() + 1;
    const std::size_t sampled =
        std::min(bucket.slices.size(),
                 static_cast<std::size_t>(std::clamp<std::uint64_t>(
                     bucket_bytes_ / slice_bytes, 2 * kMinSampledKeysPerBucket, kSampledSlices)));
    for (std::size_t i = 0; i < sampled; ++i) {
        const Slice& slice = bucket.slices[i * bucket.slices.size() / sampled];
        rows = {};
        lines.clear();
        if (Status loaded = load_slice(slice, rows, lines); !loaded) return loaded.error();
        for (std::size_t at = 0; at < rows.keys.size();
             at += rows.keys.size() / kSampledKeysPerSlice + 1) {
            sample.bytes += rows.keys[at];
            sample.ends.push_back(sample.bytes.size());
        }
    }
    const Borders borders = choose_borders(
        sample, std::max<std::size_t>(2, buckets_needed(bucket.rows, bucket.key_bytes)));
    if (borders.empty()) return std::vector<Bucket>{bucket};
    std::vector<Bucket> divided = make_buckets(borders);
    std::vector<float> vectors;
    for (const Slice& slice : bucket.slices) {
        if (stop) return source::interrupted();
        rows.keys.bytes.clear();
        rows.keys.ends.clear();
        rows.ordinals.clear();
        lines.clear();
        vectors.resize(slice.rows * dim_);
        if (Status loaded = load_slice(slice, rows, lines); !loaded) return loaded.error();
        const Status read = spool_.read(slice.block, slice.vectors_offset,
                                        std::as_writable_bytes(std::span(vectors)));
        if (!read) return read.error();
        auto slices =
            write_block({rows.keys, lines, rows.ordinals, vectors.data()}, slice.batch, borders);
        if (!slices) return slices.error();
        append_slices(*slices, divided);
        if (Status fits = check_index_size(); !fits) return fits.error();
    }
    slices_ -= bucket.slices.size();
    return divided;
}

Status RowBuckets::seal(const std::atomic<bool>& stop) {
    std::vector<Bucket> sealed;
    // A stack with the first bucket on top.
    std::vector<Bucket> left(std::make_move_iterator(buckets_.rbegin()),
                             std::make_move_iterator(buckets_.rend()));
    while (!left.empty()) {
        Bucket bucket = std::move(left.back());
        left.pop_back();
        if (too_large(bucket)) {
            auto divided = divide(bucket, stop);
            if (!divided) return divided.error();
            if (divided->size() > 1) {
                left.insert(left.end(), std::make_move_iterator(divided->rbegin()),
                            std::make_move_iterator(divided->rend()));
                continue;
            }
            bucket = std::move(divided->front());
        }
        // Threads added batches in any order.
        std::ranges::sort(bucket.slices, {}, &Slice::batch);
        if (bucket.rows != 0) sealed.push_back(std::move(bucket));
    }
    buckets_ = std::move(sealed);
    return {};
}

/// Writes each row's place among the kept rows over its line number, which is no longer needed.
Status RowBuckets::note_places(std::span<const Slice> slices,
                               std::span<const std::uint32_t> places) {
    for (const Slice& slice : slices) {
        Status written = spool_.overwrite(slice.block, slice.fields_offset,
                                          std::as_bytes(places.first(slice.rows)));
        if (!written) return written;
        places = places.subspan(slice.rows);
    }
    return {};
}

Result<BucketKeys> RowBuckets::load_all(const Bucket& bucket,
                                        std::vector<std::uint64_t>& numbers) const {
    BucketKeys loaded;
    // Reserved: growth by doubling would take twice a bucket's memory.
    const auto rows = static_cast<std::size_t>(bucket.rows);
    loaded.keys.bytes.reserve(static_cast<std::size_t>(bucket.key_bytes));
    loaded.keys.ends.reserve(rows);
    loaded.ordinals.reserve(rows);
    loaded.kept.reserve(rows);
    numbers.reserve(rows);
    for (const Slice& slice : bucket.slices) {
        const std::size_t before = loaded.ordinals.size();
        if (Status read = load_slice(slice, loaded, numbers); !read) return read.error();
        for (std::size_t i = before; i < loaded.ordinals.size(); ++i)
            loaded.ordinals[i] += static_cast<std::uint32_t>(first_rows_[slice.batch]);
    }
    return loaded;
}

Result<BucketKeys> RowBuckets::sort(std::size_t number, source::Duplicates rule,
                                    DroppedRows& dropped) {
    Bucket& bucket = buckets_[number];
    const bool last_wins = rule == source::Duplicates::last;
    // A bucket of one key may hold any number of rows: only the slice of the kept row remains.
    std::vector<Slice> others;
    if (bucket.one_key) {
        others.swap(bucket.slices);
        const auto kept = last_wins ? others.end() - 1 : others.begin();
        bucket.slices = {*kept};
        bucket.rows = kept->rows;
        bucket.key_bytes = kept->key_bytes;
        others.erase(kept);
    }
    std::vector<std::uint64_t> lines;
    auto loaded = load_all(bucket, lines);
    if (!loaded) return loaded;
    std::size_t row = 0;
    for (const Slice& slice : bucket.slices) {
        for (std::uint32_t i = 0; i < slice.rows; ++i) lines[row++] += first_lines_[slice.batch];
    }
    const auto order = sort_keys(loaded->keys);
    std::vector<std::uint32_t> places(order.size(), kDropped);
    for (std::size_t first = 0; first < order.size();) {
        const std::string_view key = loaded->keys[order[first]];
        std::size_t last = first + 1;
        while (last < order.size() && loaded->keys[order[last]] == key) ++last;
        // Slices are in the order of the source, and sort_keys is stable: so are equal keys.
        const std::size_t winner = last_wins ? last - 1 : first;
        for (std::size_t i = first; i < last; ++i) {
            if (i != winner) dropped.add({lines[order[i]], lines[order[winner]], listed_key(key)});
        }
        places[order[winner]] = static_cast<std::uint32_t>(loaded->kept.size());
        loaded->kept.push_back(order[winner]);
        first = last;
    }
    const std::string one_key = listed_key(loaded->keys[loaded->kept[0]]);
    const std::uint64_t kept_line = lines[loaded->kept[0]];
    for (const Slice& slice : others) {
        BucketKeys rows;
        lines.clear();
        if (Status read = load_slice(slice, rows, lines); !read) return read.error();
        for (const std::uint64_t line : lines)
            dropped.add({line + first_lines_[slice.batch], kept_line, one_key});
    }
    if (Status noted = note_places(bucket.slices, places); !noted) return noted.error();
    return loaded;
}

Result<BucketKeys> RowBuckets::load(std::size_t bucket) const {
    std::vector<std::uint64_t> places;
    auto loaded = load_all(buckets_[bucket], places);
    if (!loaded) return loaded;
    const auto kept =
        std::ranges::count_if(places, [](std::uint64_t place) { return place != kDropped; });
    loaded->kept.resize(static_cast<std::size_t>(kept));
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] != kDropped) loaded->kept[places[i]] = static_cast<std::uint32_t>(i);
    }
    return loaded;
}

Status RowBuckets::gather(std::size_t bucket, const BucketKeys& keys,
                          std::span<float> vectors) const {
    assert(vectors.size() == keys.kept.size() * dim_);
    std::vector<std::uint32_t> place_of(keys.ordinals.size(), kDropped);
    for (std::size_t i = 0; i < keys.kept.size(); ++i)
        place_of[keys.kept[i]] = static_cast<std::uint32_t>(i);
    std::vector<float> read;
    std::size_t row = 0;
    for (const Slice& slice : buckets_[bucket].slices) {
        read.resize(slice.rows * dim_);
        const auto bytes = std::as_writable_bytes(std::span(read));
        if (Status got = spool_.read(slice.block, slice.vectors_offset, bytes); !got) return got;
        for (std::size_t i = 0; i < slice.rows; ++i, ++row) {
            if (place_of[row] == kDropped) continue;
            std::memcpy(vectors.data() + place_of[row] * dim_, read.data() + i * dim_,
                        dim_ * sizeof(float));
        }
    }
    return {};
}

}  // namespace gloved::convert
