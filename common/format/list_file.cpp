#include "common/format/list_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <utility>

#include "common/format/word_index.hpp"

namespace gloved::format {
namespace {

std::uint64_t checksum_of(std::span<const Row> rows, const Model& model) {
    Checksum checksum;
    for (const Row row : rows) {
        checksum.update(std::as_bytes(std::span(model.key(row))));
        checksum.update(std::as_bytes(std::span("\n", 1)));
    }
    return checksum.value();
}

}  // namespace

bool DistinctWords::add(std::string_view word) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    std::uint32_t& slot = slot_of(word);
    if (slot != 0) return false;
    assert(text_.size() < std::numeric_limits<std::uint32_t>::max());
    slot = static_cast<std::uint32_t>(text_.size() + 1);
    text_.append(word).push_back('\n');
    ++count_;
    return true;
}

std::string DistinctWords::take_text() {
    std::vector<std::uint32_t>().swap(slots_);
    text_.shrink_to_fit();
    return std::move(text_);
}

std::string_view DistinctWords::word_at(std::uint32_t slot) const {
    const std::size_t begin = slot - 1;
    return std::string_view(text_).substr(begin, text_.find('\n', begin) - begin);
}

/// The slot that `word` has, or would get.
std::uint32_t& DistinctWords::slot_of(std::string_view word) {
    std::size_t at = hash_word(word) % slots_.size();
    while (slots_[at] != 0 && word_at(slots_[at]) != word) at = (at + 1) % slots_.size();
    return slots_[at];
}

void DistinctWords::grow() {
    const auto old = std::exchange(slots_, std::vector<std::uint32_t>(2 * slots_.size()));
    for (const std::uint32_t slot : old) {
        if (slot != 0) slot_of(word_at(slot)) = slot;
    }
}

ListBuilder::ListBuilder(const Model& model, FindInOtherCase find_in_other_case)
    : model_(model),
      find_in_other_case_(std::move(find_in_other_case)),
      has_row_(model.rows(), false),
      has_row_in_other_case_(find_in_other_case_ ? model.rows() : 0, false) {}

void ListBuilder::add(std::string_view word) {
    is_empty_ = false;
    if (const auto row = model_.find(word)) {
        has_row_[*row] = true;
        return;
    }
    if (!others_.add(word)) return;
    const auto row = find_in_other_case_ ? find_in_other_case_(word) : std::nullopt;
    if (row) {
        has_row_in_other_case_[*row] = true;
    } else {
        ++missing_;
    }
}

bool ListBuilder::is_too_long() const {
    return others_.count() > kMaxOtherWords || others_.text().size() > kMaxOtherBytes;
}

ListFile ListBuilder::finish() {
    ListFile list;
    list.rows.reserve(static_cast<std::size_t>(std::ranges::count(has_row_, true)));
    for (std::size_t row = 0; row < has_row_.size(); ++row) {
        const bool in_other_case = !has_row_in_other_case_.empty() && has_row_in_other_case_[row];
        if (!has_row_[row] && in_other_case) list.others.rows.push_back(static_cast<Row>(row));
        if (has_row_[row] || in_other_case) list.rows.push_back(static_cast<Row>(row));
    }
    list.missing = missing_;
    list.replaced = others_.count() - missing_;
    list.others.text = others_.take_text();
    list.checksum = checksum_of(list.rows, model_);
    list.is_empty = is_empty_;
    return list;
}

Status read_list(TextLines& lines, std::span<ListBuilder> builders,
                 std::optional<std::string>* note) {
    for (;;) {
        const auto word = lines.next_word();
        if (!word) return word.error();
        if (!*word) return {};
        if (note != nullptr && !*note) *note = lines.heading_note(**word);
        for (ListBuilder& builder : builders) {
            builder.add(**word);
            if (builder.is_too_long()) {
                return lines.fault(
                    fmt::format("more than {} words or {} MiB of them so far are not in the model; "
                                "is this a list of words?",
                                kMaxOtherWords, kMaxOtherBytes >> 20));
            }
        }
    }
}

std::uint64_t list_memory_bytes(std::uint64_t file_bytes, std::uint64_t rows) {
    const std::uint64_t words = file_bytes / 2;  // a byte and an LF each
    const std::uint64_t others = std::min<std::uint64_t>(words, kMaxOtherWords);
    // A vector that grows holds its old elements too: half as many as the new ones. After that it
    // has four slots for a word.
    return 2 * (rows / 8) + 2 * std::min(words, rows) * sizeof(Row) +
           4 * others * sizeof(std::uint32_t) * 3 / 2 +
           std::min<std::uint64_t>(file_bytes, kMaxOtherBytes) * 3 / 2;
}

}  // namespace gloved::format
