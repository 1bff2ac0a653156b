#include "tools/convert/convert.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/own_files.hpp"
#include "common/format/planes.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "common/progress.hpp"
#include "kernels/canonical.hpp"
#include "tools/convert/inputs.hpp"
#include "tools/convert/memory_plan.hpp"
#include "tools/convert/planes.hpp"
#include "tools/convert/row_buckets.hpp"
#include "tools/convert/space.hpp"
#include "tools/convert/spool.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

constexpr int kMmapThresholdBytes = 1 << 20;

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

/// Sorts the keys of all buckets, lists duplicates in the report, and finds which rows are kept of
/// each input.
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
    report.rows_kept = sorted.rows;
    std::vector<std::uint64_t> lines;
    std::uint64_t row = 0;
    for (source::SourceReport& input : report.sources) {
        lines.push_back(input.summary.lines);
        const std::uint64_t first_rank = sorted.kept.rank(row);
        row += input.summary.rows;
        input.rows_kept = sorted.kept.rank(row) - first_rank;
    }
    for (const DroppedRow& drop : dropped.listed()) {
        report.duplicate_examples.push_back({source::find_line(lines, drop.kept_line),
                                             source::find_line(lines, drop.line), drop.key});
    }
    if (options.duplicates == source::Duplicates::error && report.duplicates != 0) {
        const source::Duplicate& first = report.duplicate_examples.front();
        return bad_source("{} already ({} such {}{}); --duplicates first or last takes one of them",
                          report.text_of(first), report.duplicates,
                          source::unit_of(report.sources[first.dropped.source].summary.format),
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

/// Checks the space before `seal`, which may write all rows once more.
Status check_space_to_sort(const format::Staging& staging, const RowBuckets& buckets,
                           const Spool& spool, const source::Report& report,
                           const ConvertOptions& options) {
    const auto rows = static_cast<double>(report.totals().most_rows);
    const double key_bytes =
        static_cast<double>(buckets.key_bytes()) * rows / static_cast<double>(buckets.rows());
    const double copy = std::max(0.0, static_cast<double>(buckets.bytes_to_divide()) -
                                          static_cast<double>(spool.resident_left()));
    return check_space(options, staging, {rows, key_bytes, report.sources.front().summary.dim},
                       static_cast<double>(spool.file_bytes()) + copy, copy, kCertainShare);
}

/// Checks the space for the model, whose size is now known exactly.
Status check_space_to_write(const format::Staging& staging, const SortedRows& sorted,
                            const Spool& spool, std::size_t dim, const ConvertOptions& options) {
    return check_space(
        options, staging,
        {static_cast<double>(sorted.rows), static_cast<double>(sorted.key_bytes), dim},
        static_cast<double>(spool.file_bytes()), 0, 1);
}

Status write_staged_planes(const format::Staging& staging, const format::Header& header,
                           std::size_t threads, const std::atomic<bool>& stop) {
    auto file = format::create_model_file(staging.directory_fd(), format::kPlanesFile,
                                          staging.path() + "/" + format::kPlanesFile);
    if (!file) return file.error();
    return write_planes(staging.directory_fd(), staging.path(), *std::move(file),
                        format::kPlanesFile, header, threads, stop);
}

/// Publishes the new model. Says which file of the old one it does not have.
Status publish(format::Staging& staging, const std::string& model_dir,
               const std::function<void(const std::string&)>& say) {
    const std::string neighbors = model_dir + "/" + format::kNeighborsFile;
    const bool had_neighbors = ::access(neighbors.c_str(), F_OK) == 0;
    if (Status published = staging.publish(say); !published) return published;
    if (had_neighbors) {
        say(
            fmt::format("note: {0}: the model that it replaces had neighbors; run "
                        "gloved-neighbors {0} again",
                        model_dir));
    }
    return {};
}

}  // namespace

Result<source::Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                               const std::function<void(const std::string&)>& say) {
    // Before the input: opening a pipe may wait for its writer.
    if (Status possible = format::Staging::check(options.model_dir); !possible)
        return possible.error();
    // The inputs before the directory: a mistyped name creates nothing.
    auto inputs = open_inputs(options, stop);
    if (!inputs) return inputs.error();
    auto staging = format::Staging::create(options.model_dir);
    if (!staging) return staging.error();
    const MemoryPlan plan = plan_memory(options);
    // Makes free() return large buffers to the system; by default malloc keeps them, in a heap per
    // thread.
    ::mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
    Spool spool(staging->directory_fd(), format::kSpoolFile, staging->path(), plan.spool_bytes);
    if (Status opened = spool.open(); !opened) return opened.error();
    std::uint64_t expected_text_bytes = 0;
    for (const InputFacts& facts : inputs->facts) expected_text_bytes += facts.text_bytes;
    RowBuckets buckets(spool, plan.bucket_bytes, plan.index_bytes, expected_text_bytes,
                       2 * plan.index_bytes);

    source::Report report;
    report.duplicates_rule = options.duplicates;
    report.on_error = options.source.on_error;
    report.limit = options.source.limit;
    auto begun = std::chrono::steady_clock::now();
    const auto note_seconds = [&](const char* step) {
        report.seconds.emplace_back(step, seconds_since(begun));
        begun = std::chrono::steady_clock::now();
    };
    Status read =
        read_inputs(*std::move(inputs), options, plan, *staging, spool, buckets, stop, say, report);
    if (!read) return read.error();
    const std::size_t dim = report.sources.front().summary.dim;
    note_seconds("read");

    if (Status enough = check_space_to_sort(*staging, buckets, spool, report, options); !enough)
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
    if (Status published = publish(*staging, options.model_dir, say); !published)
        return published.error();
    return report;
}

}  // namespace gloved::convert
