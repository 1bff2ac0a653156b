#include "tools/convert/convert.hpp"

#include <malloc.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/own_files.hpp"
#include "common/format/planes.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "common/process_memory.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "kernels/canonical.hpp"
#include "tools/convert/planes.hpp"
#include "tools/convert/row_buckets.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/input.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

/// Memory of a batch: its text, its numbers, and the block that is written.
constexpr std::uint64_t kBatchMemoryBytes = 16 << 20;
/// Larger buckets gain nothing: slices have ten KiB and more already.
constexpr std::uint64_t kMaxBucketBytes = 32 << 20;
constexpr int kMmapThresholdBytes = 1 << 20;
/// Text bytes per packed byte of decimals, about.
constexpr std::uint64_t kPackedRatio = 3;
/// Assumed for a source of unknown size.
constexpr std::uint64_t kTypicalTextBytes = std::uint64_t{6} << 30;

std::uint64_t expected_text_bytes(const source::Input& input) {
    if (input.total_bytes() == 0) return kTypicalTextBytes;
    return input.compression() == "none" ? input.total_bytes() : input.total_bytes() * kPackedRatio;
}

/// How a conversion divides its memory.
struct MemoryPlan {
    std::size_t threads = 1;
    std::uint64_t spool_bytes = 0;
    std::size_t bucket_bytes = 0;
    std::uint64_t index_bytes = 0;
};

std::uint64_t default_memory() {
    const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
    const auto page_bytes = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGE_SIZE), 0L));
    return std::max(std::min(pages * page_bytes, control_group_memory_limit()) / 4, kMinMemory);
}

/// Half for the spool, a quarter for what threads work on (batches, then buckets), and a quarter
/// for all that grows with the number of rows.
MemoryPlan plan_memory(const ConvertOptions& options) {
    const std::uint64_t memory =
        options.memory_bytes == 0 ? default_memory() : options.memory_bytes;
    const std::uint64_t worker_bytes = memory / 4;
    MemoryPlan plan;
    // run_ordered has two items more than threads.
    const std::uint64_t max_threads = worker_bytes / kBatchMemoryBytes;
    plan.threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
        options.source.threads, 1, std::max<std::uint64_t>(max_threads, 3) - 2));
    plan.index_bytes = memory / 8;
    plan.spool_bytes = options.spool_bytes.value_or(memory / 2);
    plan.bucket_bytes = static_cast<std::size_t>(
        std::min<std::uint64_t>(worker_bytes / (plan.threads + 2), kMaxBucketBytes));
    return plan;
}

/// Ranks: which rows of the source are kept, and how many kept ones come before each
/// (kIndexBitsOfRow).
class KeptRows {
  public:
    explicit KeptRows(std::uint64_t rows) : words_(rows / 64 + 1), before_(words_.size()) {}
    void add(std::uint64_t row) { words_[row / 64] |= std::uint64_t{1} << row % 64; }
    void count() {
        std::uint32_t sum = 0;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            before_[i] = sum;
            sum += static_cast<std::uint32_t>(std::popcount(words_[i]));
        }
    }
    /// After count().
    std::uint32_t rank(std::uint64_t row) const {
        const std::uint64_t below = words_[row / 64] & ((std::uint64_t{1} << row % 64) - 1);
        return before_[row / 64] + static_cast<std::uint32_t>(std::popcount(below));
    }

  private:
    std::vector<std::uint64_t> words_;
    std::vector<std::uint32_t> before_;
};

/// What sorting the keys finds.
struct SortedRows {
    std::uint64_t rows = 0;
    std::vector<std::uint64_t> first_rows;  // of each bucket
    std::uint64_t key_bytes = 0;
    KeptRows kept;
};

/// Sorts the keys of all buckets, lists duplicates in the report, and finds which rows are kept.
/// Vectors stay in the spool.
Result<SortedRows> sort_buckets(RowBuckets& buckets, const ConvertOptions& options,
                                const MemoryPlan& plan, const std::atomic<bool>& stop,
                                source::Report& report) {
    struct Item {
        std::size_t first = 0;  // bucket
        std::size_t last = 0;
        Result<BucketKeys> loaded = BucketKeys();
        DroppedRows dropped;
    };
    SortedRows sorted{0, {}, 0, KeptRows(buckets.rows())};
    DroppedRows dropped;
    const auto load = [&](Item& item) {
        item.dropped = {};
        item.loaded = BucketKeys();  // frees the last bucket before it loads the next
        item.loaded = buckets.sort(item.first, options.duplicates, item.dropped);
    };
    const auto count = [&](Item& item) -> Status {
        if (!item.loaded) return item.loaded.error();
        for (const std::uint32_t i : item.loaded->kept) {
            sorted.kept.add(item.loaded->ordinals[i]);
            sorted.key_bytes += item.loaded->keys[i].size();
        }
        sorted.first_rows.push_back(sorted.rows);
        sorted.rows += item.loaded->kept.size();
        dropped.add(std::move(item.dropped));
        return {};
    };
    const Status done = source::run_ordered<Item>(
        plan.threads, source::pieces_of(buckets.size(), 1, stop), load, count);
    if (!done) return done.error();
    sorted.kept.count();
    report.duplicates = dropped.count();
    for (const DroppedRow& row : dropped.listed()) {
        report.duplicate_examples.push_back({row.kept_line + 1, row.line + 1, row.key});
    }
    report.rows_kept = sorted.rows;
    if (options.duplicates == source::Duplicates::error && report.duplicates != 0) {
        const source::Duplicate& duplicate = report.duplicate_examples.front();
        const std::string_view unit = source::unit_of(report.source.format);
        return error_with(ErrorCode::bad_source,
                          "{}: {} {}: the word {} stands on {} {} already ({} such {}{}); "
                          "--duplicates first or last takes one of them",
                          options.input, unit, duplicate.dropped_line, printable(duplicate.key),
                          unit, duplicate.kept_line, report.duplicates, unit,
                          report.duplicates == 1 ? "" : "s");
    }
    return sorted;
}

/// Writes the keys and values files, bucket after bucket.
Result<format::Header> write_model(const format::Staging& staging, const RowBuckets& buckets,
                                   const SortedRows& sorted, std::size_t dim,
                                   const MemoryPlan& plan, const std::atomic<bool>& stop) {
    auto writer = format::ModelWriter::create(staging.directory_fd(), staging.path(), sorted.rows,
                                              static_cast<std::uint32_t>(dim));
    if (!writer) return writer.error();
    Progress progress("writing", sorted.rows * dim * sizeof(float));

    struct Item {
        std::size_t first = 0;  // bucket
        std::size_t last = 0;
        BucketKeys keys;
        std::vector<float> vectors;
        std::vector<double> norms;
        std::vector<std::uint32_t> ranks;
        Status done;
    };
    const auto place = [&](Item& item) {
        item.keys = {};
        auto loaded = buckets.load(item.first);
        if (!loaded) {
            item.done = loaded.error();
            return;
        }
        item.keys = *std::move(loaded);
        const std::size_t rows = item.keys.kept.size();
        item.vectors.resize(rows * dim);
        item.done = buckets.gather(item.first, item.keys, item.vectors);
        if (item.done)
            item.done = writer->write_vectors(sorted.first_rows[item.first], item.vectors);
        item.norms.clear();
        item.ranks.clear();
        for (std::size_t row = 0; row < rows; ++row) {
            item.norms.push_back(kernels::canonical_norm(item.vectors.data() + row * dim, dim));
            item.ranks.push_back(sorted.kept.rank(item.keys.ordinals[item.keys.kept[row]]));
        }
    };
    std::uint64_t written_bytes = 0;
    const auto append = [&](Item& item) -> Status {
        if (!item.done) return item.done;
        for (const std::uint32_t i : item.keys.kept) {
            if (Status written = writer->append_key(item.keys.keys[i]); !written) return written;
        }
        if (Status written = writer->append_norms(item.norms); !written) return written;
        if (Status written = writer->append_ranks(item.ranks); !written) return written;
        writer->hash_vectors(item.vectors);
        progress.update(written_bytes += item.vectors.size() * sizeof(float));
        return {};
    };
    const Status written = source::run_ordered<Item>(
        plan.threads, source::pieces_of(buckets.size(), 1, stop), place, append);
    if (!written) return written.error();
    return writer->finish();
}

/// The part of an estimate that is surely needed: duplicates may make the model smaller.
constexpr double kCertainShare = 0.8;

/// Checks that the staging directory's filesystem has room for the share `sure` of `bytes`.
Status check_space(const format::Staging& staging, double bytes, double sure,
                   const ConvertOptions& options) {
    struct statvfs filesystem {};
    // Unknown: a write fails if there is no room.
    if (::fstatvfs(staging.directory_fd(), &filesystem) != 0 || filesystem.f_blocks == 0) return {};
    const double free =
        static_cast<double>(filesystem.f_bavail) * static_cast<double>(filesystem.f_frsize);
    if (sure * bytes <= free) return {};
    return error_with(ErrorCode::io,
                      "{}: the conversion needs {}{:.3f} GB, with what it lays aside meanwhile, "
                      "and the filesystem has {:.3f} GB free; make room, choose another place or "
                      "keep fewer words (--limit)",
                      options.model_dir, sure < 1 ? "about " : "", bytes / 1e9, free / 1e9);
}

/// Bytes of keys and values. In the spool they take no more: a row has 12 bytes beside key and
/// numbers there, 13 here.
double model_bytes(double rows, double key_bytes, std::size_t dim) {
    const double row_bytes =
        static_cast<double>(dim) * sizeof(float) + sizeof(double) + sizeof(std::uint32_t) + 1;
    return rows * row_bytes + key_bytes +
           static_cast<double>(format::kHeaderBytes + 3 * format::kSectionAlignment);
}

double planes_bytes(double rows, std::size_t dim, const ConvertOptions& options) {
    if (!options.planes) return 0;
    return static_cast<double>(format::PlanesHeader{static_cast<std::uint64_t>(rows),
                                                    static_cast<std::uint32_t>(dim), 0, 0}
                                   .file_bytes());
}

/// Bytes that the model needs beside the spool's file of `spool` bytes, which is freed before
/// planes are written.
double bytes_beyond_spool(double model, double planes, double spool) {
    return std::max(model, model + planes - spool);
}

bool ascending(const source::Batch& batch) {
    for (std::size_t i = 1; i < batch.rows(); ++i) {
        if (batch.key(i) < batch.key(i - 1)) return false;
    }
    return true;
}

/// Estimates the space needed from the first batch, so that a conversion that surely fails does so
/// at once.
Status check_space_early(const format::Staging& staging, const source::Input& input,
                         const source::Batch& first, std::size_t dim, const MemoryPlan& plan,
                         const ConvertOptions& options) {
    if (input.total_bytes() == 0 || first.rows() == 0) return {};
    // Packed bytes count as text: packing may save hardly anything.
    const double batches =
        static_cast<double>(input.total_bytes()) / static_cast<double>(first.text_bytes);
    double rows = static_cast<double>(first.rows()) * batches;
    if (options.source.limit != 0) rows = std::min(rows, static_cast<double>(options.source.limit));
    const auto key_bytes =
        static_cast<double>(first.keys.size()) * rows / static_cast<double>(first.rows());
    const double model = model_bytes(rows, key_bytes, dim);
    // Rows in key order all fall into the last bucket, and are written once more when it is
    // divided.
    const bool divided = ascending(first) && model > 2 * static_cast<double>(plan.bucket_bytes);
    const double copies = divided ? 2 : 1;
    const double spool = std::max(0.0, copies * model - static_cast<double>(plan.spool_bytes));
    return check_space(staging,
                       spool + bytes_beyond_spool(model, planes_bytes(rows, dim, options), spool),
                       kCertainShare, options);
}

/// Reads the input into `buckets`.
Result<source::SourceSummary> read_rows(source::Input& input, const format::Staging& staging,
                                        const ConvertOptions& options, const MemoryPlan& plan,
                                        RowBuckets& buckets,
                                        const std::function<void(const std::string&)>& say) {
    source::SourceOptions source_options = options.source;
    source_options.threads = plan.threads;
    Progress progress("reading", input.total_bytes());
    std::size_t dim = 0;
    source::SourceSink sink;
    sink.say = say;
    sink.begin = [&](const source::SourceSummary& summary) -> Status {
        dim = summary.dim;
        buckets.set_dim(dim);
        return {};
    };
    sink.inspect = [&](source::Batch& batch) { buckets.add(batch); };
    sink.commit = [&](source::Batch& batch) -> Status {
        if (buckets.rows() + batch.rows() > format::kMaxRows) {
            return error_with(ErrorCode::bad_source, "{}: more than {} words", options.input,
                              format::kMaxRows);
        }
        progress.update(input.source_bytes());
        if (batch.sequence == 0) {
            Status enough = check_space_early(staging, input, batch, dim, plan, options);
            if (!enough) return enough;
        }
        return buckets.commit(batch);
    };
    return source::read_source(input, source_options, sink);
}

/// Fills the report with all that is known once the input is read.
void describe_source(const source::Input& input, const ConvertOptions& options,
                     source::SourceSummary summary, source::Report& report) {
    report.source = std::move(summary);
    report.source_name = options.input;
    report.source_bytes = input.source_bytes();
    if (report.source.whole) {
        report.source_checksum = input.checksum();
        report.source_crc32 = input.crc32();
    }
    report.member = input.member();
    report.compression = input.compression();
    report.duplicates_rule = options.duplicates;
    report.on_error = options.source.on_error;
    report.limit = options.source.limit;
}

/// Checks the space before `seal`, which may write all rows once more.
Status check_space_to_sort(const format::Staging& staging, const RowBuckets& buckets,
                           const Spool& spool, std::size_t dim, const ConvertOptions& options) {
    const auto rows = static_cast<double>(buckets.rows());
    const double model = model_bytes(rows, static_cast<double>(buckets.key_bytes()), dim);
    const double copy = std::max(0.0, static_cast<double>(buckets.bytes_to_divide()) -
                                          static_cast<double>(spool.resident_left()));
    const double spool_file = static_cast<double>(spool.file_bytes()) + copy;
    const double more =
        copy + bytes_beyond_spool(model, planes_bytes(rows, dim, options), spool_file);
    return check_space(staging, more, kCertainShare, options);
}

/// Checks the space for the model, whose size is now known exactly.
Status check_space_to_write(const format::Staging& staging, const SortedRows& sorted,
                            const Spool& spool, std::size_t dim, const ConvertOptions& options) {
    const auto rows = static_cast<double>(sorted.rows);
    const double model = model_bytes(rows, static_cast<double>(sorted.key_bytes), dim);
    const double more = bytes_beyond_spool(model, planes_bytes(rows, dim, options),
                                           static_cast<double>(spool.file_bytes()));
    return check_space(staging, more, 1, options);
}

Status write_staged_planes(const format::Staging& staging, const format::Header& header,
                           std::size_t threads, const std::atomic<bool>& stop) {
    auto file = format::create_model_file(staging.directory_fd(), format::kPlanesFile,
                                          staging.path() + "/" + format::kPlanesFile);
    if (!file) return file.error();
    return write_planes(staging.directory_fd(), staging.path(), *std::move(file),
                        format::kPlanesFile, header, threads, stop);
}

}  // namespace

Result<source::Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                               const std::function<void(const std::string&)>& say) {
    // Before the input: opening a pipe may wait for its writer.
    if (Status possible = format::Staging::check(options.model_dir); !possible)
        return possible.error();
    // The input before the directory: a mistyped name creates nothing.
    auto input = source::Input::open(options.input, stop, options.member);
    if (!input) return input.error();
    if (Status used = input->check_member(options.member); !used) return used.error();
    auto staging = format::Staging::create(options.model_dir);
    if (!staging) return staging.error();
    const MemoryPlan plan = plan_memory(options);
    // Makes free() return large buffers to the system; by default malloc keeps them, in a heap per
    // thread.
    ::mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
    Spool spool(staging->directory_fd(), format::kSpoolFile, staging->path(), plan.spool_bytes);
    if (Status opened = spool.open(); !opened) return opened.error();
    RowBuckets buckets(spool, plan.bucket_bytes, plan.index_bytes, expected_text_bytes(*input),
                       2 * plan.index_bytes);

    source::Report report;
    auto begun = std::chrono::steady_clock::now();
    const auto note_seconds = [&](const char* step) {
        report.seconds.emplace_back(step, seconds_since(begun));
        begun = std::chrono::steady_clock::now();
    };
    auto summary = read_rows(*input, *staging, options, plan, buckets, say);
    if (!summary) return summary.error();
    describe_source(*input, options, *std::move(summary), report);
    const std::size_t dim = report.source.dim;
    note_seconds("read");

    if (Status enough = check_space_to_sort(*staging, buckets, spool, dim, options); !enough)
        return enough.error();
    if (Status sealed = buckets.seal(stop); !sealed) return sealed.error();
    const auto sorted = sort_buckets(buckets, options, plan, stop, report);
    if (!sorted) return sorted.error();
    note_seconds("sort");

    if (Status enough = check_space_to_write(*staging, *sorted, spool, dim, options); !enough)
        return enough.error();
    auto header = write_model(*staging, buckets, *sorted, dim, plan, stop);
    if (!header) return header.error();
    report.generation = header->generation;
    spool.clear();
    note_seconds("write");
    if (options.planes) {
        Status written = write_staged_planes(*staging, *header, plan.threads, stop);
        if (!written) return written.error();
        note_seconds("planes");
    }
    report.planes = options.planes;
    const Status reported =
        format::write_report(staging->directory_fd(), staging->path(), source::to_json(report));
    if (!reported) return reported.error();

    if (stop) return source::interrupted();
    if (Status published = staging->publish(say); !published) return published.error();
    return report;
}

}  // namespace gloved::convert
