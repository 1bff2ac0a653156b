#include "tools/distmat/matrix.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/case_index.hpp"
#include "common/format/layout.hpp"
#include "common/format/neighbors.hpp"
#include "common/npy.hpp"
#include "common/program_main.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "common/text_lines.hpp"
#include "common/unicode_form.hpp"
#include "tools/distmat/text_rows.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/chunker.hpp"
#include "tools/source/input.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::distmat {
namespace {

using kernels::distance::Values;
using source::Input;

/// Bytes read at a time of an array that comes as a stream. Memory grows with the data: a header
/// may claim any size.
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

Result<Input> open_input(const std::string& path, const std::atomic<bool>& stop,
                         const std::string& member) {
    auto input = Input::open(path, stop, member);
    if (!input) return input;
    if (Status used = input->check_member(member); !used) return used.error();
    return input;
}

/// Parses a header and checks that the array is a matrix of float32 or float64.
Result<npy::Header> matrix_header(std::string_view prefix, const std::string& name) {
    auto header = npy::parse_header(prefix, name);
    if (!header) return header;
    if (Status plain = npy::check_plain(*header, name); !plain) return plain.error();
    const auto again = [&](std::string_view what, std::string_view array) {
        return error_with(ErrorCode::unsupported,
                          "{}: {}; write it again with numpy.save(path, {})", name, what, array);
    };
    if (header->type != npy::Type::float32 && header->type != npy::Type::float64) {
        return again(
            fmt::format("its numbers are {}, not float32 or float64", printable(header->descr)),
            "array.astype('float32')");
    }
    if (header->shape.size() != 2) {
        std::string shape = fmt::format("{}", fmt::join(header->shape, ", "));
        if (header->shape.size() == 1) shape += ',';
        return again(
            fmt::format("its shape is ({}), and a matrix has rows and columns", shape),
            header->shape.size() < 2 ? "array.reshape(-1, 1)" : "array.reshape(len(array), -1)");
    }
    if (header->shape[0] == 0 || header->shape[1] == 0) {
        return bad_source("{}: its shape is ({}, {}): a matrix has at least one row and one column",
                          name, header->shape[0], header->shape[1]);
    }
    return header;
}

Error wrong_length(const std::string& name, const npy::Header& header, std::uint64_t file_bytes) {
    const std::uint64_t wanted = header.data_offset + header.data_bytes;
    if (file_bytes < wanted) {
        return damaged(
            "{}: ends at byte {}, and an array of shape ({}, {}) ends at byte {}; it "
            "is not complete, fetch or write it again",
            name, file_bytes, header.shape[0], header.shape[1], wanted);
    }
    return damaged(
        "{0}: continues after its array, which ends at byte {1}; if the array is "
        "what you want: head -c {1} FILE",
        name, wanted);
}

/// Reads an array that comes as a stream, with its header.
template <class T>
Result<std::vector<T>> read_array(Input& input, const npy::Header& header) {
    const auto skipped = input.skip(header.data_offset);
    if (!skipped) return skipped.error();
    std::vector<T> values;
    std::size_t have = 0;
    while (have < header.data_bytes) {
        const std::size_t wanted = std::min(header.data_bytes - have, std::max(have, kPieceBytes));
        values.resize((have + wanted + sizeof(T) - 1) / sizeof(T));
        const auto got = input.read({reinterpret_cast<char*>(values.data()) + have, wanted});
        if (!got) return got.error();
        have += *got;
        if (*got < wanted) return wrong_length(input.name(), header, header.data_offset + have);
    }
    const auto more = input.skip(1);
    if (!more) return more.error();
    if (*more != 0) return wrong_length(input.name(), header, header.data_offset + have + 1);
    return values;
}

/// The error for a word on the line that was read last.
Error unknown_word(const TextLines& lines, std::string_view word, const format::Model& model) {
    const std::string hint = other_form_hint(
        word, [&](const std::string& form) { return model.find(form).has_value(); });
    Error error = lines.fault(fmt::format(
        "{} is not in the model {}{}; --unknown skip leaves it out, --case ignore finds it in "
        "another case; grep finds words in {}/{}",
        printable(word), model.path(), hint, model.path(), format::kKeysFile));
    error.code = ErrorCode::unknown_word;
    error.subject = word;
    return error;
}

/// Finds the words of a file in a model. Reads all of the model's words if case is ignored, but not
/// before it must.
class WordFinder {
  public:
    WordFinder(const format::Model& model, bool ignores_case)
        : model_(model), ignores_case_(ignores_case) {}

    std::optional<format::Row> find(std::string_view word) {
        const auto row = model_.find(word);
        if (row || !ignores_case_) return row;
        if (!cases_) cases_.emplace(model_);
        return cases_->find_in_other_case(word);
    }

  private:
    const format::Model& model_;
    bool ignores_case_;
    std::optional<format::CaseIndex> cases_;
};

/// What to tell of words that were skipped, each with its line.
std::string skipped_note(const std::string& path, std::span<const std::string> skipped) {
    constexpr std::size_t kShown = 10;
    const auto shown = skipped.first(std::min(kShown, skipped.size()));
    return fmt::format(
        "{}: {} not in the model and without numbers: {}{}", path,
        skipped.size() == 1 ? "1 word is" : fmt::format("{} words are", skipped.size()),
        fmt::join(shown, ", "), shown.size() < skipped.size() ? ", …" : "");
}

/// Bytes that distinguish an array from text.
constexpr std::size_t kMarkBytes = 8;

}  // namespace

/// Reads a matrix from text.
class TextReader {
  public:
    TextReader(Input& input, Matrix& matrix) : input_(input), matrix_(matrix) {}

    /// `head`: the first bytes, which the input still has.
    Status read(std::string_view head, const ReadOptions& options) {
        source::ChunkerOptions chunking;
        chunking.chunk_bytes = options.chunk_bytes;
        const auto begin = begin_of_text(head, matrix_.name_);
        if (!begin) return begin.error();
        const auto mark = input_.skip(*begin);
        if (!mark) return mark.error();
        chunking.detected.body_offset = *begin;
        const auto chunker = source::Chunker::create(input_, std::move(chunking));
        struct Piece {
            source::Batch batch;
            TextRows rows;
        };
        Progress progress("reading", input_.total_bytes());
        const auto produce = [&](Piece& piece) { return chunker->next(piece.batch); };
        const auto parse = [](Piece& piece) {
            if (!piece.batch.too_long)
                parse_text_rows({piece.batch.buffer.data(), piece.batch.text_bytes}, piece.rows);
        };
        const auto take = [&](Piece& piece) -> Status {
            progress.update(input_.source_bytes());
            if (piece.batch.too_long) {
                return bad_source(
                    "{}: line {}: it is longer than {} MiB; give so wide a matrix as .npy",
                    matrix_.name_, lines_ + 1, source::kMaxLineBytes >> 20);
            }
            return add(piece.rows, piece.batch.text_bytes);
        };
        if (Status done = source::run_ordered<Piece>(options.threads, produce, parse, take); !done)
            return done;
        if (matrix_.rows_ == 0) {
            return bad_source("{}: {}", matrix_.name_,
                              lines_ == 0 ? "is empty; a matrix has at least one row"
                                          : "holds no numbers; a matrix has at least one row");
        }
        return {};
    }

  private:
    Error ragged(std::uint64_t line, std::size_t count) const {
        return bad_source(
            "{}: line {} has {} number{}, and line {} has {}; a matrix has the same in every row",
            matrix_.name_, line + 1, count, count == 1 ? "" : "s", matrix_.lines_.front().line + 1,
            matrix_.dim_);
    }

    Status add(const TextRows& piece, std::size_t text_bytes) {
        auto& values = std::get<std::vector<double>>(matrix_.numbers_);
        if (piece.rows != 0) {
            if (matrix_.rows_ == 0) {
                matrix_.dim_ = piece.dim;
                // Reserves memory for the whole of a plain file, by the share of its first piece.
                if (input_.compression() == "none" && text_bytes != 0) {
                    const double pieces =
                        static_cast<double>(input_.total_bytes()) / static_cast<double>(text_bytes);
                    if (pieces > 1)
                        values.reserve(static_cast<std::size_t>(
                            1.05 * pieces * static_cast<double>(piece.values.size())));
                }
            }
            for (const auto& [row, line] : piece.line_of_row) {
                const Matrix::LineOfRow next{matrix_.rows_ + row, lines_ + line};
                const auto& all = matrix_.lines_;
                if (all.empty() || all.back().line + (next.row - all.back().row) != next.line)
                    matrix_.lines_.push_back(next);
            }
            if (piece.dim != matrix_.dim_)
                return ragged(lines_ + piece.line_of_row.front().second, piece.dim);
            values.insert(values.end(), piece.values.begin(), piece.values.end());
            matrix_.rows_ += piece.rows;
        }
        if (piece.fault) {
            const std::uint64_t line = lines_ + piece.fault->line;
            if (piece.fault->count != 0) return ragged(line, piece.fault->count);
            return bad_source("{}: line {}: {}", matrix_.name_, line + 1, piece.fault->message);
        }
        lines_ += piece.lines;
        return {};
    }

    Input& input_;
    Matrix& matrix_;
    std::uint64_t lines_ = 0;
};

/// Reads a matrix from a NumPy array: a plain file is mapped, another input is copied.
class ArrayFile {
  public:
    explicit ArrayFile(Matrix& matrix) : matrix_(matrix) {}

    Status map(const std::string& path) {
        auto mapped = MappedFile::open_at(AT_FDCWD, path.c_str(), path);
        if (!mapped) return mapped.error();
        matrix_.mapped_ = *std::move(mapped);
        const MappedFile& file = matrix_.mapped_;
        const auto header = read_header(file.text().substr(0, npy::kMaxHeaderBytes));
        if (!header) return header.error();
        if (file.size_bytes() < header->data_offset ||
            file.size_bytes() - header->data_offset != header->data_bytes)
            return wrong_length(path, *header, file.size_bytes());
        if (header->type == npy::Type::float32) {
            take_mapped<float>(*header);
        } else {
            take_mapped<double>(*header);
        }
        return {};
    }

    Status read(Input& input) {
        const auto head = input.peek(npy::kMaxHeaderBytes);
        if (!head) return head.error();
        const auto header = read_header(*head);
        if (!header) return header.error();
        return header->type == npy::Type::float32 ? take_read<float>(input, *header)
                                                  : take_read<double>(input, *header);
    }

  private:
    Result<npy::Header> read_header(std::string_view prefix) {
        auto header = matrix_header(prefix, matrix_.name_);
        if (!header) return header;
        matrix_.rows_ = header->shape[0];
        matrix_.dim_ = header->shape[1];
        return header;
    }

    template <class T>
    void take_mapped(const npy::Header& header) {
        const std::byte* const data = matrix_.mapped_.bytes().data() + header.data_offset;
        const std::size_t count = header.data_bytes / sizeof(T);
        if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0) {
            matrix_.numbers_ = std::span(reinterpret_cast<const T*>(data), count);
        } else {
            auto& copy = matrix_.numbers_.emplace<std::vector<T>>(count);
            std::memcpy(copy.data(), data, header.data_bytes);
        }
    }

    template <class T>
    Status take_read(Input& input, const npy::Header& header) {
        auto values = read_array<T>(input, header);
        if (!values) return values.error();
        matrix_.numbers_ = *std::move(values);
        return {};
    }

    Matrix& matrix_;
};

Values Matrix::values() const {
    return std::visit([](const auto& numbers) { return Values(std::span(numbers)); }, numbers_);
}

std::string Matrix::row_name(std::size_t row) const {
    if (lines_.empty()) return fmt::format("{}: row {} (counted from 0)", name_, row);
    const auto after = std::ranges::upper_bound(lines_, row, {}, &LineOfRow::row);
    const LineOfRow& run = *(after - 1);
    const std::string place = fmt::format("{}: line {}", name_, run.line + (row - run.row) + 1);
    return words_.empty() ? place : fmt::format("{} ({})", place, printable(words_[row]));
}

Status Matrix::verify_size() const {
    if (mapped_.has_kept_its_size()) return {};
    return damaged("{}: became shorter or longer while it was read; run it again", name_);
}

Result<Matrix> read_matrix(const std::string& path, const ReadOptions& options,
                           const std::atomic<bool>& stop) {
    auto input = open_input(path, stop, options.member);
    if (!input) return input.error();
    Matrix matrix;
    matrix.name_ = path;
    const auto head = input->peek(kMarkBytes);
    if (!head) return head.error();
    if (!npy::is_npy(*head)) {
        matrix.numbers_ = std::vector<double>();
        const Status read = TextReader(*input, matrix).read(*head, options);
        if (!read) return read.error();
        return matrix;
    }
    const bool is_plain_file =
        path != "-" && input->compression() == "none" && input->total_bytes() != 0;
    ArrayFile array(matrix);
    const Status read = is_plain_file ? array.map(path) : array.read(*input);
    if (!read) return read.error();
    return matrix;
}

Result<Matrix> read_words(const std::string& path, const format::Model& model,
                          const WordRules& rules, const std::atomic<bool>& stop,
                          const std::string& member) {
    auto input = open_input(path, stop, member);
    if (!input) return input.error();
    Matrix matrix;
    matrix.name_ = path;
    matrix.dim_ = model.dim();
    auto& values = matrix.numbers_.emplace<std::vector<float>>();
    TextLines lines(path, [&](std::span<char> buffer) { return input->read(buffer); });
    WordFinder finder(model, rules.ignores_case);
    std::vector<std::string> skipped;
    for (;;) {
        const auto word = lines.next_word();
        if (!word) return word.error();
        if (!*word) break;
        const auto row = finder.find(**word);
        if (!row) {
            if (!rules.skips_unknown) return unknown_word(lines, **word, model);
            skipped.push_back(fmt::format("{} (line {})", printable(**word), lines.number()));
        }
        if (const auto note = lines.heading_note(**word)) say_on_stderr(program_name(), *note);
        matrix.model_rows_.push_back(row.value_or(format::kNoRow));
        matrix.words_.emplace_back(**word);
        matrix.lines_.push_back({matrix.rows_++, lines.number() - 1});
    }
    if (matrix.rows_ == 0)
        return bad_source("{}: holds no words; there must be at least one", path);
    const auto known = std::ranges::find_if(matrix.model_rows_,
                                            [](format::Row row) { return row != format::kNoRow; });
    if (known == matrix.model_rows_.end()) {
        return error_with(ErrorCode::unknown_word, "{}: the model {} has none of its {} words",
                          path, model.path(), matrix.rows_);
    }
    for (const format::Row row : matrix.model_rows_) {
        const auto vector = model.vector(row == format::kNoRow ? *known : row);
        values.insert(values.end(), vector.begin(), vector.end());
    }
    if (!skipped.empty()) say_on_stderr(program_name(), skipped_note(path, skipped));
    return matrix;
}

}  // namespace gloved::distmat
