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
            if (*filled < buffer.size() && *filled <= kMaxLineBytes) {
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
            searched = *filled;
            filled = read_on(buffer, searched, std::min(2 * searched, kMaxLineBytes + 1));
            if (!filled) return filled.error();
        }
        put_back(buffer, end, *filled);
        batch.text_bytes = end;
        if (options_.limit != 0) truncate_at_limit(batch);
        offset_ += batch.text_bytes;
        return batch.text_bytes != 0;
    }

  private:
    /// Makes `batch` stand for the line whose beginning fills its buffer, and discards that line.
    Result<bool> skip_long_line(Batch& batch, std::size_t filled) {
        batch.too_long = true;
        if (!options_.skip_faults) {
            ended_ = true;
            return true;
        }
        std::vector<char>& buffer = batch.buffer;
        for (;;) {
            const auto* newline =
                static_cast<const char*>(std::memchr(buffer.data(), '\n', filled));
            if (newline != nullptr) {
                const auto end = static_cast<std::size_t>(newline + 1 - buffer.data());
                put_back(buffer, end, filled);
                offset_ += end;
                break;
            }
            offset_ += filled;
            if (filled < buffer.size()) {
                ended_ = true;
                batch.final_newline = false;
                break;
            }
            const auto more = input_.read(buffer);
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
            record = find_record(bytes, *filled < batch.buffer.size(), layout_,
                                 header_records_ - records_);
            if (record.state == Record::State::whole) {
                add_record(batch, record, at);
                at += record.bytes;
            } else if (record.state == Record::State::incomplete && at == begin) {
                // It and the next are longer than a chunk.
                filled = read_on(batch.buffer, *filled, 2 * *filled);
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
                put_back(batch.buffer, at, *filled);
                if (Status read = find_surplus(); !read) return read.error();
            }
        } else if (at < *filled && record.state == Record::State::refused) {
            // Records before it are returned first, so that a fault in them is reported first.
            if (at == begin) return fault(offset_, record.problem);
            put_back(batch.buffer, at, *filled);
        } else if (*filled < batch.buffer.size()) {
            ended_ = true;
            batch.cut_bytes = *filled - at;
            batch.text_bytes = *filled;
            offset_ += batch.cut_bytes;
        } else {
            put_back(batch.buffer, at, *filled);
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

    /// Reads to the input's end and looks for data other than an LF and zeros, the padding of tapes
    /// and block devices.
    Status find_surplus() {
        std::vector<char> buffer(options_.chunk_bytes);
        for (std::uint64_t buffer_offset = offset_;;) {
            const auto got = input_.read(buffer);
            if (!got) return got.error();
            const std::string_view rest(buffer.data(), *got);
            const bool newline = buffer_offset == offset_ && rest.starts_with('\n');
            const std::size_t found = rest.find_first_not_of('\0', newline ? 1 : 0);
            if (found != std::string_view::npos && !surplus_offset_)
                surplus_offset_ = buffer_offset + found;
            if (*got < buffer.size()) return {};
            buffer_offset += *got;
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
    return read_on(batch.buffer, 0, std::max(batch.buffer.size(), options_.chunk_bytes));
}

Result<std::size_t> Chunker::read_on(std::vector<char>& buffer, std::size_t filled,
                                     std::size_t bytes) {
    buffer.resize(bytes);
    auto got = input_.read(std::span(buffer).subspan(filled));
    if (!got) return got;
    return filled + *got;
}

void Chunker::put_back(const std::vector<char>& buffer, std::size_t begin, std::size_t filled) {
    input_.unread(std::span(buffer).subspan(begin, filled - begin));
}

}  // namespace gloved::source
