// Long answers: what they are made from, and how that becomes text a piece at a time.
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

/// Makes the text of one answer, in order, in pieces. Of one thread at a time. Sources that read a
/// model keep it alive.
class TextSource {
  public:
    TextSource() = default;
    TextSource(const TextSource&) = delete;
    TextSource& operator=(const TextSource&) = delete;
    virtual ~TextSource() = default;

    /// Appends text while `out` has less than `enough_bytes` and there is more; the last part that
    /// it appends may pass that by a hundred bytes or so. A piece may end anywhere in a line.
    virtual void append_to(std::string& out, std::size_t enough_bytes) = 0;
    virtual bool finished() const = 0;
    /// Memory that the source holds. Text that it has made is not part of it.
    virtual std::size_t held_bytes() const = 0;
    /// Whether the engine's thread has to make the text, because that takes long.
    virtual bool is_costly() const { return false; }
};

/// What lines of words have in common: a word, which may be long, and then some columns.
class WordLines : public TextSource {
  public:
    void append_to(std::string& out, std::size_t enough_bytes) final;
    bool finished() const final { return next_ == count(); }

  protected:
    explicit WordLines(wire::Form form) : line_(form) {}

  private:
    virtual std::size_t count() const = 0;
    virtual std::string_view word(std::size_t number) const = 0;
    /// Appends the columns behind the word.
    virtual void append_columns(std::size_t number, wire::LineWriter& line) const = 0;

    wire::LineWriter line_;
    std::size_t next_ = 0;
    std::size_t written_of_word_ = 0;  // 0: the line has not begun
};

/// Hits: word, score, and the fields that were asked for.
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

/// Words of a model, and the fields that were asked for.
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

/// Words of a request, whether the model has them, and of those that it has the fields that were
/// asked for.
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

    std::string text_;  // all words, one behind the other
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

/// Every row compared with every row, a line a row.
class MatrixLines : public TextSource {
  public:
    MatrixLines(wire::Form form, wire::Metric metric, std::vector<kernels::Row> rows,
                std::shared_ptr<const format::Model> model);
    /// Stops also when a piece has taken about two milliseconds.
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

/// An ERR. Suggestions may come until the first piece is made.
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

/// The cosine of two rows by the canonical definition; 0 where the first has a zero vector.
double cosine(const format::Model& model, kernels::Row a, kernels::Row b);
double squared_distance(const format::Model& model, kernels::Row a, kernels::Row b);

}  // namespace gloved::daemon
