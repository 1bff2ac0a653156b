#include "tools/source/source.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "common/quoting.hpp"
#include "tools/source/ordered_pipeline.hpp"
#include "tools/source/record.hpp"
#include "tools/source/stanford.hpp"

namespace gloved::source {
namespace {

void clear_rows(Batch& batch) {
    batch.lines = 0;
    batch.keys.clear();
    batch.key_ends.clear();
    batch.line_numbers.clear();
    batch.faults.fill(0);
    batch.skipped.clear();
    batch.last_line_taken = true;
    batch.odd_words.clear();
}

bool has_outer_blanks(std::string_view word) {
    return word.starts_with(' ') || word.ends_with(' ');
}

/// Makes room for one more row, and for the norm that parse_line_with_norm reads before it.
float* room_for_row(Batch& batch, std::size_t dim) {
    const std::size_t used = batch.rows() * dim;
    // Doubled, and kept for later batches: resize() for each line would write zeros under every
    // row.
    if (batch.values.size() < used + dim + 1)
        batch.values.resize(std::max(used + dim + 1, 2 * batch.values.size()));
    return batch.values.data() + used;
}

void add_row(Batch& batch, std::string_view key, bool has_large) {
    batch.odd_words.note_word(batch.lines, key);
    if (has_large) batch.odd_words.note(Oddity::large_number, batch.lines, key);
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

/// Parses the lines of a batch. With OnError::stop it ends at the first fault, which is then in
/// `skipped`.
void parse_lines(Batch& batch, const Detected& found, OnError on_error) {
    const auto parse = found.format == SourceFormat::norms ? parse_line_with_norm : parse_line;
    const std::string_view text(batch.buffer.data(), batch.text_bytes);
    for (std::size_t at = 0; at < text.size(); ++batch.lines) {
        const auto* newline =
            static_cast<const char*>(std::memchr(text.data() + at, '\n', text.size() - at));
        const std::size_t end =
            newline == nullptr ? text.size() : static_cast<std::size_t>(newline - text.data());
        const std::string_view line = trim_line_end(text.substr(at, end - at));
        float* const values = room_for_row(batch, found.dim);
        std::string_view key;
        auto problem = parse(line, found.dim, key, values, found.dim_is_certain);
        if (problem) {
            if (newline == nullptr && problem->fault == LineFault::too_few_fields) {
                problem = LineProblem{LineFault::cut,
                                      "the file ends within this line (" + problem->message +
                                          "); the download is not complete, fetch it again"};
            }
            add_fault(batch, *std::move(problem), batch.text_offset + at);
            if (on_error == OnError::stop) return;
        } else {
            // No number begins with a blank: one that stands there belongs to the word.
            if (key.data() != line.data() || line[key.size() + 1] == ' ')
                batch.odd_words.note(Oddity::outer_blanks, batch.lines, key);
            if (ends_in_number(key)) batch.odd_words.note(Oddity::ends_in_number, batch.lines, key);
            add_row(batch, key, has_large_number({values, found.dim}));
        }
        at = end + 1;
    }
}

/// Parses the binary records of a batch, or the rows of an array, as parse_lines does lines.
void parse_records(Batch& batch, const Detected& found, OnError on_error) {
    const bool in_array = is_array(found.format);
    for (std::size_t i = 0; i < batch.places.size(); ++i, ++batch.lines) {
        const Batch::Place& place = batch.places[i];
        const std::string_view word(batch.buffer.data() + place.begin, place.word_bytes);
        const std::size_t begin = in_array ? i * found.layout.row_bytes() : place.begin;
        const char* const numbers = batch.buffer.data() + begin + (in_array ? 0 : word.size() + 1);
        float* const values = room_for_row(batch, found.dim);
        bool has_large = false;
        auto problem = parse_row(word, numbers, found.layout, values, has_large);
        if (problem) {
            add_fault(batch, *std::move(problem), batch.text_offset + begin);
            if (on_error == OnError::stop) return;
            continue;
        }
        if (has_outer_blanks(word)) batch.odd_words.note(Oddity::outer_blanks, batch.lines, word);
        if (!in_array && word.find(' ') != std::string_view::npos)
            batch.odd_words.note(Oddity::blanks, batch.lines, word);
        add_row(batch, word, has_large);
    }
    if (batch.cut_bytes == 0) return;
    add_fault(batch,
              {LineFault::cut,
               fmt::format("the file ends within this {} ({} bytes are there); the download is not "
                           "complete, fetch it again",
                           in_array ? "row" : "word or its numbers", batch.cut_bytes)},
              batch.text_offset + batch.text_bytes - batch.cut_bytes);
    ++batch.lines;
}

void parse_batch(Batch& batch, const Detected& found, OnError on_error) {
    clear_rows(batch);
    if (batch.too_long) {
        add_fault(batch,
                  {LineFault::too_long,
                   fmt::format("the line is longer than {} MiB", kMaxLineBytes >> 20)},
                  batch.text_offset);
        batch.lines = 1;
    } else if (is_text(found.format)) {
        parse_lines(batch, found, on_error);
    } else {
        parse_records(batch, found, on_error);
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
        case SourceFormat::npy:
            return fmt::format("a NumPy array ({}), {} rows of {} numbers", summary.layout.dtype,
                               *summary.header_rows, summary.dim);
        case SourceFormat::safetensors:
            return fmt::format("safetensors, the tensor {} ({}), {} rows of {} numbers",
                               printable(summary.layout.tensor, 80), summary.layout.dtype,
                               *summary.header_rows, summary.dim);
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

/// Whether to recommend --on-error skip: not for a cut download, nor where the message does so
/// itself.
bool skipping_helps(LineFault fault) {
    return fault != LineFault::cut && fault != LineFault::too_many_fields &&
           fault != LineFault::padded;
}

/// One run of read_source.
class SourceReader {
  public:
    SourceReader(Input& input, const SourceOptions& options, const SourceSink& sink)
        : input_(input), options_(options), sink_(sink) {}

    Result<SourceSummary> read() {
        if (Status detected = detect_format(); !detected) return detected.error();
        auto words = open_words();
        if (!words) return words.error();
        if (sink_.begin) {
            if (Status begun = sink_.begin(summary_); !begun) return begun.error();
        }
        const auto chunker = Chunker::create(input_, chunking(*std::move(words)));
        if (Status parsed = parse_batches(*chunker); !parsed) return parsed.error();
        summary_.text_bytes = chunker->offset();
        summary_.whole = !chunker->stopped_at_limit();
        if (Status counted = check_count(chunker->surplus_offset()); !counted)
            return counted.error();
        if (summary_.rows == 0) return no_rows();
        if (!summary_.final_newline && last_line_taken_) {
            warn(
                "no newline at the end of the last line; it has the right width, but its last "
                "number may be cut");
        }
        if (summary_.whole) compare_with_known_files();
        return std::move(summary_);
    }

  private:
    Error refusal(const std::string& message) const {
        return bad_source("{}: {}", input_.name(), message);
    }
    void say(const std::string& message) const {
        if (sink_.say) sink_.say(fmt::format("{}: {}", input_.name(), message));
    }
    void warn(const std::string& message) const {
        if (sink_.say) sink_.say(fmt::format("warning: {}: {}", input_.name(), message));
    }
    std::string_view unit() const { return unit_of(summary_.format); }
    std::uint64_t body_lines() const { return summary_.body_lines(); }

    /// Looks at the first bytes, begins the summary with what they show, and goes to the first row.
    Status detect_format() {
        const auto head = input_.peek(options_.head_bytes);
        if (!head) return head.error();
        auto detected = detect(*head, head->size() < options_.head_bytes, options_.format,
                               options_.dim, input_.compression(), options_.tensor);
        if (!detected) return refusal(detected.error().message);
        const auto header = input_.skip(detected->body_offset);
        if (!header) return header.error();
        static_cast<Detected&>(summary_) = *std::move(detected);
        summary_.dim_found = options_.dim == 0;
        summary_.lines = summary_.header_lines();
        if (summary_.bom) say("the byte order mark (UTF-8) at its beginning is dropped");
        if (options_.format == SourceFormat::automatic || summary_.dim_found)
            say(found_text(summary_));
        return {};
    }

    /// Opens the file with an array's words; nullptr for other sources.
    Result<std::unique_ptr<TokenList>> open_words() {
        if (!is_array(summary_.format)) {
            if (options_.words.empty() && options_.tensor.empty())
                return std::unique_ptr<TokenList>();
            return refusal(fmt::format(
                "--{} is given, but this is no array, and holds its words; leave it out",
                options_.words.empty() ? "tensor" : "words"));
        }
        if (!options_.tensor.empty() && summary_.layout.tensor.empty())
            return refusal("--tensor is given, but this is a NumPy array; leave it out");
        summary_.words = options_.words.empty() ? tokenizer_beside() : options_.words;
        if (summary_.words.empty()) {
            const std::string beside = input_.name() + ".words";
            return refusal("this holds numbers without words; give --words " +
                           (exists(beside)
                                ? printable(beside, 255)
                                : "FILE, a text with a word a line, in the order of the rows, "
                                  "or a tokenizer.json of Hugging Face"));
        }
        auto words = TokenList::open(summary_.words, summary_.layout.rows, input_.stop());
        if (!words) {
            return error_with(words.error().code, "{}: {}{}", input_.name(), words.error().message,
                              words.error().code == ErrorCode::io
                                  ? "; --words FILE names the file with its words"
                                  : "");
        }
        if (!(*words)->note().empty()) say("note: " + (*words)->note());
        return words;
    }

    /// The file tokenizer.json beside a file with one tensor, unless its words are likely to be
    /// elsewhere; empty if there is none.
    std::string tokenizer_beside() const {
        const bool alone = !summary_.layout.tensor.empty() && summary_.layout.alone;
        if (!alone || input_.name() == "-" || exists(input_.name() + ".words")) return {};
        const std::string folder = input_.name().substr(0, input_.name().rfind('/') + 1);
        std::string path = folder + "tokenizer.json";
        if (!exists(path)) return {};
        say("its words are taken from tokenizer.json beside it");
        return path;
    }
    static bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

    ChunkerOptions chunking(std::unique_ptr<TokenList> words) const {
        // Bounds memory: a row takes some sixty bytes while its batch is parsed, however short its
        // text.
        const std::size_t shortest_row = 2 * summary_.dim + 2;
        ChunkerOptions chunking;
        chunking.detected = summary_;
        chunking.limit = options_.limit;
        chunking.skip_faults = options_.on_error == OnError::skip;
        chunking.words = std::move(words);
        chunking.chunk_bytes = std::min(options_.chunk_bytes, kMaxBatchRows * shortest_row);
        return chunking;
    }

    Status parse_batches(Chunker& chunker) {
        std::uint64_t batches = 0;
        const auto produce = [&](Batch& batch) -> Result<bool> {
            batch.sequence = batches++;
            return chunker.next(batch);
        };
        const auto work = [&](Batch& batch) {
            parse_batch(batch, summary_, options_.on_error);
            if (sink_.inspect) sink_.inspect(batch);
        };
        const auto consume = [&](Batch& batch) -> Status {
            batch.first_line = summary_.lines;
            if (Status noted = note_skipped(batch); !noted) return noted;
            summary_.odd_words.add(batch.odd_words, summary_.lines);
            summary_.lines += batch.lines;
            summary_.rows += batch.rows();
            summary_.final_newline = batch.final_newline;
            last_line_taken_ = batch.last_line_taken;
            return sink_.commit ? sink_.commit(batch) : Status();
        };
        return run_ordered<Batch>(options_.threads, produce, work, consume);
    }

    /// Adds a batch's faults to the summary. With OnError::stop the first is the error.
    Status note_skipped(const Batch& batch) {
        for (const Batch::Skipped& skipped : batch.skipped) {
            const std::string what =
                fmt::format("{} {} (byte {}): {}", unit(), batch.first_line + skipped.line + 1,
                            skipped.offset, skipped.problem.message);
            if (options_.on_error == OnError::stop) {
                if (!skipping_helps(skipped.problem.fault)) return refusal(what);
                return refusal(
                    fmt::format("{}; --on-error skip leaves such {}s out", what, unit()));
            }
            if (summary_.skipped_examples.size() < kShownProblems)
                summary_.skipped_examples.push_back(what);
        }
        for (std::size_t fault = 0; fault < kLineFaults; ++fault)
            summary_.skipped[fault] += batch.faults[fault];
        return {};
    }

    /// Compares the words with the header's count, and looks at what follows the last of them.
    Status check_count(std::optional<std::uint64_t> surplus_offset) const {
        const auto skipped = [&](LineFault fault) {
            return summary_.skipped[static_cast<std::size_t>(fault)];
        };
        const auto doubt = [&](const std::string& message) -> Status {
            if (options_.on_error == OnError::stop) return refusal(message);
            warn(message);
            return {};
        };
        const std::uint64_t words =
            body_lines() - skipped(LineFault::blank) - skipped(LineFault::cut);
        if (summary_.whole && summary_.header_rows && words != *summary_.header_rows) {
            Status counted = doubt(fmt::format(
                "the header promises {} words, {} are there; {}; --on-error skip takes what is "
                "there",
                *summary_.header_rows, words,
                words < *summary_.header_rows ? "the download is not complete, fetch it again"
                                              : "the header is wrong, or other data was appended"));
            if (!counted) return counted;
        }
        if (!surplus_offset) return {};
        return doubt(
            fmt::format("other data follows the last of the {} words that the header promises, at "
                        "byte {}; --on-error skip leaves it out",
                        *summary_.header_rows, *surplus_offset));
    }

    Error no_rows() const {
        return refusal(
            summary_.skipped_examples.empty()
                ? "there are no words behind the header; the download is not complete, fetch it "
                  "again"
                : fmt::format("none of {} {}s could be taken; the first: {}; give --format or "
                              "--dim if they are to be read in another way",
                              body_lines(), unit(), summary_.skipped_examples.front()));
    }

    void compare_with_known_files() const {
        if (is_array(summary_.format)) return;
        if (const auto known = known_text(body_lines(), summary_.dim))
            say(fmt::format("has as many lines as {} ({})", known->name,
                            with_commas(known->lines)));
        const auto longer = [&](std::string_view name) {
            return maybe_truncated(name, body_lines(), summary_.dim);
        };
        const auto of_name = longer(input_.name());
        if (const auto longer_text = of_name ? of_name : longer(input_.member())) {
            warn(fmt::format(
                "{} lines read; the nearest known file, {}, has {}: this one may be truncated",
                with_commas(body_lines()), longer_text->name, with_commas(longer_text->lines)));
        }
    }

    Input& input_;
    const SourceOptions& options_;
    const SourceSink& sink_;
    SourceSummary summary_;
    bool last_line_taken_ = true;
};

}  // namespace

std::uint64_t SourceSummary::skipped_lines() const {
    return std::accumulate(skipped.begin(), skipped.end(), std::uint64_t{0});
}

std::string_view unit_of(SourceFormat format) {
    return is_text(format) ? "line" : is_array(format) ? "row" : "word";
}

Result<SourceSummary> read_source(Input& input, const SourceOptions& options,
                                  const SourceSink& sink) {
    return SourceReader(input, options, sink).read();
}

}  // namespace gloved::source
