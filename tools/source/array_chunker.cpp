#include "tools/source/array_chunker.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/result.hpp"
#include "tools/source/array_layout.hpp"

namespace gloved::source {
namespace {

class ArrayChunker : public Chunker {
  public:
    ArrayChunker(Input& input, ChunkerOptions options)
        : Chunker(input, std::move(options)),
          array_(options_.detected.layout),
          end_row_(rows_within_limit()) {}

    Result<bool> next(Batch& batch) override {
        if (row_ == 0) {
            if (Status begun = begin(); !begun) return begun.error();
        }
        if (!start(batch)) return false;
        if (later_fault_) return *later_fault_;
        if (row_ == end_row_) {
            ended_ = true;
            stopped_at_limit_ = end_row_ < array_.rows;
            if (Status finished = stopped_at_limit_ ? Status() : finish(); !finished)
                return finished.error();
            return false;
        }
        const std::uint64_t first = row_;
        read_words(batch);
        std::size_t bytes = batch.places.size() * array_.row_bytes();
        const auto got = input_.read(std::span(batch.buffer).first(bytes));
        if (!got) return got.error();
        offset_ += *got;
        if (*got < bytes) {
            batch.places.resize(*got / array_.row_bytes());
            bytes = batch.places.size() * array_.row_bytes();
            if (options_.skip_faults) {
                ended_ = true;
                batch.cut_bytes = *got - bytes;
            } else {
                later_fault_ = cut(offset_);
            }
        }
        batch.text_bytes = bytes + batch.cut_bytes;
        if (batch.text_bytes == 0 && later_fault_) return *later_fault_;
        if (array_.fortran_order) {
            Status gathered = gather(first, batch);
            if (!gathered) return gathered.error();
        }
        return batch.text_bytes != 0;
    }

  private:
    /// Goes to the first number.
    Status begin() {
        if (array_.fortran_order && input_.plain_fd() < 0) {
            return bad_source(
                "{}: this array is in Fortran order (column by column), which only a "
                "file that is named and not packed can be read in; write it again in "
                "Python: numpy.save(path, numpy.ascontiguousarray(array))",
                input_.name());
        }
        if (array_.fortran_order && input_.total_bytes() < array_.file_bytes)
            return cut(input_.total_bytes());
        return skip_to(array_.offset);
    }

    Status skip_to(std::uint64_t offset) {
        const auto skipped = input_.skip(offset - offset_);
        if (!skipped) return skipped.error();
        offset_ += *skipped;
        return offset_ == offset ? Status() : cut(offset_);
    }

    /// Puts the words of the next rows into the buffer, behind the place of their numbers.
    void read_words(Batch& batch) {
        // As float32 the numbers take no more memory than a chunk.
        const std::size_t row_bytes = std::max(array_.row_bytes(), array_.dim * sizeof(float));
        const std::uint64_t most = std::min<std::uint64_t>(
            std::max<std::size_t>(1, options_.chunk_bytes / row_bytes), end_row_ - row_);
        std::vector<char>& buffer = batch.buffer;
        const std::size_t words_begin = static_cast<std::size_t>(most) * array_.row_bytes();
        buffer.resize(words_begin);
        while (batch.places.size() < most && buffer.size() <= words_begin + options_.chunk_bytes) {
            const auto word = options_.words->next();
            if (!word) {
                later_fault_ = about_words(word.error());
                return;
            }
            batch.places.push_back({static_cast<std::uint32_t>(buffer.size()),
                                    static_cast<std::uint32_t>(word->size())});
            buffer.insert(buffer.end(), word->begin(), word->end());
            ++row_;
        }
    }

    /// Reads the part of each column that belongs to the batch's rows, and puts its numbers into
    /// these.
    Status gather(std::uint64_t first_row, Batch& batch) {
        const std::size_t bytes = array_.number_bytes();
        const std::size_t rows = batch.places.size();
        char* const numbers = batch.buffer.data();
        column_.resize(rows * bytes);
        for (std::size_t i = 0; i < array_.dim; ++i) {
            Status read =
                read_all_at(input_.plain_fd(), std::as_writable_bytes(std::span(column_)),
                            array_.offset + (i * array_.rows + first_row) * bytes, input_.name());
            if (!read) return read;
            for (std::size_t row = 0; row < rows; ++row)
                std::memcpy(numbers + (row * array_.dim + i) * bytes, &column_[row * bytes], bytes);
        }
        return {};
    }

    /// Reads to the end: what follows the rows, and more words than rows.
    Status finish() {
        const std::uint64_t rows_end = offset_;
        if (Status checked = options_.words->check_end(); !checked)
            return about_words(checked.error());
        Status skipped = skip_to(array_.file_bytes);
        if (!skipped && !options_.skip_faults) return skipped;
        const auto more = input_.skip(1);
        if (!more) return more.error();
        if (*more != 0) surplus_offset_ = array_.file_bytes;
        offset_ = rows_end;
        return {};
    }

    Error about_words(const Error& error) const {
        return error_with(error.code, "{}: {}", input_.name(), error.message);
    }

    /// The error for a source of so many bytes, which are too few.
    Error cut(std::uint64_t file_bytes) const {
        return bad_source(
            "{}: the file ends at byte {}, {} bytes before the end of its numbers; the "
            "download is not complete, fetch it again",
            input_.name(), file_bytes, array_.file_bytes - file_bytes);
    }

    const ArrayLayout array_;
    const std::uint64_t end_row_;  // the array's, or before it the limit's
    std::uint64_t row_ = 0;
    // Behind the rows that were returned: a fault in these is reported first.
    std::optional<Error> later_fault_;
    std::vector<char> column_;  // a batch's part of one
};

}  // namespace

std::unique_ptr<Chunker> make_array_chunker(Input& input, ChunkerOptions options) {
    return std::make_unique<ArrayChunker>(input, std::move(options));
}

}  // namespace gloved::source
