#include "tools/source/chunker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/quoting.hpp"
#include "tools/source/array_chunker.hpp"
#include "tools/source/line.hpp"
#include "tools/source/record.hpp"

namespace gloved::source {
namespace {

class LineChunker : public Chunker {
  public:
    LineChunker(Input& input, ChunkerOptions options)
        : Chunker(input, std::move(options)), lines_left_(options_.limit) {}

    Result<bool> next(Batch& batch) override {
        if (!start(batch)) return false;
        std::vector<char>& buffer = batch.buffer;
        auto filled = fill_buffer(batch);
        if (!filled) return filled.error();
        std::size_t end = 0;
        for (std::size_t searched = 0;;) {
            if (input_ended_ && *filled <= kMaxLineBytes) {
                ended_ = true;
                end = *filled;
                batch.final_newline = end == 0 || buffer[end - 1] == '\n';
                break;
            }
            const auto* newline = static_cast<const char*>(
                ::memrchr(buffer.data() + searched, '\n', *filled - searched));
            if (newline != nullptr) {
                end = static_cast<std::size_t>(newline - buffer.data()) + 1;
                break;
            }
            if (*filled > kMaxLineBytes) return skip_long_line(batch, *filled);
            buffer.resize(std::min(2 * buffer.size(), kMaxLineBytes + 1));
            searched = *filled;
            filled = read_on(buffer, searched);
            if (!filled) return filled.error();
        }
        carry_.assign(buffer.begin() + static_cast<std::ptrdiff_t>(end),
                      buffer.begin() + static_cast<std::ptrdiff_t>(*filled));
        batch.text_bytes = end;
        if (options_.limit != 0) truncate_at_limit(batch);
        offset_ += batch.text_bytes;
        return batch.text_bytes != 0;
    }

  private:
    /// Makes `batch` stand for the line whose beginning fills its buffer, and discards that line.
    Result<bool> skip_long_line(Batch& batch, std::size_t filled) {
        batch.too_long = true;
        carry_.clear();
        if (!options_.skip_faults) {
            ended_ = true;
            return true;
        }
        std::vector<char>& buffer = batch.buffer;
        for (;;) {
            const auto* newline =
                static_cast<const char*>(std::memchr(buffer.data(), '\n', filled));
            if (newline != nullptr) {
                carry_.assign(newline + 1, static_cast<const char*>(buffer.data() + filled));
                offset_ += static_cast<std::uint64_t>(newline + 1 - buffer.data());
                break;
            }
            offset_ += filled;
            if (input_ended_) {
                ended_ = true;
                batch.final_newline = false;
                break;
            }
            auto more = read_on(buffer, 0);
            if (!more) return more.error();
            filled = *more;
        }
        if (options_.limit != 0 && --lines_left_ == 0) {
            stopped_at_limit_ = has_more();
            ended_ = true;
        }
        return true;
    }

    /// Whether the source goes on after what was returned. A failed read counts as yes: it is
    /// beyond the limit.
    bool has_more() {
        if (!carry_.empty() || input_ended_) return !carry_.empty();
        const auto got = input_.skip(1);
        return !got || *got != 0;
    }

    void truncate_at_limit(Batch& batch) {
        std::size_t at = 0;
        while (at < batch.text_bytes && lines_left_ > 0) {
            const auto* newline = static_cast<const char*>(
                std::memchr(batch.buffer.data() + at, '\n', batch.text_bytes - at));
            at = newline == nullptr ? batch.text_bytes
                                    : static_cast<std::size_t>(newline - batch.buffer.data()) + 1;
            --lines_left_;
        }
        if (lines_left_ > 0) return;
        stopped_at_limit_ = at < batch.text_bytes || has_more();
        if (at < batch.text_bytes) batch.final_newline = true;
        batch.text_bytes = at;
        ended_ = true;
    }

    std::uint64_t lines_left_;
};

class RecordChunker : public Chunker {
  public:
    RecordChunker(Input& input, ChunkerOptions options)
        : Chunker(input, std::move(options)),
          layout_{options_.detected.dim, std::nullopt, {}},
          header_records_(*options_.detected.header_rows),
          end_record_(rows_within_limit()) {}

    Result<bool> next(Batch& batch) override {
        if (!start(batch)) return false;
        auto filled = fill_buffer(batch);
        if (!filled) return filled.error();
        // Some programs write an LF before each word.
        const bool at_first = offset_ == options_.detected.body_offset;
        const std::size_t begin = at_first && batch.buffer[0] == '\n' ? 1 : 0;
        std::size_t at = begin;
        Record record;
        while (records_ < end_record_ && at < *filled) {
            const std::string_view bytes(batch.buffer.data() + at, *filled - at);
            record = find_record(bytes, input_ended_, layout_, header_records_ - records_);
            if (record.state == Record::State::whole) {
                add_record(batch, record, at);
                at += record.bytes;
            } else if (record.state == Record::State::incomplete && at == begin) {
                // It and the next are longer than a chunk.
                batch.buffer.resize(2 * batch.buffer.size());
                filled = read_on(batch.buffer, *filled);
                if (!filled) return filled.error();
            } else {
                break;
            }
        }
        batch.text_bytes = at;
        offset_ += at;
        if (records_ == end_record_) {
            ended_ = true;
            stopped_at_limit_ = end_record_ < header_records_;
            if (!stopped_at_limit_) {
                if (Status read = find_surplus(batch, at, *filled); !read) return read.error();
            }
        } else if (at < *filled && record.state == Record::State::refused) {
            // Records before it are returned first, so that a fault in them is reported first.
            if (at == begin) {
                return fault(offset_, record.problem);
            }
            keep_rest(batch, at, *filled);
        } else if (input_ended_) {
            ended_ = true;
            batch.cut_bytes = *filled - at;
            batch.text_bytes = *filled;
            offset_ += batch.cut_bytes;
        } else {
            keep_rest(batch, at, *filled);
        }
        return batch.text_bytes != 0;
    }

  private:
    /// The sizes of numbers are learned from so many records, then from one in so many.
    static constexpr std::uint64_t kLearnedFirst = 64;
    static constexpr std::uint64_t kLearnedLater = 16;

    /// An error in the next record.
    Error fault(std::uint64_t offset, const std::string& problem) const {
        return bad_source("{}: word {} (byte {}): {}", input_.name(), records_ + 1, offset,
                          problem);
    }

    void add_record(Batch& batch, const Record& record, std::size_t at) {
        batch.places.push_back(
            {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(record.word_bytes)});
        if (header_records_ - records_ > 1) layout_.newline = record.newline;
        if (records_ < kLearnedFirst || records_ % kLearnedLater == 0) {
            const std::size_t numbers = at + record.word_bytes + 1;
            layout_.sizes.learn(batch.buffer.data() + numbers, layout_.dim);
        }
        ++records_;
    }

    void keep_rest(const Batch& batch, std::size_t at, std::size_t filled) {
        carry_.assign(batch.buffer.begin() + static_cast<std::ptrdiff_t>(at),
                      batch.buffer.begin() + static_cast<std::ptrdiff_t>(filled));
    }

    /// Reads to the input's end and looks for data other than an LF and zeros, the padding of tapes
    /// and block devices.
    Status find_surplus(Batch& batch, std::size_t at, std::size_t filled) {
        // A buffer of its own: the batch's holds the records to return.
        std::vector<char> buffer(batch.buffer.begin() + static_cast<std::ptrdiff_t>(at),
                                 batch.buffer.begin() + static_cast<std::ptrdiff_t>(filled));
        std::uint64_t buffer_offset = offset_;
        for (;;) {
            const bool first = buffer_offset == offset_;
            const std::size_t start = first && !buffer.empty() && buffer[0] == '\n' ? 1 : 0;
            const auto found = std::find_if(buffer.begin() + static_cast<std::ptrdiff_t>(start),
                                            buffer.end(), [](char c) { return c != '\0'; });
            if (found != buffer.end() && !surplus_offset_) {
                surplus_offset_ =
                    buffer_offset + static_cast<std::uint64_t>(found - buffer.begin());
            }
            if (input_ended_) return {};
            buffer_offset += buffer.size();
            buffer.resize(options_.chunk_bytes);
            auto got = read_on(buffer, 0);
            if (!got) return got.error();
            buffer.resize(*got);
        }
    }

    RecordLayout layout_;
    const std::uint64_t header_records_;
    const std::uint64_t end_record_;  // the header's, or before it the limit's
    std::uint64_t records_ = 0;       // before the next one
};

}  // namespace

Chunker::Chunker(Input& input, ChunkerOptions options)
    : input_(input), options_(std::move(options)), offset_(options_.detected.body_offset) {}

std::unique_ptr<Chunker> Chunker::create(Input& input, ChunkerOptions options) {
    if (options.detected.format == SourceFormat::word2vec_bin)
        return std::make_unique<RecordChunker>(input, std::move(options));
    if (is_array(options.detected.format)) return make_array_chunker(input, std::move(options));
    return std::make_unique<LineChunker>(input, std::move(options));
}

std::uint64_t Chunker::rows_within_limit() const {
    const std::uint64_t rows = *options_.detected.header_rows;
    return options_.limit == 0 ? rows : std::min(rows, options_.limit);
}

bool Chunker::start(Batch& batch) const {
    batch.text_bytes = 0;
    batch.final_newline = true;
    batch.too_long = false;
    batch.places.clear();
    batch.cut_bytes = 0;
    batch.text_offset = offset_;
    return !ended_;
}

Result<std::size_t> Chunker::fill_buffer(Batch& batch) {
    // Frees the memory of a long line, which «= {}» would keep.
    if (batch.buffer.size() > 2 * options_.chunk_bytes) batch.buffer = std::vector<char>();
    batch.buffer.resize(std::max({batch.buffer.size(), options_.chunk_bytes, carry_.size()}));
    std::ranges::copy(carry_, batch.buffer.begin());
    return read_on(batch.buffer, carry_.size());
}

Result<std::size_t> Chunker::read_on(std::vector<char>& buffer, std::size_t filled) {
    if (input_ended_ || filled == buffer.size()) return filled;
    auto got = input_.read(std::span(buffer).subspan(filled));
    if (!got) return got;
    filled += *got;
    input_ended_ = filled < buffer.size();
    return filled;
}

}  // namespace gloved::source
