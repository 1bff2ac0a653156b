#include "tools/convert/convert.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
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
#include "kernels/canonical.hpp"
#include "tools/convert/planes.hpp"
#include "tools/convert/row_buckets.hpp"
#include "tools/convert/space.hpp"
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
/// Text bytes of a long number: numpy.savetxt writes «-1.234567890123456789e-01 ».
constexpr double kLongNumberBytes = 26;

/// What is known of an input before it is read.
struct InputFacts {
    std::uint64_t packed_bytes = 0;       // as on disk; 0: unknown
    std::uint64_t fewest_text_bytes = 0;  // packing may save hardly anything
    std::uint64_t text_bytes = kTypicalTextBytes;
    bool takes_member = true;  // it may be an archive, or no member is named
};

/// How many bytes of text an input has at least; 0: unknown.
std::uint64_t fewest_text_bytes(const source::Input& input) {
    return input.text_bytes() != 0 ? input.text_bytes() : input.total_bytes();
}

InputFacts facts_of(const source::Input& input, const std::string& member) {
    InputFacts facts;
    facts.packed_bytes = input.total_bytes();
    facts.fewest_text_bytes = fewest_text_bytes(input);
    if (input.text_bytes() != 0) {
        facts.text_bytes = input.text_bytes();
    } else if (facts.packed_bytes != 0) {
        facts.text_bytes = facts.packed_bytes * kPackedRatio;
    }
    facts.takes_member = static_cast<bool>(input.check_member(member));
    return facts;
}

/// Whether an input can be opened, closed and opened again. The writer of a pipe would notice.
bool can_be_looked_at(const std::string& path) {
    std::error_code unknown;
    const auto type = std::filesystem::status(path, unknown).type();
    return path != "-" && type != std::filesystem::file_type::fifo &&
           type != std::filesystem::file_type::character;
}

/// Looks at the inputs behind the first, so that one that cannot be read is told before the first
/// is read. They are closed again: each takes memory while it is open. Returns the facts of all
/// inputs, without those of the first.
Result<std::vector<InputFacts>> look_at_later_inputs(const ConvertOptions& options,
                                                     const std::atomic<bool>& stop) {
    std::vector<InputFacts> facts(options.inputs.size());
    for (std::size_t i = 1; i < facts.size(); ++i) {
        if (!can_be_looked_at(options.inputs[i])) continue;
        const auto input = source::Input::open(options.inputs[i], stop, options.member);
        if (!input) return input.error();
        facts[i] = facts_of(*input, options.member);
    }
    return facts;
}

std::uint64_t expected_text_bytes(const std::vector<InputFacts>& inputs) {
    std::uint64_t bytes = 0;
    for (const InputFacts& facts : inputs) bytes += facts.text_bytes;
    return bytes;
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

bool ascending(const source::Batch& batch) {
    for (std::size_t i = 1; i < batch.rows(); ++i) {
        if (batch.key(i) < batch.key(i - 1)) return false;
    }
    return true;
}

/// Rows of the largest input so far. The model has about as many if the others repeat its words.
std::uint64_t largest_input(const source::Report& report) {
    std::uint64_t rows = 0;
    for (const source::SourceReport& input : report.sources)
        rows = std::max(rows, input.summary.rows);
    return rows;
}

/// Reads the inputs one after the other into buckets, and describes each in the report. Lines, rows
/// and batches are numbered on from one input to the next.
class InputReader {
  public:
    /// `facts` of all inputs; the other arguments must outlive it.
    InputReader(const ConvertOptions& options, const MemoryPlan& plan,
                const format::Staging& staging, const Spool& spool, RowBuckets& buckets,
                std::vector<InputFacts> facts, const std::function<void(const std::string&)>& say,
                source::Report& report)
        : options_(options),
          plan_(plan),
          staging_(staging),
          spool_(spool),
          buckets_(buckets),
          facts_(std::move(facts)),
          say_(say),
          report_(report),
          progress_("reading", total_bytes()) {}

    /// Reads `first`, then opens and reads the others in turn.
    Status read_all(source::Input first, const std::atomic<bool>& stop) {
        std::optional<source::Input> input(std::move(first));
        for (; index_ < options_.inputs.size(); ++index_) {
            const std::string& path = options_.inputs[index_];
            if (options_.source.limit != 0 && words_before_ == options_.source.limit) {
                progress_.erase();
                say_(fmt::format("{}: not read: the inputs before have the {} words of --limit",
                                 path, words_before_));
                report_.sources.push_back(unread(path));
                continue;
            }
            if (!input) {
                auto opened = source::Input::open(path, stop, options_.member);
                if (!opened) return opened.error();
                input.emplace(*std::move(opened));
            }
            auto summary = read(*input);
            if (!summary) return summary.error();
            lines_before_ += summary->lines;
            words_before_ += summary->body_lines();
            bytes_before_ += input->source_bytes();
            report_.sources.push_back(describe(*input, *std::move(summary)));
            input.reset();
        }
        return {};
    }

  private:
    /// Of all inputs; 0 if that of one is not known.
    std::uint64_t total_bytes() const {
        std::uint64_t total = 0;
        for (const InputFacts& facts : facts_) {
            if (facts.packed_bytes == 0) return 0;
            total += facts.packed_bytes;
        }
        return total;
    }

    static source::SourceReport unread(const std::string& path) {
        source::SourceReport report;
        report.name = path;
        report.summary.format = source::SourceFormat::automatic;
        report.summary.whole = false;
        return report;
    }

    static source::SourceReport describe(const source::Input& input,
                                         source::SourceSummary summary) {
        source::SourceReport report;
        report.name = input.name();
        report.bytes = input.source_bytes();
        if (summary.whole) {
            report.checksum = input.checksum();
            report.crc32 = input.crc32();
        }
        report.member = input.member();
        report.compression = input.compression();
        report.summary = std::move(summary);
        return report;
    }

    Result<source::SourceSummary> read(source::Input& input) {
        source::SourceOptions source_options = options_.source;
        source_options.threads = plan_.threads;
        if (source_options.limit != 0) source_options.limit -= words_before_;
        const std::uint64_t first_batch = batches_;
        const std::uint64_t spooled = spool_.file_bytes();
        source::SourceSink sink;
        sink.say = [&](const std::string& message) {
            progress_.erase();
            say_(message);
        };
        std::optional<std::uint64_t> promised_rows;
        sink.begin = [&](const source::SourceSummary& summary) {
            promised_rows = summary.header_rows;
            return set_dim(input.name(), summary.dim);
        };
        sink.inspect = [&](source::Batch& batch) {
            batch.sequence += first_batch;
            buckets_.add(batch);
        };
        sink.commit = [&](source::Batch& batch) -> Status {
            if (buckets_.rows() + batch.rows() > format::kMaxRows) {
                return bad_source("{}: more than {} words", input.name(), format::kMaxRows);
            }
            progress_.update(bytes_before_ + input.source_bytes());
            if (batch.sequence == first_batch) {
                Status enough = check_space_early(input, batch, promised_rows, spooled);
                if (!enough) return enough;
            }
            ++batches_;
            batch.first_line += lines_before_;
            return buckets_.commit(batch);
        };
        return source::read_source(input, source_options, sink);
    }

    /// Notes the dim of the first input, and compares those of the others with it.
    Status set_dim(const std::string& name, std::size_t dim) {
        if (index_ == 0) {
            dim_ = dim;
            buckets_.set_dim(dim);
        }
        if (dim == dim_) return {};
        return bad_source(
            "{}: {} numbers a word, but {} has {}; all inputs of a model need the "
            "same: leave one out, or give --dim if one was read wrong",
            name, dim, options_.inputs[0], dim_);
    }

    /// Estimates the space needed from the first batch of an input, so that a conversion that
    /// surely fails does so at once. Later inputs count as text of long numbers. `promised_rows`:
    /// by the input's header. `spooled`: bytes of earlier inputs in the spool's file.
    Status check_space_early(const source::Input& input, const source::Batch& first,
                             std::optional<std::uint64_t> promised_rows,
                             std::uint64_t spooled) const {
        if (first.rows() == 0) return {};
        const double batches =
            static_cast<double>(fewest_text_bytes(input)) / static_cast<double>(first.text_bytes);
        double here = static_cast<double>(first.rows()) * batches;
        // Other tensors may follow an array.
        if (promised_rows) here = std::min(here, static_cast<double>(*promised_rows));
        double rows = static_cast<double>(buckets_.rows()) + here;
        double model_rows = std::max(static_cast<double>(largest_input(report_)), here);
        const double longest_row =
            std::max(static_cast<double>(first.text_bytes) / static_cast<double>(first.rows()),
                     kLongNumberBytes * static_cast<double>(dim_));
        for (std::size_t i = index_ + 1; i < facts_.size(); ++i) {
            const double later = static_cast<double>(facts_[i].fewest_text_bytes) / longest_row;
            rows += later;
            model_rows = std::max(model_rows, later);
        }
        double key_bytes = static_cast<double>(first.keys.size()) * batches;
        if (options_.source.limit != 0) {
            const auto limit = static_cast<double>(options_.source.limit);
            rows = std::min(rows, limit);
            model_rows = std::min(model_rows, limit);
            key_bytes = std::min(key_bytes, static_cast<double>(first.keys.size()) * limit /
                                                static_cast<double>(first.rows()));
        }
        const double spool = model_bytes(rows, key_bytes, dim_);
        // Rows in key order all fall into the last bucket, and are written once more when it is
        // divided.
        const bool divided =
            index_ == 0 && ascending(first) && spool > 2 * static_cast<double>(plan_.bucket_bytes);
        const double spool_file =
            std::max(0.0, (divided ? 2 : 1) * spool - static_cast<double>(plan_.spool_bytes));
        const double model = model_bytes(model_rows, key_bytes, dim_);
        const double planes = options_.planes ? planes_bytes(model_rows, dim_) : 0;
        return check_space(options_.model_dir, staging_,
                           std::max(0.0, spool_file - static_cast<double>(spooled)) +
                               bytes_beyond_spool(model, planes, spool_file),
                           kCertainShare);
    }

    const ConvertOptions& options_;
    const MemoryPlan& plan_;
    const format::Staging& staging_;
    const Spool& spool_;
    RowBuckets& buckets_;
    std::vector<InputFacts> facts_;
    const std::function<void(const std::string&)>& say_;
    source::Report& report_;
    Progress progress_;
    std::size_t dim_ = 0;
    std::size_t index_ = 0;           // of the input that is read
    std::uint64_t batches_ = 0;       // of all inputs so far
    std::uint64_t lines_before_ = 0;  // of the inputs before
    std::uint64_t words_before_ = 0;  // the same without headers
    std::uint64_t bytes_before_ = 0;  // packed
};

/// Checks the space before `seal`, which may write all rows once more.
Status check_space_to_sort(const format::Staging& staging, const RowBuckets& buckets,
                           const Spool& spool, const source::Report& report,
                           const ConvertOptions& options) {
    const std::size_t dim = report.sources.front().summary.dim;
    const auto rows = static_cast<double>(largest_input(report));
    const double key_bytes =
        static_cast<double>(buckets.key_bytes()) * rows / static_cast<double>(buckets.rows());
    const double model = model_bytes(rows, key_bytes, dim);
    const double copy = std::max(0.0, static_cast<double>(buckets.bytes_to_divide()) -
                                          static_cast<double>(spool.resident_left()));
    const double spool_file = static_cast<double>(spool.file_bytes()) + copy;
    const double more =
        copy + bytes_beyond_spool(model, options.planes ? planes_bytes(rows, dim) : 0, spool_file);
    return check_space(options.model_dir, staging, more, kCertainShare);
}

/// Checks the space for the model, whose size is now known exactly.
Status check_space_to_write(const format::Staging& staging, const SortedRows& sorted,
                            const Spool& spool, std::size_t dim, const ConvertOptions& options) {
    const auto rows = static_cast<double>(sorted.rows);
    const double model = model_bytes(rows, static_cast<double>(sorted.key_bytes), dim);
    const double more = bytes_beyond_spool(model, options.planes ? planes_bytes(rows, dim) : 0,
                                           static_cast<double>(spool.file_bytes()));
    return check_space(options.model_dir, staging, more, 1);
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
    auto facts = look_at_later_inputs(options, stop);
    if (!facts) return facts.error();
    auto first = source::Input::open(options.inputs.front(), stop, options.member);
    if (!first) return first.error();
    facts->front() = facts_of(*first, options.member);
    if (std::ranges::none_of(*facts, &InputFacts::takes_member))
        return first->check_member(options.member).error();
    auto staging = format::Staging::create(options.model_dir);
    if (!staging) return staging.error();
    const MemoryPlan plan = plan_memory(options);
    // Makes free() return large buffers to the system; by default malloc keeps them, in a heap per
    // thread.
    ::mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
    Spool spool(staging->directory_fd(), format::kSpoolFile, staging->path(), plan.spool_bytes);
    if (Status opened = spool.open(); !opened) return opened.error();
    RowBuckets buckets(spool, plan.bucket_bytes, plan.index_bytes, expected_text_bytes(*facts),
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
    {
        InputReader reader(options, plan, *staging, spool, buckets, *std::move(facts), say, report);
        if (Status read = reader.read_all(*std::move(first), stop); !read) return read.error();
    }
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
