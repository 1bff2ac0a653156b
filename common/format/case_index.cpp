#include "common/format/case_index.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/case_fold.hpp"
#include "common/unicode_form.hpp"

namespace gloved::format {
namespace {

/// The words that CaseIndex looks up in the model for one case folding.
std::array<std::string, 3> usual_forms(const std::string& folded) {
    return {folded, capitalized(folded), upper_case(folded)};
}

/// Whether `word` is one of the usual_forms of its case folding.
bool has_usual_form(std::string_view word) {
    // Nearly all words are ASCII, and the forms of 2.2 million would take half a second to make.
    std::size_t letters = 0;
    std::size_t capitals = 0;
    for (const char c : word) {
        if (static_cast<unsigned char>(c) >= 0x80)
            return std::ranges::count(usual_forms(fold_case(word)), word) > 0;
        const bool is_capital = c >= 'A' && c <= 'Z';
        capitals += is_capital ? 1U : 0U;
        letters += is_capital || (c >= 'a' && c <= 'z') ? 1U : 0U;
    }
    const bool begins_so = word[0] >= 'A' && word[0] <= 'Z';
    return capitals == 0 || capitals == letters || (capitals == 1 && begins_so);
}

/// Compares the case foldings of two words, without making them.
bool folds_before(std::string_view a, std::string_view b) {
    while (!a.empty() && !b.empty()) {
        const std::uint32_t of_a = take_folded(a);
        const std::uint32_t of_b = take_folded(b);
        if (of_a != of_b) return of_a < of_b;
    }
    return a.empty() && !b.empty();
}

}  // namespace

CaseIndex::CaseIndex(const Model& model) : model_(&model) {
    // A code point takes one byte to four, and stays one in every case.
    constexpr std::size_t kMaxGrowth = 4;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const std::string_view word = model.key(row);
        max_word_bytes_ = std::max(max_word_bytes_, kMaxGrowth * word.size());
        if (!has_usual_form(word)) rows_.push_back(static_cast<Row>(row));
    }
    std::ranges::sort(rows_, folds_before, [&](Row row) { return model.key(row); });
    rows_.shrink_to_fit();
}

std::optional<Row> CaseIndex::find(std::string_view word) const {
    const std::string folded = fold_case(word);
    const auto ranks = model_->ranks();
    std::optional<Row> best;
    const auto consider = [&](Row row) {
        if (!best || std::pair(ranks[row], row) < std::pair(ranks[*best], *best)) best = row;
    };
    for (const std::string& form : usual_forms(folded)) {
        // The upper case of «ı» folds to «i».
        if (fold_case(form) != folded) continue;
        if (const auto row = model_->find(form)) consider(*row);
    }
    const auto key_of = [&](Row row) { return model_->key(row); };
    auto at = std::ranges::lower_bound(rows_, std::string_view(folded), folds_before, key_of);
    for (; at != rows_.end() && !folds_before(folded, key_of(*at)); ++at) consider(*at);
    return best;
}

std::optional<Row> CaseIndex::find_in_other_case(std::string_view word) const {
    if (word.size() > max_word_bytes_) return std::nullopt;
    for (const std::string& form : {lower_case(word), capitalized(word), upper_case(word)}) {
        if (const auto row = model_->find(form)) return row;
    }
    if (const auto row = find(word)) return row;
    for (const auto& form : {composed(word), decomposed(word)}) {
        if (!form) continue;
        if (const auto row = model_->find(*form)) return row;
        if (const auto row = find(*form)) return row;
    }
    return std::nullopt;
}

}  // namespace gloved::format
