#include "tools/convert/convert.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/format/own_files.hpp"
#include "common/format/planes.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "kernels/canonical.hpp"
#include "tools/convert/planes.hpp"
#include "tools/convert/row_buckets.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/input.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

/// A batch of lines: text, numbers, and the block that they are written as.
constexpr std::uint64_t kBatchMemoryBytes = 16 << 20;
/// Larger ones would gain nothing: their slices are read in pieces of some ten KiB and more
/// already.
constexpr std::uint64_t kMaxBucketBytes = 32 << 20;
constexpr int kLargeAllocation = 1 << 20;
/// What packing makes of decimals.
constexpr std::uint64_t kPackedRatio = 3;
/// Of a source whose size nobody knows.
constexpr std::uint64_t kUsualTextBytes = std::uint64_t{6} << 30;

class Stopwatch {
  public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::uint64_t expected_text_bytes(const source::Input& input) {
    if (input.total_bytes() == 0) return kUsualTextBytes;
    return input.compression() == "none" ? input.total_bytes() : input.total_bytes() * kPackedRatio;
}

/// What may be held in memory, and where it goes.
struct MemoryPlan {
    std::size_t threads = 1;
    std::uint64_t spool_bytes = 0;
    std::size_t bucket_bytes = 0;
    std::uint64_t index_bytes = 0;
};

/// The least that a control group around this process allows (memory.max of its group and all
/// above); all there is without one.
std::uint64_t memory_allowed() {
    std::uint64_t allowed = std::numeric_limits<std::uint64_t>::max();
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (!line.starts_with("0::/")) continue;
        for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
            std::ifstream file("/sys/fs/cgroup" + path + "/memory.max");
            std::uint64_t limit = 0;
            if (file >> limit) allowed = std::min(allowed, limit);  // «max» is no number
            if (path.find('/') == std::string::npos) break;
        }
    }
    return allowed;
}

std::uint64_t default_memory() {
    const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
    const auto page_bytes = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGE_SIZE), 0L));
    return std::max(std::min(pages * page_bytes, memory_allowed()) / 4, kMinMemory);
}

/// Half for what is read and not yet in its place, a quarter for what threads work on (text and
/// numbers first, buckets later), and a quarter for all that grows with the number of words.
MemoryPlan plan_memory(const ConvertOptions& options) {
    const std::uint64_t memory =
        options.memory_bytes == 0 ? default_memory() : options.memory_bytes;
    const std::uint64_t at_work = memory / 4;
    MemoryPlan plan;
    // run_ordered has two items more than threads.
    const std::uint64_t most_threads = at_work / kBatchMemoryBytes;
    plan.threads = static_cast<std::size_t>(std::clamp<std::uint64_t>(
        options.source.threads, 1, std::max<std::uint64_t>(most_threads, 3) - 2));
    plan.index_bytes = memory / 8;
    plan.spool_bytes = options.spool_bytes.value_or(memory / 2);
    plan.bucket_bytes = static_cast<std::size_t>(
        std::min<std::uint64_t>(at_work / (plan.threads + 2), kMaxBucketBytes));
    return plan;
}

/// Which rows of the source are kept, and how many before each: a bit and a half a row
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

/// For run_ordered: gives an item the number of the next bucket, until there are no more.
auto in_turn(const RowBuckets& buckets, const std::atomic<bool>& stop) {
    return [&buckets, &stop, next = std::size_t{0}](auto& item) mutable -> Result<bool> {
        if (stop) return Error{ErrorCode::interrupted, "interrupted"};
        item.bucket = next++;
        return item.bucket < buckets.size();
    };
}

/// What the keys alone tell.
struct Census {
    std::uint64_t rows = 0;
    std::vector<std::uint64_t> first_rows;  // of each bucket
    std::uint64_t key_bytes = 0;
    KeptRows kept;
};

/// Goes through all keys, notes duplicates in the report, and says which rows are kept. The vectors
/// stay where they are.
Result<Census> take_census(RowBuckets& buckets, const ConvertOptions& options,
                           const MemoryPlan& plan, const std::atomic<bool>& stop,
                           source::Report& report) {
    struct Item {
        std::size_t bucket = 0;
        Result<BucketKeys> loaded = BucketKeys();
        DroppedRows dropped;
    };
    Census census{0, {}, 0, KeptRows(buckets.rows())};
    DroppedRows dropped;
    const auto load = [&](Item& item) {
        item.dropped = {};
        item.loaded = BucketKeys();  // gives back what it held before as much again is taken
        item.loaded = buckets.sort(item.bucket, options.duplicates, item.dropped);
    };
    const auto count = [&](Item& item) -> Status {
        if (!item.loaded) return item.loaded.error();
        for (const std::uint32_t i : item.loaded->kept) {
            census.kept.add(item.loaded->ordinals[i]);
            census.key_bytes += item.loaded->keys[i].size();
        }
        census.first_rows.push_back(census.rows);
        census.rows += item.loaded->kept.size();
        dropped.add(std::move(item.dropped));
        return {};
    };
    if (Status done = source::run_ordered<Item>(plan.threads, in_turn(buckets, stop), load, count);
        !done)
        return done.error();
    census.kept.count();
    report.duplicates = dropped.count();
    for (const DroppedRow& row : dropped.listed()) {
        report.duplicate_examples.push_back({row.kept_line + 1, row.line + 1, row.key});
    }
    report.rows_kept = census.rows;
    if (options.duplicates == source::Duplicates::error && report.duplicates != 0) {
        const source::Duplicate& duplicate = report.duplicate_examples.front();
        const std::string_view unit = source::unit_of(report.source.format);
        return Error{ErrorCode::bad_source,
                     fmt::format("{}: {} {}: the word {} stands on {} {} already ({} such {}{}); "
                                 "--duplicates first or last takes "
                                 "one of them",
                                 options.input, unit, duplicate.dropped_line,
                                 printable(duplicate.key), unit, duplicate.kept_line,
                                 report.duplicates, unit, report.duplicates == 1 ? "" : "s")};
    }
    return census;
}

/// Writes keys and values, bucket after bucket.
Result<format::Header> write_model(const format::Staging& staging, const RowBuckets& buckets,
                                   const Census& census, std::size_t dim, const MemoryPlan& plan,
                                   const std::atomic<bool>& stop) {
    auto writer = format::ModelWriter::create(staging.directory_fd(), staging.path(), census.rows,
                                              static_cast<std::uint32_t>(dim));
    if (!writer) return writer.error();
    Progress progress("writing", census.rows * dim * sizeof(float));

    struct Item {
        std::size_t bucket = 0;
        BucketKeys keys;
        std::vector<float> vectors;
        std::vector<double> norms;
        std::vector<std::uint32_t> ranks;
        Status done;
    };
    const auto place = [&](Item& item) {
        item.keys = {};
        auto loaded = buckets.load(item.bucket);
        if (!loaded) {
            item.done = loaded.error();
            return;
        }
        item.keys = *std::move(loaded);
        const std::size_t rows = item.keys.kept.size();
        item.vectors.resize(rows * dim);
        item.done = buckets.gather(item.bucket, item.keys, item.vectors);
        if (item.done)
            item.done = writer->write_vectors(census.first_rows[item.bucket], item.vectors);
        item.norms.clear();
        item.ranks.clear();
        for (std::size_t row = 0; row < rows; ++row) {
            item.norms.push_back(kernels::canonical_norm(item.vectors.data() + row * dim, dim));
            item.ranks.push_back(census.kept.rank(item.keys.ordinals[item.keys.kept[row]]));
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
    if (Status written =
            source::run_ordered<Item>(plan.threads, in_turn(buckets, stop), place, append);
        !written)
        return written.error();
    return writer->finish();
}

/// What a check of room is sure of, of an estimate: duplicates may make a model smaller.
constexpr double kCertain = 0.8;

/// Refuses to begin what cannot end: some `bytes` are needed, of which `sure` is certain, in the
/// staging directory's filesystem.
Status check_space(const format::Staging& staging, double bytes, double sure,
                   const ConvertOptions& options) {
    struct statvfs filesystem {};
    // Where nobody knows, writing will tell.
    if (::fstatvfs(staging.directory_fd(), &filesystem) != 0 || filesystem.f_blocks == 0) return {};
    const double free =
        static_cast<double>(filesystem.f_bavail) * static_cast<double>(filesystem.f_frsize);
    if (sure * bytes <= free) return {};
    return Error{
        ErrorCode::io,
        fmt::format(
            "{}: the conversion needs {}{:.3f} GB, with what it lays aside meanwhile, and the "
            "filesystem "
            "has {:.3f} GB free; make room, choose another place or keep fewer words (--limit)",
            options.model_dir, sure < 1 ? "about " : "", bytes / 1e9, free / 1e9)};
}

/// Bytes of keys and values. The rows of a source take no more in the spool: there a row has 12
/// bytes beside key and numbers, and here 13.
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

/// What the model needs beyond `spool`, the bytes in the spool's file, which are free again when
/// planes are made.
double beyond_spool(double model, double planes, double spool) {
    return std::max(model, model + planes - spool);
}

bool ascending(const source::Batch& batch) {
    for (std::size_t i = 1; i < batch.rows(); ++i) {
        if (batch.key(i) < batch.key(i - 1)) return false;
    }
    return true;
}

/// From the first lines of a source whose size is known: early, but only what is certain to fail.
Status check_space_early(const format::Staging& staging, const source::Input& input,
                         const source::Batch& first, std::size_t dim, const MemoryPlan& plan,
                         const ConvertOptions& options) {
    if (input.total_bytes() == 0 || first.rows() == 0) return {};
    // Packed bytes are as good as text here: what is packed may hardly be smaller than its text.
    const double batches =
        static_cast<double>(input.total_bytes()) / static_cast<double>(first.text_bytes);
    double rows = static_cast<double>(first.rows()) * batches;
    if (options.source.limit != 0) rows = std::min(rows, static_cast<double>(options.source.limit));
    const auto key_bytes =
        static_cast<double>(first.keys.size()) * rows / static_cast<double>(first.rows());
    const double model = model_bytes(rows, key_bytes, dim);
    // What comes in order falls into the last bucket, and is laid aside once more when that is
    // divided.
    const bool divided = ascending(first) && model > 2 * static_cast<double>(plan.bucket_bytes);
    const double copies = divided ? 2 : 1;
    const double spool = std::max(0.0, copies * model - static_cast<double>(plan.spool_bytes));
    return check_space(staging,
                       spool + beyond_spool(model, planes_bytes(rows, dim, options), spool),
                       kCertain, options);
}

Status write_report(const format::Staging& staging, const source::Report& report) {
    const std::string path = staging.path() + "/" + format::kReportFile;
    auto fd = format::create_model_file(staging.directory_fd(), format::kReportFile, path);
    if (!fd) return fd.error();
    const std::string json = source::to_json(report);
    if (Status written = write_all_at(fd->get(), std::as_bytes(std::span(json)), 0, path); !written)
        return written;
    return format::seal_model_file(fd->get(), path);
}

}  // namespace

Result<source::Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                               const std::function<void(const std::string&)>& say) {
    // Before the input, which may be a pipe that somebody has yet to fill.
    if (Status possible = format::Staging::check(options.model_dir); !possible)
        return possible.error();
    // The input before the directory: a mistyped name should not cost one.
    auto input = source::Input::open(options.input, stop, options.member);
    if (!input) return input.error();
    if (Status used = input->check_member(options.member); !used) return used.error();
    auto staging = format::Staging::create(options.model_dir);
    if (!staging) return staging.error();
    const MemoryPlan plan = plan_memory(options);
    // Large buffers go back to the system when they are freed. By default the allocator keeps such
    // room, a heap for each thread.
    ::mallopt(M_MMAP_THRESHOLD, kLargeAllocation);
    source::SourceOptions source_options = options.source;
    source_options.threads = plan.threads;
    Spool spool(staging->directory_fd(), format::kSpoolFile, staging->path(), plan.spool_bytes);
    if (Status opened = spool.open(); !opened) return opened.error();
    RowBuckets buckets(spool, plan.bucket_bytes, plan.index_bytes, expected_text_bytes(*input),
                       2 * plan.index_bytes);

    source::Report report;
    Stopwatch watch;
    std::size_t dim = 0;
    {
        Progress progress("reading", input->total_bytes());
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
                return Error{ErrorCode::bad_source, fmt::format("{}: more than {} words",
                                                                options.input, format::kMaxRows)};
            }
            progress.update(input->source_bytes());
            if (batch.sequence == 0) {
                if (Status enough = check_space_early(*staging, *input, batch, dim, plan, options);
                    !enough)
                    return enough;
            }
            return buckets.commit(batch);
        };
        auto summary = source::read_source(*input, source_options, sink);
        if (!summary) return summary.error();
        report.source = *std::move(summary);
    }
    report.seconds.emplace_back("read", watch.lap());
    report.source_name = options.input;
    report.source_bytes = input->source_bytes();
    if (report.source.whole) {
        report.source_checksum = input->checksum();
        report.source_crc32 = input->crc32();
    }
    report.member = input->member();
    report.compression = input->compression();
    report.duplicates_rule = options.duplicates;
    report.on_error = options.source.on_error;
    report.limit = options.source.limit;

    {
        // Here, and not with the model: laying aside once more may take as much as all that was
        // read.
        const auto rows = static_cast<double>(buckets.rows());
        const double model = model_bytes(rows, static_cast<double>(buckets.key_bytes()), dim);
        const double copy = std::max(0.0, static_cast<double>(buckets.bytes_to_divide()) -
                                              static_cast<double>(spool.resident_left()));
        const double spool_file = static_cast<double>(spool.file_bytes()) + copy;
        const double more =
            copy + beyond_spool(model, planes_bytes(rows, dim, options), spool_file);
        if (Status enough = check_space(*staging, more, kCertain, options); !enough)
            return enough.error();
    }
    if (Status sealed = buckets.seal(stop); !sealed) return sealed.error();
    const auto census = take_census(buckets, options, plan, stop, report);
    if (!census) return census.error();
    report.seconds.emplace_back("sort", watch.lap());

    {
        const auto rows = static_cast<double>(census->rows);
        const double model = model_bytes(rows, static_cast<double>(census->key_bytes), dim);
        const double more = beyond_spool(model, planes_bytes(rows, dim, options),
                                         static_cast<double>(spool.file_bytes()));
        if (Status enough = check_space(*staging, more, 1, options); !enough) return enough.error();
    }
    auto header = write_model(*staging, buckets, *census, dim, plan, stop);
    if (!header) return header.error();
    report.generation = header->generation;
    spool.clear();
    report.seconds.emplace_back("write", watch.lap());
    if (options.planes) {
        auto file = format::create_model_file(staging->directory_fd(), format::kPlanesFile,
                                              staging->path() + "/" + format::kPlanesFile);
        if (!file) return file.error();
        if (Status written =
                write_planes(staging->directory_fd(), staging->path(), *std::move(file),
                             format::kPlanesFile, *header, plan.threads, stop);
            !written) {
            return written.error();
        }
        report.seconds.emplace_back("planes", watch.lap());
    }
    report.planes = options.planes;
    if (Status written = write_report(*staging, report); !written) return written.error();

    if (stop) return Error{ErrorCode::interrupted, "interrupted"};
    if (Status published = staging->publish(say); !published) return published.error();
    return report;
}

}  // namespace gloved::convert
