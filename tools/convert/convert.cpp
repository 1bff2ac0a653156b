#include "tools/convert/convert.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/format/publish.hpp"
#include "common/format/writer.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "tools/convert/input.hpp"
#include "tools/convert/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

constexpr const char* kSpoolFile = "spool";  // known to Staging, which removes it with the directory
constexpr std::size_t kGatherBytes = 4 << 20;

class Stopwatch {
  public:
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Result<UniqueFd> create_file(const format::Staging& staging, const char* name) {
    UniqueFd fd(::openat(staging.directory_fd(), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return system_error(staging.path() + "/" + name, "cannot create", errno);
    return fd;
}

/// The rows of a source in its order: vectors on disk, the rest in memory.
class Spool {
  public:
    static Result<Spool> create(const format::Staging& staging) {
        auto fd = create_file(staging, kSpoolFile);
        if (!fd) return fd.error();
        return Spool(*std::move(fd), staging.directory_fd(), staging.path() + "/" + kSpoolFile);
    }

    Status append(const Batch& batch, std::size_t dim) {
        const auto values = std::as_bytes(std::span(batch.values).first(batch.rows() * dim));
        if (Status written = write_all_at(fd_.get(), values, bytes_, path_); !written) return written;
        bytes_ += values.size();
        const std::size_t keys_before = keys_.size();
        keys_ += batch.keys;
        for (std::size_t row = 0; row < batch.rows(); ++row) {
            key_ends_.push_back(keys_before + batch.key_ends[row]);
            lines_.push_back(batch.first_line + batch.line_numbers[row] + 1);
        }
        norms_.insert(norms_.end(), batch.norms.begin(), batch.norms.end());
        return {};
    }

    std::size_t rows() const { return key_ends_.size(); }
    std::uint64_t line(std::size_t row) const { return lines_[row]; }
    double norm(std::size_t row) const { return norms_[row]; }
    std::string_view key(std::size_t row) const {
        const std::size_t first = row == 0 ? 0 : key_ends_[row - 1];
        return std::string_view(keys_).substr(first, key_ends_[row] - first);
    }

    /// Reads one vector. Safe for concurrent use. Not mapped: gathering touches every page, and pages of a mapping
    /// count as the process's own memory.
    Status read_vector(std::size_t row, std::span<float> vector) const {
        auto bytes = std::as_writable_bytes(vector);
        std::uint64_t offset = row * bytes.size();
        while (!bytes.empty()) {
            const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return system_error(path_, "cannot read", errno);
            if (got == 0) return Error{ErrorCode::io, fmt::format("{}: shorter than it was written", path_)};
            bytes = bytes.subspan(static_cast<std::size_t>(got));
            offset += static_cast<std::uint64_t>(got);
        }
        return {};
    }

    Status remove() {
        fd_.reset();
        if (::unlinkat(directory_fd_, kSpoolFile, 0) != 0) return system_error(path_, "cannot remove", errno);
        return {};
    }

  private:
    Spool(UniqueFd fd, int directory_fd, std::string path)
        : fd_(std::move(fd)), directory_fd_(directory_fd), path_(std::move(path)) {}

    UniqueFd fd_;
    int directory_fd_;
    std::string path_;
    std::uint64_t bytes_ = 0;
    std::string keys_;
    std::vector<std::size_t> key_ends_;
    std::vector<std::uint64_t> lines_;
    std::vector<double> norms_;
};

/// Source rows in the order of their keys, those of one key in the order of the source.
std::vector<std::uint32_t> sort_by_key(const Spool& spool) {
    struct Entry {
        std::uint64_t
            prefix;  // the key's first 8 bytes, big-endian: compares like memcmp, without leaving the cache line
        std::uint32_t row;
    };
    std::vector<Entry> entries(spool.rows());
    for (std::size_t row = 0; row < entries.size(); ++row) {
        const std::string_view key = spool.key(row);
        // Padded with zeros. No key holds a NUL, so a shorter key is less than all that it begins.
        std::uint64_t prefix = 0;
        std::memcpy(&prefix, key.data(), std::min(key.size(), sizeof prefix));
        entries[row] = {__builtin_bswap64(prefix), static_cast<std::uint32_t>(row)};
    }
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        if (a.prefix != b.prefix) return a.prefix < b.prefix;
        // string_view compares as memcmp does, by unsigned bytes.
        const int order = spool.key(a.row).compare(spool.key(b.row));
        return order != 0 ? order < 0 : a.row < b.row;
    });
    std::vector<std::uint32_t> rows(entries.size());
    std::transform(entries.begin(), entries.end(), rows.begin(), [](const Entry& entry) { return entry.row; });
    return rows;
}

/// Leaves one row of each key in `order`, and notes the others in the report.
Status resolve_duplicates(const Spool& spool, const ConvertOptions& options, std::vector<std::uint32_t>& order,
                          Report& report) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> dropped;  // (dropped row, kept row)
    std::size_t kept = 0;
    for (std::size_t first = 0; first < order.size();) {
        std::size_t last = first + 1;
        while (last < order.size() && spool.key(order[last]) == spool.key(order[first])) ++last;
        const std::size_t winner = options.duplicates == Duplicates::last ? last - 1 : first;
        const std::uint32_t row = order[winner];
        for (std::size_t i = first; i < last; ++i) {
            if (i != winner) dropped.emplace_back(order[i], row);
        }
        order[kept++] = row;
        first = last;
    }
    order.resize(kept);
    std::sort(dropped.begin(), dropped.end());
    report.duplicates = dropped.size();
    for (const auto& [row, winner] : std::span(dropped).first(std::min(dropped.size(), kListedDuplicates))) {
        report.duplicate_examples.push_back({spool.line(winner), spool.line(row), std::string(spool.key(row))});
    }
    if (options.duplicates == Duplicates::error && !dropped.empty()) {
        const Duplicate& duplicate = report.duplicate_examples.front();
        return Error{
            ErrorCode::bad_source,
            fmt::format("{}: line {}: the word {} stands on line {} already ({} such line{}); --duplicates first or "
                        "last takes one of them",
                        options.input, duplicate.dropped_line, printable(duplicate.key), duplicate.kept_line,
                        dropped.size(), dropped.size() == 1 ? "" : "s")};
    }
    return {};
}

/// For each source row that is kept, the number of kept rows before it.
std::vector<std::uint32_t> ranks_of(const std::vector<std::uint32_t>& kept, std::size_t source_rows) {
    std::vector<std::uint32_t> ranks(source_rows, 0);
    for (const std::uint32_t row : kept) ranks[row] = 1;
    std::uint32_t before = 0;
    for (std::uint32_t& rank : ranks) before += std::exchange(rank, before);
    return ranks;
}

/// Writes keys and values in the order `order` of source rows.
Result<format::Header> write_model(const format::Staging& staging, const Spool& spool,
                                   const std::vector<std::uint32_t>& order, std::size_t dim, std::size_t threads,
                                   const std::atomic<bool>& stop) {
    auto writer = format::ModelWriter::create(staging.directory_fd(), staging.path(), order.size(),
                                              static_cast<std::uint32_t>(dim));
    if (!writer) return writer.error();
    const auto ranks = ranks_of(order, spool.rows());
    const std::size_t row_bytes = dim * sizeof(float);
    const std::size_t block_rows = std::max<std::size_t>(1, kGatherBytes / row_bytes);
    Progress progress("writing", order.size() * row_bytes);

    struct Block {
        std::span<const std::uint32_t> rows;
        std::vector<float> values;
        std::vector<double> norms;
        std::vector<std::uint32_t> ranks;
        Status read;
    };
    std::size_t next = 0;
    const auto produce = [&](Block& block) -> Result<bool> {
        if (stop) return Error{ErrorCode::interrupted, "interrupted"};
        block.rows = std::span(order).subspan(next, std::min(block_rows, order.size() - next));
        next += block.rows.size();
        return !block.rows.empty();
    };
    const auto gather = [&](Block& block) {
        block.values.resize(block.rows.size() * dim);
        block.norms.clear();
        block.ranks.clear();
        block.read = {};
        float* values = block.values.data();
        for (const std::uint32_t row : block.rows) {
            if (block.read) block.read = spool.read_vector(row, std::span(values, dim));
            values += dim;
            block.norms.push_back(spool.norm(row));
            block.ranks.push_back(ranks[row]);
        }
    };
    const auto append = [&](Block& block) -> Status {
        if (!block.read) return block.read;
        for (const std::uint32_t row : block.rows) {
            if (Status written = writer->append_key(spool.key(row)); !written) return written;
        }
        if (Status written = writer->append_vectors(block.values); !written) return written;
        if (Status written = writer->append_norms(block.norms); !written) return written;
        if (Status written = writer->append_ranks(block.ranks); !written) return written;
        progress.update((static_cast<std::size_t>(block.rows.data() - order.data()) + block.rows.size()) * row_bytes);
        return {};
    };
    if (Status written = run_ordered<Block>(threads, produce, gather, append); !written) return written.error();
    return writer->finish();
}

Status write_report(const format::Staging& staging, const Report& report) {
    const std::string path = staging.path() + "/" + format::kReportFile;
    auto fd = create_file(staging, format::kReportFile);
    if (!fd) return fd.error();
    const std::string json = to_json(report);
    if (Status written = write_all_at(fd->get(), std::as_bytes(std::span(json)), 0, path); !written) return written;
    if (::fchmod(fd->get(), 0444) != 0) return system_error(path, "cannot make read-only", errno);
    return sync_to_disk(fd->get(), path);
}

}  // namespace

Result<Report> convert(const ConvertOptions& options, const std::atomic<bool>& stop,
                       const std::function<void(const std::string&)>& say) {
    // The input first: a mistyped name should not cost a directory.
    auto input = Input::open(options.input, stop);
    if (!input) return input.error();
    auto staging = format::Staging::create(options.model_dir);
    if (!staging) return staging.error();
    auto spool = Spool::create(*staging);
    if (!spool) return spool.error();

    Report report;
    Stopwatch watch;
    {
        Progress progress("reading", input->total_bytes());
        SourceSink sink;
        std::size_t dim = 0;
        sink.begin = [&](const SourceSummary& summary) -> Status {
            dim = summary.dim;
            if (summary.dim_found) {
                say(fmt::format("{}: GloVe text, {} numbers a line (found in the first lines)", options.input, dim));
            }
            return {};
        };
        sink.commit = [&](Batch& batch) -> Status {
            if (spool->rows() + batch.rows() > format::kMaxRows) {
                return Error{ErrorCode::bad_source,
                             fmt::format("{}: more than {} words", options.input, format::kMaxRows)};
            }
            progress.update(input->source_bytes());
            return spool->append(batch, dim);
        };
        auto summary = read_source(*input, options.source, sink);
        if (!summary) return summary.error();
        report.source = *std::move(summary);
    }
    report.seconds.emplace_back("read", watch.lap());
    if (!report.source.final_newline) {
        say(fmt::format(
            "warning: {}: no newline at the end of the last line; it has the right width, but its last number may "
            "be cut",
            options.input));
    }
    report.source_name = options.input;
    report.source_bytes = input->source_bytes();
    if (report.source.whole) report.source_checksum = input->checksum();
    report.compression = input->compression();
    report.duplicates_rule = options.duplicates;
    report.on_error = options.source.on_error;
    report.limit = options.source.limit;

    auto order = sort_by_key(*spool);
    if (Status resolved = resolve_duplicates(*spool, options, order, report); !resolved) return resolved.error();
    report.rows_kept = order.size();
    report.seconds.emplace_back("sort", watch.lap());

    auto header = write_model(*staging, *spool, order, report.source.dim, options.source.threads, stop);
    if (!header) return header.error();
    report.generation = header->generation;
    if (Status removed = spool->remove(); !removed) return removed.error();
    report.seconds.emplace_back("write", watch.lap());
    if (Status written = write_report(*staging, report); !written) return written.error();

    if (stop) return Error{ErrorCode::interrupted, "interrupted"};
    if (Status published = staging->publish(say); !published) return published.error();
    return report;
}

}  // namespace gloved::convert
