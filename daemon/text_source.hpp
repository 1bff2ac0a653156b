// Long answers, rendered piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Renders the text of one answer in pieces. A source that reads a model keeps it alive. Not safe
/// for concurrent use.
class TextSource {
  public:
    TextSource() = default;
    TextSource(const TextSource&) = delete;
    TextSource& operator=(const TextSource&) = delete;
    virtual ~TextSource() = default;

    /// Appends text until `out` has `enough_bytes`, or a hundred or so more. A piece may end
    /// anywhere in a line.
    virtual void append_to(std::string& out, std::size_t enough_bytes) = 0;
    virtual bool finished() const = 0;
    /// Memory that the source holds, without the text that it has appended.
    virtual std::size_t held_bytes() const = 0;
    /// Whether rendering takes long, so that the engine's thread has to do it.
    virtual bool is_costly() const { return false; }
};

/// Lines that begin with a word, which may be long, and continue with columns.
class WordLines : public TextSource {
  public:
    void append_to(std::string& out, std::size_t enough_bytes) final;
    bool finished() const final { return next_ == count(); }

  protected:
    explicit WordLines(wire::Form form) : line_(form) {}

  private:
    virtual std::size_t count() const = 0;
    virtual std::string_view word(std::size_t number) const = 0;
    /// Appends the columns after the word.
    virtual void append_columns(std::size_t number, wire::LineWriter& line) const = 0;

    wire::LineWriter line_;
    std::size_t next_ = 0;
    std::size_t written_of_word_ = 0;  // 0: the line has not begun
};

/// Hits: word, score, and the requested fields.
class HitLines : public WordLines {
  public:
    HitLines(wire::Form form, std::vector<kernels::Hit> hits, std::vector<wire::Field> fields,
             std::shared_ptr<const format::Model> model);
    std::size_t held_bytes() const override;

  private:
    std::size_t count() const override { return hits_.size(); }
    std::string_view word(std::size_t number) const override {
        return model_->key(hits_[number].row);
    }
    void append_columns(std::size_t number, wire::LineWriter& line) const override;

    std::vector<kernels::Hit> hits_;
    std::vector<wire::Field> fields_;
    std::shared_ptr<const format::Model> model_;
};

/// Words of a model, and the requested fields.
class RowLines : public WordLines {
  public:
    RowLines(wire::Form form, std::vector<kernels::Row> rows, std::vector<wire::Field> fields,
             std::shared_ptr<const format::Model> model);
    std::size_t held_bytes() const override;

  private:
    std::size_t count() const override { return rows_.size(); }
    std::string_view word(std::size_t number) const override { return model_->key(rows_[number]); }
    void append_columns(std::size_t number, wire::LineWriter& line) const override;

    std::vector<kernels::Row> rows_;
    std::vector<wire::Field> fields_;
    std::shared_ptr<const format::Model> model_;
};

/// Words of a request, whether the model has each, and if so the requested fields.
class PresenceLines : public WordLines {
  public:
    PresenceLines(wire::Form form, const std::vector<std::string>& words,
                  std::vector<wire::Field> fields, std::shared_ptr<const format::Model> model);
    std::size_t held_bytes() const override;

  private:
    /// A word's end in `text_`, and its row, or kUnknown. A request may have 32,768 words: strings
    /// of their own would take 1 MiB.
    struct Entry {
        std::uint32_t end;
        kernels::Row row;
    };

    std::size_t count() const override { return entries_.size(); }
    std::string_view word(std::size_t number) const override;
    void append_columns(std::size_t number, wire::LineWriter& line) const override;

    std::string text_;  // all words, concatenated
    std::vector<Entry> entries_;
    std::vector<wire::Field> fields_;
    std::shared_ptr<const format::Model> model_;
};

/// One line: a row's vector.
class VectorLine : public TextSource {
  public:
    VectorLine(wire::Form form, kernels::Row row, std::shared_ptr<const format::Model> model);
    void append_to(std::string& out, std::size_t enough_bytes) override;
    bool finished() const override { return finished_; }
    std::size_t held_bytes() const override { return sizeof *this; }

  private:
    wire::LineWriter line_;
    const kernels::Row row_;
    const std::shared_ptr<const format::Model> model_;
    std::size_t next_ = 0;  // number of the vector
    bool finished_ = false;
};

/// Scores or distances of every pair of rows, a line per row.
class MatrixLines : public TextSource {
  public:
    MatrixLines(wire::Form form, wire::Metric metric, std::vector<kernels::Row> rows,
                std::shared_ptr<const format::Model> model);
    /// Stops after about two milliseconds, too.
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

/// An ERR. Accepts suggestions until its first piece is rendered.
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

/// The canonical cosine of two rows; 0 if the first has a zero vector.
double cosine(const format::Model& model, kernels::Row a, kernels::Row b);
double squared_distance(const format::Model& model, kernels::Row a, kernels::Row b);

}  // namespace gloved::daemon
