#include "common/format/list_file.hpp"

#include <fmt/format.h>

#include <algorithm>
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

void WordHashes::add(std::string_view word) {
    hashes_.push_back(hash_word(word));
    if (hashes_.size() >= drop_at_) drop_at_ = std::max(drop_at_, 2 * count());
}

std::size_t WordHashes::count() {
    std::ranges::sort(hashes_);
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    return distinct_ = hashes_.size();
}

ListBuilder::ListBuilder(const Model& model, FindInOtherCase find_in_other_case)
    : model_(model),
      find_in_other_case_(std::move(find_in_other_case)),
      has_row_(model.rows(), false) {}

void ListBuilder::add(std::string_view word) {
    is_empty_ = false;
    auto row = model_.find(word);
    if (!row && find_in_other_case_) {
        row = find_in_other_case_(word);
        if (row) replaced_.add(word);
    }
    if (row) {
        has_row_[*row] = true;
    } else {
        missing_.add(word);
    }
}

bool ListBuilder::is_too_long() const {
    return std::max(missing_.at_least(), replaced_.at_least()) > kMaxOtherWords;
}

ListFile ListBuilder::finish() {
    ListFile list;
    list.rows.reserve(static_cast<std::size_t>(std::ranges::count(has_row_, true)));
    for (std::size_t row = 0; row < has_row_.size(); ++row) {
        if (has_row_[row]) list.rows.push_back(static_cast<Row>(row));
    }
    list.missing = missing_.count();
    list.replaced = replaced_.count();
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
                return lines.fault(fmt::format(
                    "more than {} words so far are not in the model; is this a list of words?",
                    kMaxOtherWords));
            }
        }
    }
}

std::uint64_t list_memory_bytes(std::uint64_t file_bytes, std::uint64_t rows) {
    const std::uint64_t words = file_bytes / 2;  // a byte and an LF each
    const std::uint64_t hashes = std::min<std::uint64_t>(words, 2 * kMaxOtherWords);
    // A vector that grows holds its old elements too: half as many as the new ones.
    return rows / 8 + std::min(words, rows) * sizeof(Row) +
           2 * hashes * sizeof(std::uint64_t) * 3 / 2;
}

}  // namespace gloved::format
