#include "tools/convert/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/progress.hpp"
#include "tools/convert/space.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/source.hpp"

namespace gloved::convert {
namespace {

/// Text bytes per packed byte of decimals, about.
constexpr std::uint64_t kPackedRatio = 3;
/// Text bytes of a long number: numpy.savetxt writes «-1.234567890123456789e-01 ».
constexpr double kLongNumberBytes = 26;

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

bool ascending(const source::Batch& batch) {
    for (std::size_t i = 1; i < batch.rows(); ++i) {
        if (batch.key(i) < batch.key(i - 1)) return false;
    }
    return true;
}

/// One run of read_inputs.
class InputReader {
  public:
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
        for (const std::string& path : options_.inputs) {
            if (limit_is_reached()) {
                progress_.erase();
                say_(fmt::format("{}: not read: the inputs before have the {} words of --limit",
                                 path, options_.source.limit));
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
            report_.sources.push_back(describe(*input, *std::move(summary)));
            input.reset();
        }
        return {};
    }

  private:
    bool limit_is_reached() const {
        return options_.source.limit != 0 && report_.totals().words == options_.source.limit;
    }

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
        const auto before = report_.totals();
        if (source_options.limit != 0) source_options.limit -= before.words;
        const std::uint64_t first_batch = buckets_.batches();
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
            progress_.update(before.bytes + input.source_bytes());
            if (batch.sequence == first_batch) {
                Status enough = check_space_early(input, batch, promised_rows, spooled);
                if (!enough) return enough;
            }
            batch.first_line += before.lines;
            return buckets_.commit(batch);
        };
        return source::read_source(input, source_options, sink);
    }

    /// Notes the dim of the first input, and compares those of the others with it.
    Status set_dim(const std::string& name, std::size_t dim) {
        if (report_.sources.empty()) {
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
        double model_rows = std::max(static_cast<double>(report_.totals().most_rows), here);
        const double longest_row =
            std::max(static_cast<double>(first.text_bytes) / static_cast<double>(first.rows()),
                     kLongNumberBytes * static_cast<double>(dim_));
        for (const InputFacts& facts : std::span(facts_).subspan(report_.sources.size() + 1)) {
            const double later = static_cast<double>(facts.fewest_text_bytes) / longest_row;
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
        const double spool = model_bytes({rows, key_bytes, dim_});
        // Rows in key order all fall into the last bucket, and are written once more when it is
        // divided.
        const bool divided = report_.sources.empty() && ascending(first) &&
                             spool > 2 * static_cast<double>(plan_.bucket_bytes);
        const double spool_file =
            std::max(0.0, (divided ? 2 : 1) * spool - static_cast<double>(plan_.spool_bytes));
        return check_space(options_, staging_, {model_rows, key_bytes, dim_}, spool_file,
                           std::max(0.0, spool_file - static_cast<double>(spooled)), kCertainShare);
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
};

}  // namespace

Result<Inputs> open_inputs(const ConvertOptions& options, const std::atomic<bool>& stop) {
    std::vector<InputFacts> facts(options.inputs.size());
    for (std::size_t i = 1; i < facts.size(); ++i) {
        if (!can_be_looked_at(options.inputs[i])) continue;
        const auto input = source::Input::open(options.inputs[i], stop, options.member);
        if (!input) return input.error();
        facts[i] = facts_of(*input, options.member);
    }
    auto first = source::Input::open(options.inputs.front(), stop, options.member);
    if (!first) return first.error();
    facts.front() = facts_of(*first, options.member);
    if (std::ranges::none_of(facts, &InputFacts::takes_member))
        return first->check_member(options.member).error();
    return Inputs{*std::move(first), std::move(facts)};
}

Status read_inputs(Inputs inputs, const ConvertOptions& options, const MemoryPlan& plan,
                   const format::Staging& staging, const Spool& spool, RowBuckets& buckets,
                   const std::atomic<bool>& stop,
                   const std::function<void(const std::string&)>& say, source::Report& report) {
    InputReader reader(options, plan, staging, spool, buckets, std::move(inputs.facts), say,
                       report);
    return reader.read_all(std::move(inputs.first), stop);
}

}  // namespace gloved::convert
