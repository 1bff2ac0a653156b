#include "tools/convert/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "kernels/canonical.hpp"
#include "tools/convert/ordered_pipeline.hpp"

namespace gloved::convert {
namespace {

constexpr std::size_t kChunkBytes = 4 << 20;
constexpr std::size_t kSampledLines = 64;

struct Signature {
    std::string_view bytes;
    const char* what;
    const char* remedy;
};

using namespace std::string_view_literals;
constexpr Signature kSignatures[] = {
    {"PK\x03\x04"sv, "a zip archive", "unpack the member you want: unzip -p FILE MEMBER | gloved-convert - MODEL_DIR"},
    {"PK\x05\x06"sv, "an empty zip archive", "fetch the download again"},
    {"\x1f\x8b"sv, "gzip inside gzip", "unpack one layer: zcat FILE | gloved-convert - MODEL_DIR"},
    {"\xFD"
     "7zXZ"sv,
     "xz data", "unpack it: xzcat FILE | gloved-convert - MODEL_DIR"},
    {"\x28\xB5\x2F\xFD"sv, "zstd data", "unpack it: zstdcat FILE | gloved-convert - MODEL_DIR"},
    {"7z\xBC\xAF"sv, "a 7z archive", "unpack it first"},
    {"\x93NUMPY"sv, "a NumPy array", "it holds no words; fetch the text file"},
    {"\x89HDF"sv, "an HDF5 file", "fetch the text file"},
    {"%PDF-"sv, "a PDF document", "fetch the text file"},
    {"\x8EGLV"sv, "a gloved values file", "it is converted already"},
    {"version https://git-lfs"sv, "a Git LFS pointer, not the file that it stands for", "fetch that: git lfs pull"},
    {"\xFF\xFE"sv, "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE | gloved-convert - MODEL_DIR"},
    {"\xFE\xFF"sv, "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE | gloved-convert - MODEL_DIR"},
};

bool starts_html(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
    std::string head(text.substr(0, 9));
    std::transform(head.begin(), head.end(), head.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return head == "<!doctype" || head.starts_with("<html>") || head.starts_with("<html ") || head.starts_with("<?xml");
}

/// Refuses what is certainly no GloVe text, by its first bytes.
std::optional<std::string> foreign_content(std::string_view text) {
    if (text.empty()) return "the source is empty: nothing was downloaded, or the command before the pipe failed";
    for (const Signature& signature : kSignatures) {
        if (text.starts_with(signature.bytes)) {
            return fmt::format("this is {}, not GloVe text; {}", signature.what, signature.remedy);
        }
    }
    if (starts_html(text)) {
        return "this is an HTML or XML page, not GloVe text: an error page of the download's server, most likely; "
               "fetch the "
               "download again";
    }
    if (text.substr(0, 512).find('\0') != std::string_view::npos) {
        return "this is binary data, not GloVe text (there are NUL bytes near its beginning)";
    }
    return std::nullopt;
}

bool is_integer(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string_view> first_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t at = 0; at < text.size() && lines.size() < kSampledLines;) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(trim_line_end(text.substr(at, end - at)));
        at = end + 1;
    }
    return lines;
}

/// «400000 300» on line 1 and anything but two fields on line 2.
bool has_word2vec_header(const std::vector<std::string_view>& lines) {
    if (lines.empty() || count_fields(lines[0]) != 2) return false;
    const std::size_t blank = lines[0].find(' ');
    if (!is_integer(lines[0].substr(0, blank)) || !is_integer(lines[0].substr(blank + 1))) return false;
    return lines.size() == 1 || count_fields(lines[1]) != 2;
}

/// Whether at least half of the sampled lines of exactly `dim + 1` fields are a word and `dim` numbers.
bool confirmed(const std::vector<std::string_view>& lines, std::size_t dim) {
    std::vector<float> values(dim);
    std::string_view key;
    std::ptrdiff_t balance = 0;
    for (const std::string_view line : lines) {
        if (count_fields(line) == dim + 1) balance += parse_line(line, dim, key, values.data()) ? -1 : 1;
    }
    return balance >= 0;
}

/// The numbers a line holds. Most lines have one field more than that; lines whose words hold blanks have more, cut
/// ones fewer. So the widths are tried from the most frequent one on (of equally frequent ones the larger first), and
/// the first that is confirmed is it: where words with blanks are in the majority, letters stand among what would be
/// numbers. Without any, the most frequent: reading on then names the line that is wrong. 0 when no line holds two
/// fields.
std::size_t find_dim(const std::vector<std::string_view>& lines) {
    std::map<std::size_t, std::size_t, std::greater<>> frequency;
    for (const std::string_view line : lines) {
        const std::size_t fields = count_fields(line);
        if (fields >= 2 && fields <= format::kMaxDim + 1) ++frequency[fields - 1];
    }
    std::vector<std::pair<std::size_t, std::size_t>> widths(frequency.begin(), frequency.end());
    std::stable_sort(widths.begin(), widths.end(), [](auto& a, auto& b) { return a.second > b.second; });
    for (const auto& [width, count] : widths) {
        if (confirmed(lines, width)) return width;
    }
    return widths.empty() ? 0 : widths.front().first;
}

/// Cuts the input into batches that end on line ends.
class Chunker {
  public:
    Chunker(Input& input, std::uint64_t limit) : input_(input), limit_(limit), lines_left_(limit) {}

    Result<bool> next(Batch& batch) {
        if (ended_) return false;
        batch.final_newline = true;
        batch.overlong = false;
        batch.text_offset = offset_;
        std::vector<char>& buffer = batch.buffer;
        buffer.resize(std::max({buffer.size(), kChunkBytes, carry_.size()}));
        std::copy(carry_.begin(), carry_.end(), buffer.begin());
        std::size_t filled = carry_.size();
        std::size_t end = 0;
        while (end == 0) {
            if (filled > kMaxLineBytes) {
                batch.overlong = ended_ = true;
                break;
            }
            if (filled == buffer.size()) buffer.resize(std::min(2 * buffer.size(), kMaxLineBytes + 1));
            auto got = input_.read(std::span(buffer).subspan(filled));
            if (!got) return got.error();
            const std::size_t searched = filled;
            filled += *got;
            if (filled < buffer.size()) {
                ended_ = true;
                end = filled;
                batch.final_newline = end == 0 || buffer[end - 1] == '\n';
                break;
            }
            const auto* newline =
                static_cast<const char*>(::memrchr(buffer.data() + searched, '\n', filled - searched));
            if (newline != nullptr) end = static_cast<std::size_t>(newline - buffer.data()) + 1;
        }
        carry_.assign(buffer.begin() + static_cast<std::ptrdiff_t>(end),
                      buffer.begin() + static_cast<std::ptrdiff_t>(filled));
        batch.text_bytes = end;
        if (limit_ != 0) cut_at_limit(batch);
        offset_ += batch.text_bytes;
        return batch.text_bytes != 0 || batch.overlong;
    }

    bool stopped_at_limit() const { return stopped_at_limit_; }
    std::uint64_t offset() const { return offset_; }

  private:
    void cut_at_limit(Batch& batch) {
        std::size_t at = 0;
        while (at < batch.text_bytes && lines_left_ > 0) {
            const auto* newline =
                static_cast<const char*>(std::memchr(batch.buffer.data() + at, '\n', batch.text_bytes - at));
            at = newline == nullptr ? batch.text_bytes : static_cast<std::size_t>(newline - batch.buffer.data()) + 1;
            --lines_left_;
        }
        if (lines_left_ > 0) return;
        stopped_at_limit_ = !ended_ || at < batch.text_bytes;
        if (at < batch.text_bytes) batch.final_newline = true;
        batch.text_bytes = at;
        batch.overlong = false;
        ended_ = true;
    }

    Input& input_;
    std::uint64_t limit_;
    std::uint64_t lines_left_;
    std::vector<char> carry_;
    std::uint64_t offset_ = 0;
    bool ended_ = false;
    bool stopped_at_limit_ = false;
};

/// Parses the lines of a batch. With OnError::stop it ends at the first fault, which it leaves in `skipped`.
void parse_batch(Batch& batch, std::size_t dim, OnError on_error) {
    batch.lines = 0;
    batch.keys.clear();
    batch.key_ends.clear();
    batch.line_numbers.clear();
    batch.norms.clear();
    batch.skipped.clear();
    const std::string_view text(batch.buffer.data(), batch.text_bytes);
    std::size_t rows = 0;
    for (std::size_t at = 0; at < text.size(); ++batch.lines) {
        const auto* newline = static_cast<const char*>(std::memchr(text.data() + at, '\n', text.size() - at));
        const std::size_t end = newline == nullptr ? text.size() : static_cast<std::size_t>(newline - text.data());
        // Grown by doubling and kept for later batches: sized line by line, resize() would first write zeros under
        // every row.
        if (batch.values.size() < (rows + 1) * dim)
            batch.values.resize(std::max((rows + 1) * dim, 2 * batch.values.size()));
        float* const values = batch.values.data() + rows * dim;
        std::string_view key;
        auto problem = parse_line(trim_line_end(text.substr(at, end - at)), dim, key, values);
        if (problem) {
            if (newline == nullptr && problem->fault == LineFault::too_few_fields) {
                problem = LineProblem{LineFault::cut, "the file ends within this line (" + problem->message +
                                                          "); the download is not complete, fetch it again"};
            }
            batch.skipped.push_back({*std::move(problem), batch.lines, batch.text_offset + at});
            if (on_error == OnError::stop) return;
        } else {
            batch.keys += key;
            batch.key_ends.push_back(batch.keys.size());
            batch.line_numbers.push_back(batch.lines);
            batch.norms.push_back(kernels::canonical_norm(values, dim));
            ++rows;
        }
        at = end + 1;
    }
}

}  // namespace

std::uint64_t SourceSummary::skipped_lines() const {
    return std::accumulate(skipped.begin(), skipped.end(), std::uint64_t{0});
}

Result<SourceSummary> read_source(Input& input, const SourceOptions& options, const SourceSink& sink) {
    const auto bad_source = [&](const std::string& message) {
        return Error{ErrorCode::bad_source, fmt::format("{}: {}", input.name(), message)};
    };

    Chunker chunker(input, options.limit);
    Batch first;
    auto any = chunker.next(first);
    if (!any) return any.error();
    const std::string_view head(first.buffer.data(), first.text_bytes);
    if (const auto foreign = foreign_content(first.overlong ? std::string_view(first.buffer.data(), 512) : head)) {
        return bad_source(*foreign);
    }

    SourceSummary summary;
    summary.dim = options.dim;
    const auto lines = first_lines(head);
    if (options.format == SourceFormat::automatic && options.dim != 1 && has_word2vec_header(lines)) {
        return bad_source(
            fmt::format("line 1 is a word2vec header ({}), which this version does not take; pass the rest: tail "
                        "-n +2 FILE | gloved-convert - MODEL_DIR",
                        printable(lines[0])));
    }
    if (summary.dim == 0 && !first.overlong) {
        summary.dim = find_dim(lines);
        summary.dim_found = true;
        if (summary.dim == 0) {
            const bool tabs = lines[0].find('\t') != std::string_view::npos;
            return bad_source(
                fmt::format("line 1 (byte 0): no numbers behind a blank in the first {} line{}; line 1 starts "
                            "with {}{}",
                            lines.size(), lines.size() == 1 ? "" : "s", printable(lines[0], 40),
                            tabs ? "; it is separated by TABs: replace them with blanks first (tr '\\t' ' ')"
                                 : "; this is no GloVe text"));
        }
    }
    if (sink.begin && !first.overlong) {
        if (Status begun = sink.begin(summary); !begun) return begun.error();
    }

    bool first_pending = true;
    std::uint64_t produced = 0;
    const auto produce = [&](Batch& batch) -> Result<bool> {
        Result<bool> more = true;
        if (std::exchange(first_pending, false)) {
            batch = std::move(first);
        } else {
            more = chunker.next(batch);
        }
        batch.sequence = produced++;
        return more;
    };
    const auto work = [&](Batch& batch) {
        if (batch.overlong) return;
        parse_batch(batch, summary.dim, options.on_error);
        if (sink.inspect) sink.inspect(batch);
    };
    const auto consume = [&](Batch& batch) -> Status {
        if (batch.overlong) {
            return bad_source(fmt::format("line {} (byte {}): no line end within {} MiB; this is no GloVe text",
                                          summary.lines + 1, batch.text_offset, kMaxLineBytes >> 20));
        }
        batch.first_line = summary.lines;
        for (const Batch::Skipped& skipped : batch.skipped) {
            const std::string what = fmt::format("line {} (byte {}): {}", summary.lines + skipped.line + 1,
                                                 skipped.offset, skipped.problem.message);
            if (options.on_error == OnError::stop) {
                return bad_source(
                    what + (skipped.problem.fault == LineFault::cut ? "" : "; --on-error skip leaves such lines out"));
            }
            ++summary.skipped[static_cast<std::size_t>(skipped.problem.fault)];
            if (summary.skipped_examples.size() < kShownProblems) summary.skipped_examples.push_back(what);
        }
        summary.lines += batch.lines;
        summary.rows += batch.rows();
        summary.final_newline = batch.final_newline;
        return sink.commit ? sink.commit(batch) : Status();
    };
    if (Status read = run_ordered<Batch>(options.threads, produce, work, consume); !read) return read.error();
    summary.text_bytes = chunker.offset();
    summary.whole = !chunker.stopped_at_limit();
    if (summary.rows == 0) {
        return bad_source(fmt::format("none of {} lines could be taken; the first: {}", summary.lines,
                                      summary.skipped_examples.empty() ? "" : summary.skipped_examples.front()));
    }
    return summary;
}

}  // namespace gloved::convert
