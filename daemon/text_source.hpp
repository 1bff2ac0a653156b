// TextSource and its kinds: render a long answer piece by piece as the client reads it, so that it
// is never whole in memory as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "daemon/vocabulary.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Renders the lines of one answer, as text or JSON, in pieces. Call append_to until finished(). A
/// source that reads a model shares its ownership. Not safe for concurrent use.
class TextSource {
  public:
    TextSource() = default;
    TextSource(const TextSource&) = delete;
    TextSource& operator=(const TextSource&) = delete;
    virtual ~TextSource() = default;

    /// Appends text to `out` until that has `enough_bytes` in all, or a hundred or so more. A piece
    /// may end anywhere in a line.
    virtual void append_to(std::string& out, std::size_t enough_bytes) = 0;
    virtual bool finished() const = 0;
    /// Bytes of memory that the source holds, without the model and the text that it has appended.
    virtual std::size_t held_bytes() const = 0;
    /// Whether rendering takes too long for a loop, so that the engine's thread must call
    /// append_to.
    virtual bool is_costly() const { return false; }
};

/// Lines that begin with a word, which may be longer than a piece, and continue with columns. A
/// derived class says what word and columns are for each line. The columns end with the `fields` of
/// a row of `model`.
class WordLines : public TextSource {
  public:
    void append_to(std::string& out, std::size_t enough_bytes) final;
    bool finished() const final { return next_ == count(); }

  protected:
    WordLines(wire::Form form, std::vector<wire::Field> fields,
              std::shared_ptr<const format::Model> model)
        : line_(form), fields_(std::move(fields)), model_(std::move(model)) {}
    const format::Model& model() const { return *model_; }
    /// Appends the requested fields of `row`.
    void append_fields(kernels::Row row, wire::LineWriter& line) const;

  private:
    void prefetch_words() const;
    /// Number of lines.
    virtual std::size_t count() const = 0;
    /// The word of line `number`, from 0.
    virtual std::string_view word(std::size_t number) const = 0;
    /// Appends the columns after the word of line `number`.
    virtual void append_columns(std::size_t number, wire::LineWriter& line) const = 0;

    wire::LineWriter line_;
    const std::vector<wire::Field> fields_;
    const std::shared_ptr<const format::Model> model_;
    std::size_t next_ = 0;             // number of the line to continue
    std::size_t written_of_word_ = 0;  // bytes of its word; 0: the line has not begun
};

/// The lines of NEAR, NEARVEC and ANALOGY: word, score, and the requested fields of each hit.
class HitLines : public WordLines {
  public:
    HitLines(wire::Form form, std::vector<kernels::Hit> hits, std::vector<wire::Field> fields,
             std::shared_ptr<const format::Model> model);
    std::size_t held_bytes() const override;

  private:
    std::size_t count() const override { return hits_.size(); }
    std::string_view word(std::size_t number) const override {
        return model().key(hits_[number].row);
    }
    void append_columns(std::size_t number, wire::LineWriter& line) const override;

    std::vector<kernels::Hit> hits_;
};

/// The line of ODD: a word or a group, and its score.
class OddLine : public WordLines {
  public:
    OddLine(wire::Form form, std::string text, double score,
            std::shared_ptr<const format::Model> model)
        : WordLines(form, {}, std::move(model)), text_(std::move(text)), score_(score) {}
    std::size_t held_bytes() const override { return sizeof *this + text_.capacity(); }

  private:
    std::size_t count() const override { return 1; }
    std::string_view word(std::size_t) const override { return text_; }
    void append_columns(std::size_t, wire::LineWriter& line) const override {
        line.score("score", score_);
    }

    const std::string text_;
    const double score_;
};

/// The lines of PREFIX: word and the requested fields of each row.
class RowLines : public WordLines {
  public:
    RowLines(wire::Form form, std::vector<kernels::Row> rows, std::vector<wire::Field> fields,
             std::shared_ptr<const format::Model> model);
    std::size_t held_bytes() const override;

  private:
    std::size_t count() const override { return rows_.size(); }
    std::string_view word(std::size_t number) const override { return model().key(rows_[number]); }
    void append_columns(std::size_t number, wire::LineWriter& line) const override;

    std::vector<kernels::Row> rows_;
};

/// The lines of HAS: each word of the request, whether the model has it, with lists whether all of
/// them have it, and the requested fields of a word that the model has.
class PresenceLines : public WordLines {
  public:
    /// `within`: lists of `lists`; none for no answer about lists.
    PresenceLines(wire::Form form, const std::vector<std::string>& words, WordFinder& finder,
                  std::vector<wire::Field> fields, std::shared_ptr<const format::Model> model,
                  std::shared_ptr<const kernels::RowLists> lists, kernels::ListMask within);
    std::size_t held_bytes() const override;

  private:
    /// A word: `end` of its bytes in `text_`, and its row, or kUnknown if the model does not have
    /// it. One string for all words, because a request may have 32,768: as many strings would take
    /// 1 MiB.
    struct Entry {
        std::uint32_t end;
        kernels::Row row;
    };

    std::size_t count() const override { return entries_.size(); }
    std::string_view word(std::size_t number) const override;
    void append_columns(std::size_t number, wire::LineWriter& line) const override;

    std::string text_;  // all words, concatenated
    std::vector<Entry> entries_;
    const std::shared_ptr<const kernels::RowLists> lists_;
    const kernels::ListMask within_;
};

/// The lines of VEC: the vector of each of `rows`.
class VectorLines : public TextSource {
  public:
    VectorLines(wire::Form form, wire::Encoding encoding, std::vector<kernels::Row> rows,
                std::shared_ptr<const format::Model> model);
    void append_to(std::string& out, std::size_t enough_bytes) override;
    bool finished() const override { return line_number_ == rows_.size(); }
    std::size_t held_bytes() const override;

  private:
    /// Append components from next_ on, at least one, until `out` has enough bytes.
    void append_decimals(std::span<const float> values, std::string& out, std::size_t enough_bytes);
    void append_base64(std::span<const float> values, std::string& out, std::size_t enough_bytes);

    wire::LineWriter line_;
    const wire::Encoding encoding_;
    const std::vector<kernels::Row> rows_;
    const std::shared_ptr<const format::Model> model_;
    std::size_t line_number_ = 0;  // of the line to continue
    std::size_t next_ = 0;         // index of the component to continue with; 0: at its beginning
};

/// The lines of MATRIX: a line for each of `rows`, with its cosines with, or squared distances
/// from, all of them.
class MatrixLines : public TextSource {
  public:
    MatrixLines(wire::Form form, wire::Metric metric, std::vector<kernels::Row> rows,
                std::shared_ptr<const format::Model> model);
    /// Also stops after about two milliseconds, whatever `out` has then.
    void append_to(std::string& out, std::size_t enough_bytes) override;
    bool finished() const override { return row_ == rows_.size(); }
    std::size_t held_bytes() const override;
    bool is_costly() const override { return true; }

  private:
    wire::LineWriter line_;
    const wire::Metric metric_;
    const std::vector<kernels::Row> rows_;
    const std::shared_ptr<const format::Model> model_;
    std::size_t row_ = 0;
    std::size_t column_ = 0;
};

/// An ERR reply. Words that an unknown word may stand for can be added with `suggest`, before the
/// first append_to.
class ErrorLine : public TextSource {
  public:
    ErrorLine(wire::Form form, Error error) : form_(form), error_(std::move(error)) {}
    void suggest(std::vector<std::string> suggestions) { suggestions_ = std::move(suggestions); }
    const Error& error() const { return error_; }
    void append_to(std::string& out, std::size_t enough_bytes) override;
    bool finished() const override { return finished_; }
    std::size_t held_bytes() const override;

  private:
    const wire::Form form_;
    const Error error_;
    std::vector<std::string> suggestions_;
    bool begun_ = false;
    std::size_t written_of_word_ = 0;
    bool finished_ = false;
};

}  // namespace gloved::daemon
