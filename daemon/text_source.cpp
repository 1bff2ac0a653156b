#include "daemon/text_source.hpp"

#include <algorithm>
#include <limits>

#include "common/base64.hpp"
#include "common/wire/json_string.hpp"
#include "kernels/row_pairs.hpp"

namespace gloved::daemon {
namespace {

/// Multiplications that take a millisecond or two.
constexpr std::size_t kMaxMatrixProducts = 2'000'000;
/// How many words are read into the cache together.
constexpr std::size_t kWordsAhead = 16;
/// No model has this row: format::kMaxRows is smaller.
constexpr kernels::Row kUnknown = std::numeric_limits<kernels::Row>::max();

}  // namespace

/// Words lie anywhere in the keys file: asks for those of the next lines together.
void WordLines::prefetch_words() const {
    const std::size_t end = std::min(count(), next_ + kWordsAhead);
    for (std::size_t number = next_; number < end; ++number)
        __builtin_prefetch(word(number).data());
}

void WordLines::append_to(std::string& out, std::size_t enough_bytes) {
    line_.write_to(out);
    while (!finished() && out.size() < enough_bytes) {
        if (next_ % kWordsAhead == 0) prefetch_words();
        if (written_of_word_ == 0) line_.begin();
        const std::string_view word = this->word(next_);
        written_of_word_ = line_.text_part("word", word, written_of_word_, enough_bytes);
        if (written_of_word_ < word.size()) return;
        append_columns(next_, line_);
        line_.end();
        written_of_word_ = 0;
        ++next_;
    }
}

void WordLines::append_fields(kernels::Row row, wire::LineWriter& line) const {
    for (const wire::Field field : fields_) {
        switch (field) {
            case wire::Field::row:
                line.count("row", row);
                break;
            case wire::Field::rank:
                line.count("rank", model().ranks()[row]);
                break;
            case wire::Field::norm:
                line.score("norm", model().norms()[row]);
                break;
            case wire::Field::score:
            case wire::Field::eligible:
                assert(false);  // of RANK alone
        }
    }
}

HitLines::HitLines(wire::Form form, std::vector<kernels::Hit> hits, std::vector<wire::Field> fields,
                   std::shared_ptr<const format::Model> model)
    : WordLines(form, std::move(fields), std::move(model)), hits_(std::move(hits)) {
    // Engines sort candidates in place, so the capacity may be many times the size.
    if (hits_.capacity() > 2 * hits_.size()) hits_.shrink_to_fit();
}

std::size_t HitLines::held_bytes() const {
    return sizeof *this + hits_.capacity() * sizeof(kernels::Hit);
}

void HitLines::append_columns(std::size_t number, wire::LineWriter& line) const {
    line.score("score", hits_[number].score);
    append_fields(hits_[number].row, line);
}

RowLines::RowLines(wire::Form form, std::vector<kernels::Row> rows, std::vector<wire::Field> fields,
                   std::shared_ptr<const format::Model> model)
    : WordLines(form, std::move(fields), std::move(model)), rows_(std::move(rows)) {}

std::size_t RowLines::held_bytes() const {
    return sizeof *this + rows_.capacity() * sizeof(kernels::Row);
}

void RowLines::append_columns(std::size_t number, wire::LineWriter& line) const {
    append_fields(rows_[number], line);
}

PresenceLines::PresenceLines(wire::Form form, const std::vector<std::string>& words,
                             WordFinder& finder, std::vector<wire::Field> fields,
                             std::shared_ptr<const format::Model> model,
                             std::shared_ptr<const kernels::RowLists> lists,
                             kernels::ListMask within)
    : WordLines(form, std::move(fields), std::move(model)),
      lists_(std::move(lists)),
      within_(within) {
    entries_.reserve(words.size());
    for (const std::string& word : words) {
        text_ += wire::echoed_word(form, word);
        entries_.push_back(
            {static_cast<std::uint32_t>(text_.size()), finder.find(word).value_or(kUnknown)});
    }
    text_.shrink_to_fit();
}

std::size_t PresenceLines::held_bytes() const {
    return sizeof *this + text_.capacity() + entries_.capacity() * sizeof(Entry);
}

std::string_view PresenceLines::word(std::size_t number) const {
    const std::size_t begin = number == 0 ? 0 : entries_[number - 1].end;
    return std::string_view(text_).substr(begin, entries_[number].end - begin);
}

void PresenceLines::append_columns(std::size_t number, wire::LineWriter& line) const {
    const kernels::Row row = entries_[number].row;
    line.flag("known", row != kUnknown);
    if (within_ != 0)
        line.flag("within", row != kUnknown && (lists_->memberships()[row] & within_) == within_);
    if (row != kUnknown) append_fields(row, line);
}

VectorLines::VectorLines(wire::Form form, wire::Encoding encoding, std::vector<kernels::Row> rows,
                         std::shared_ptr<const format::Model> model)
    : line_(form), encoding_(encoding), rows_(std::move(rows)), model_(std::move(model)) {}

void VectorLines::append_to(std::string& out, std::size_t enough_bytes) {
    line_.write_to(out);
    while (!finished() && out.size() < enough_bytes) {
        const auto values = model_->vector(rows_[line_number_]);
        if (next_ == 0) line_.begin();
        if (encoding_ == wire::Encoding::base64) {
            append_base64(values, out, enough_bytes);
        } else {
            append_decimals(values, out, enough_bytes);
        }
        if (next_ < values.size()) return;
        line_.end();
        next_ = 0;
        ++line_number_;
    }
}

void VectorLines::append_decimals(std::span<const float> values, std::string& out,
                                  std::size_t enough_bytes) {
    if (next_ == 0) line_.begin_list("vector");
    do {
        line_.list_float(values[next_]);
    } while (++next_ < values.size() && out.size() < enough_bytes);
    if (next_ == values.size()) line_.end_list();
}

void VectorLines::append_base64(std::span<const float> values, std::string& out,
                                std::size_t enough_bytes) {
    if (next_ == 0) line_.begin_base64("vector_base64");
    // Whole groups of three components until the piece is full, at least one.
    constexpr std::size_t kComponents = kBase64GroupBytes;
    constexpr std::size_t kCharacters = 4 * sizeof(float);
    const std::size_t room_bytes = enough_bytes - std::min(enough_bytes, out.size());
    const auto rest = values.subspan(next_);
    const auto part =
        rest.first(std::min(rest.size(), (1 + room_bytes / kCharacters) * kComponents));
    line_.base64(std::as_bytes(part));
    next_ += part.size();
    if (next_ == values.size()) line_.end_base64();
}

std::size_t VectorLines::held_bytes() const {
    return sizeof *this + rows_.capacity() * sizeof(kernels::Row);
}

MatrixLines::MatrixLines(wire::Form form, wire::Metric metric, std::vector<kernels::Row> rows,
                         std::shared_ptr<const format::Model> model)
    : line_(form), metric_(metric), rows_(std::move(rows)), model_(std::move(model)) {}

void MatrixLines::append_to(std::string& out, std::size_t enough_bytes) {
    line_.write_to(out);
    const bool is_cosine = metric_ == wire::Metric::cosine;
    std::size_t elements_left = 1 + kMaxMatrixProducts / model_->dim();
    for (; !finished() && out.size() < enough_bytes && elements_left > 0; --elements_left) {
        if (column_ == 0) {
            line_.begin();
            line_.begin_list(is_cosine ? "scores" : "distances");
        }
        const kernels::Row a = rows_[row_];
        const kernels::Row b = rows_[column_];
        line_.list_score(is_cosine ? kernels::cosine(*model_, a, b)
                                   : kernels::squared_distance(*model_, a, b));
        if (++column_ < rows_.size()) continue;
        line_.end_list();
        line_.end();
        column_ = 0;
        ++row_;
    }
}

std::size_t MatrixLines::held_bytes() const {
    return sizeof *this + rows_.capacity() * sizeof(kernels::Row);
}

void ErrorLine::append_to(std::string& out, std::size_t enough_bytes) {
    if (finished_ || out.size() >= enough_bytes) return;
    const bool has_word = wire::error_has_word(form_, error_);
    if (!begun_) {
        wire::append_error_head(out, form_, error_, suggestions_);
        if (has_word) out += '"';
        begun_ = true;
    }
    if (has_word) {
        written_of_word_ =
            wire::append_json_part(out, error_.subject, written_of_word_, enough_bytes);
        if (written_of_word_ < error_.subject.size()) return;
        out += '"';
    }
    wire::append_error_tail(out, form_, error_, suggestions_);
    finished_ = true;
}

std::size_t ErrorLine::held_bytes() const {
    return sizeof *this + error_.message.capacity() + error_.subject.capacity();
}

}  // namespace gloved::daemon
