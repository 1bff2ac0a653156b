#include "client/eval/vocabulary.hpp"

#include <utility>

#include "common/unicode_form.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {
namespace {

/// A request line has at most 64 KiB, a quoted word at most 16 KiB.
constexpr std::size_t kHasLineBytes = 32768;

}  // namespace

void Vocabulary::add(std::string_view word) {
    if (!seen_.insert(std::string(word)).second) return;
    for (std::string& spelling : spellings_of(word, letter_case_)) {
        // The word itself is in the set already.
        if (spelling == word || seen_.insert(spelling).second)
            spellings_.push_back(std::move(spelling));
    }
}

void Vocabulary::set_rank(const std::string& spelling, std::uint64_t rank) {
    if (rank >= top_) return;
    const auto [entry, fresh] =
        found_.try_emplace(word_key(spelling, letter_case_), Entry{spelling, rank});
    if (!fresh && rank < entry->second.rank) entry->second = {spelling, rank};
}

const std::string* Vocabulary::find(std::string_view word) const {
    const auto entry = found_.find(word_key(word, letter_case_));
    return entry == found_.end() ? nullptr : &entry->second.spelling;
}

std::optional<std::string> Vocabulary::hint() const {
    for (const std::string& spelling : spellings_) {
        if (find(spelling) != nullptr) continue;
        if (auto hint = uncomposed_hint("a skipped word", spelling)) return hint;
    }
    return std::nullopt;
}

std::vector<HasRequest> has_requests(const std::vector<std::string>& spellings,
                                     std::string_view options) {
    std::vector<HasRequest> requests;
    for (std::size_t i = 0; i < spellings.size(); ++i) {
        if (requests.empty() || requests.back().line.size() > kHasLineBytes) {
            // Whatever the daemon does by default.
            requests.push_back({"HAS case=exact ", i, 0});
            requests.back().line += options;
        }
        requests.back().line += ' ';
        requests.back().line += wire::quote_word(spellings[i]);
        ++requests.back().count;
    }
    return requests;
}

}  // namespace gloved::client
