#include "tools/source/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tools/source/ordered_pipeline.hpp"
#include "tools/source/record.hpp"
#include "tools/source/stanford.hpp"

namespace gloved::source {
namespace {

/// How the lines of a source are to be read.
struct Reading {
    SourceFormat format;
    std::size_t dim;
    OnError on_error;
};

void clear_rows(Batch& batch) {
    batch.lines = 0;
    batch.keys.clear();
    batch.key_ends.clear();
    batch.line_numbers.clear();
    batch.faults.fill(0);
    batch.skipped.clear();
    batch.last_line_taken = true;
}

/// Room for one row more than there are, and for the norm that parse_line_with_norm reads before
/// it.
float* next_row(Batch& batch, std::size_t dim) {
    const std::size_t used = batch.rows() * dim;
    // Grown by doubling and kept for later batches: sized line by line, resize() would first write
    // zeros under every row.
    if (batch.values.size() < used + dim + 1)
        batch.values.resize(std::max(used + dim + 1, 2 * batch.values.size()));
    return batch.values.data() + used;
}

void add_row(Batch& batch, std::string_view key) {
    batch.keys += key;
    batch.key_ends.push_back(batch.keys.size());
    batch.line_numbers.push_back(batch.lines);
    batch.last_line_taken = true;
}

void add_fault(Batch& batch, LineProblem&& problem, std::uint64_t offset) {
    ++batch.faults[static_cast<std::size_t>(problem.fault)];
    if (batch.skipped.size() < kShownProblems)
        batch.skipped.push_back({std::move(problem), batch.lines, offset});
    batch.last_line_taken = false;
}

/// Parses the lines of a batch. With OnError::stop it ends at the first fault, which it leaves in
/// `skipped`.
void parse_lines(Batch& batch, const Reading& reading) {
    const auto parse = reading.format == SourceFormat::norms ? parse_line_with_norm : parse_line;
    const std::string_view text(batch.buffer.data(), batch.text_bytes);
    for (std::size_t at = 0; at < text.size(); ++batch.lines) {
        const auto* newline =
            static_cast<const char*>(std::memchr(text.data() + at, '\n', text.size() - at));
        const std::size_t end =
            newline == nullptr ? text.size() : static_cast<std::size_t>(newline - text.data());
        float* const values = next_row(batch, reading.dim);
        std::string_view key;
        auto problem = parse(trim_line_end(text.substr(at, end - at)), reading.dim, key, values);
        if (problem) {
            if (newline == nullptr && problem->fault == LineFault::too_few_fields) {
                problem = LineProblem{LineFault::cut,
                                      "the file ends within this line (" + problem->message +
                                          "); the download is not complete, fetch it again"};
            }
            add_fault(batch, *std::move(problem), batch.text_offset + at);
            if (reading.on_error == OnError::stop) return;
        } else {
            add_row(batch, key);
        }
        at = end + 1;
    }
}

/// As parse_lines, for binary records.
void parse_records(Batch& batch, const Reading& reading) {
    const std::string_view bytes(batch.buffer.data(), batch.text_bytes);
    for (std::size_t at = 0; at < bytes.size(); ++batch.lines) {
        const Record record = find_record(bytes.substr(at), reading.dim);
        std::optional<LineProblem> problem;
        const bool cut = record.state != Record::State::whole;
        if (cut) {
            problem = LineProblem{
                LineFault::cut,
                fmt::format(
                    "the file ends within this word or its numbers ({} bytes are there); the "
                    "download is not complete, fetch it again",
                    bytes.size() - at)};
        } else {
            problem = parse_record(record, reading.dim, next_row(batch, reading.dim));
        }
        if (problem) {
            add_fault(batch, *std::move(problem), batch.text_offset + at);
            if (reading.on_error == OnError::stop) return;
        } else {
            add_row(batch, record.word);
        }
        at = cut ? bytes.size() : at + record.bytes;
    }
}

void parse_batch(Batch& batch, const Reading& reading) {
    clear_rows(batch);
    if (batch.too_long) {
        add_fault(batch,
                  {LineFault::too_long,
                   fmt::format("the line is longer than {} MiB", kMaxLineBytes >> 20)},
                  batch.text_offset);
        batch.lines = 1;
    } else if (reading.format == SourceFormat::word2vec_bin) {
        parse_records(batch, reading);
    } else {
        parse_lines(batch, reading);
    }
}

/// «GloVe text, 100 numbers a line (found in the first lines)».
std::string found_text(const SourceSummary& summary) {
    const char* const where = summary.dim_found ? "found in the first lines" : "as --dim says";
    switch (summary.format) {
        case SourceFormat::automatic:
        case SourceFormat::glove:
            return fmt::format("GloVe text, {} numbers a line ({})", summary.dim, where);
        case SourceFormat::norms:
            return fmt::format("text with norms, {} numbers a line behind the norm ({})",
                               summary.dim, where);
        case SourceFormat::word2vec:
        case SourceFormat::word2vec_bin:
        case SourceFormat::fasttext:
            break;
    }
    const char* const what = summary.format == SourceFormat::word2vec_bin ? "word2vec binary"
                             : summary.format == SourceFormat::fasttext   ? "fastText text"
                                                                          : "word2vec text";
    return fmt::format("{}, {} words of {} numbers (by its header)", what, *summary.header_rows,
                       summary.dim);
}

/// Whether --on-error skip is worth naming: not where the download is at fault, nor where the
/// message does.
bool skipping_helps(LineFault fault) {
    return fault != LineFault::cut && fault != LineFault::too_many_fields;
}

}  // namespace

std::uint64_t SourceSummary::skipped_lines() const {
    return std::accumulate(skipped.begin(), skipped.end(), std::uint64_t{0});
}

std::string_view unit_of(SourceFormat format) {
    return format == SourceFormat::word2vec_bin ? "word" : "line";
}

Result<SourceSummary> read_source(Input& input, const SourceOptions& options,
                                  const SourceSink& sink) {
    const auto bad_source = [&](const std::string& message) {
        return Error{ErrorCode::bad_source, fmt::format("{}: {}", input.name(), message)};
    };
    const auto say = [&](const std::string& message) {
        if (sink.say) sink.say(fmt::format("{}: {}", input.name(), message));
    };
    const auto warn = [&](const std::string& message) {
        if (sink.say) sink.say(fmt::format("warning: {}: {}", input.name(), message));
    };

    ChunkerOptions chunking;
    chunking.head.resize(options.head_bytes);
    auto head_bytes = input.read(chunking.head);
    if (!head_bytes) return head_bytes.error();
    chunking.head_is_all = *head_bytes < chunking.head.size();
    chunking.head.resize(*head_bytes);
    const auto detected =
        detect(std::string_view(chunking.head.data(), chunking.head.size()), chunking.head_is_all,
               options.format, options.dim, input.compression());
    if (!detected) return bad_source(detected.error().message);
    chunking.detected = *detected;
    chunking.limit = options.limit;
    chunking.discard_too_long = options.on_error == OnError::skip;
    // A row takes some sixty bytes while its batch is worked on, however short its text is.
    const std::size_t shortest_row = 2 * detected->dim + 2;
    chunking.chunk_bytes = std::min(options.chunk_bytes, kMaxBatchRows * shortest_row);

    SourceSummary summary;
    summary.format = detected->format;
    summary.dim = detected->dim;
    summary.dim_found = options.dim == 0;
    summary.bom = detected->bom;
    summary.header_rows = detected->header_rows;
    const std::string_view unit = unit_of(summary.format);
    const std::uint64_t header_lines =
        summary.header_rows && summary.format != SourceFormat::word2vec_bin ? 1 : 0;
    summary.lines = header_lines;
    if (summary.bom) say("the byte order mark (UTF-8) at its beginning is dropped");
    if (options.format == SourceFormat::automatic || summary.dim_found) say(found_text(summary));
    if (sink.begin) {
        if (Status begun = sink.begin(summary); !begun) return begun.error();
    }

    const Reading reading{summary.format, summary.dim, options.on_error};
    const auto chunker = Chunker::create(input, std::move(chunking));
    std::uint64_t batches = 0;
    bool last_line_taken = true;
    const auto produce = [&](Batch& batch) -> Result<bool> {
        batch.sequence = batches++;
        return chunker->next(batch);
    };
    const auto work = [&](Batch& batch) {
        parse_batch(batch, reading);
        if (sink.inspect) sink.inspect(batch);
    };
    const auto consume = [&](Batch& batch) -> Status {
        batch.first_line = summary.lines;
        for (const Batch::Skipped& skipped : batch.skipped) {
            const std::string what =
                fmt::format("{} {} (byte {}): {}", unit, batch.first_line + skipped.line + 1,
                            skipped.offset, skipped.problem.message);
            if (options.on_error == OnError::stop) {
                if (!skipping_helps(skipped.problem.fault)) return bad_source(what);
                return bad_source(
                    fmt::format("{}; --on-error skip leaves such {}s out", what, unit));
            }
            if (summary.skipped_examples.size() < kShownProblems)
                summary.skipped_examples.push_back(what);
        }
        for (std::size_t fault = 0; fault < kLineFaults; ++fault)
            summary.skipped[fault] += batch.faults[fault];
        summary.lines += batch.lines;
        summary.rows += batch.rows();
        summary.final_newline = batch.final_newline;
        last_line_taken = batch.last_line_taken;
        return sink.commit ? sink.commit(batch) : Status();
    };
    if (Status read = run_ordered<Batch>(options.threads, produce, work, consume); !read)
        return read.error();
    summary.text_bytes = chunker->offset();
    summary.whole = !chunker->stopped_at_limit();

    const auto skipped = [&](LineFault fault) {
        return summary.skipped[static_cast<std::size_t>(fault)];
    };
    const std::uint64_t words =
        summary.lines - header_lines - skipped(LineFault::blank) - skipped(LineFault::cut);
    const auto doubt = [&](const std::string& message) -> Status {
        if (options.on_error == OnError::stop) return bad_source(message);
        warn(message);
        return {};
    };
    if (summary.whole && summary.header_rows && words != *summary.header_rows) {
        const Status counted = doubt(fmt::format(
            "the header promises {} words, {} are there; {}; --on-error skip takes what is there",
            *summary.header_rows, words,
            words < *summary.header_rows ? "the download is not complete, fetch it again"
                                         : "the header is wrong, or other data was appended"));
        if (!counted) return counted.error();
    }
    if (const auto surplus = chunker->surplus_offset()) {
        const Status ended = doubt(
            fmt::format("other data follows the last of the {} words that the header promises, at "
                        "byte {}; --on-error skip leaves it out",
                        *summary.header_rows, *surplus));
        if (!ended) return ended.error();
    }
    if (summary.rows == 0) {
        return bad_source(summary.skipped_examples.empty()
                              ? "there are no words behind the header; the download is not "
                                "complete, fetch it again"
                              : fmt::format("none of {} {}s could be taken; the first: {}; give "
                                            "--format or --dim if they are "
                                            "to be read in another way",
                                            summary.lines - header_lines, unit,
                                            summary.skipped_examples.front()));
    }
    if (!summary.final_newline && last_line_taken) {
        warn(
            "no newline at the end of the last line; it has the right width, but its last number "
            "may be cut");
    }
    if (summary.whole) {
        if (const auto known = known_file(summary.lines - header_lines, summary.dim)) {
            say(fmt::format("this is {} ({} lines)", known->name, with_commas(known->lines)));
        }
        const auto longer = [&](std::string_view name) {
            return maybe_truncated(name, summary.lines - header_lines, summary.dim);
        };
        const auto of_name = longer(input.name());
        if (const auto longer_file = of_name ? of_name : longer(input.member())) {
            warn(fmt::format(
                "{} lines read; the nearest known file, {}, has {}: this one may be truncated",
                with_commas(summary.lines - header_lines), longer_file->name,
                with_commas(longer_file->lines)));
        }
    }
    return summary;
}

}  // namespace gloved::source
