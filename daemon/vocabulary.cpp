#include "daemon/vocabulary.hpp"

#include <algorithm>
#include <string_view>

#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "common/unicode_form.hpp"
#include "common/wire/json_string.hpp"
#include "common/wire/request_line.hpp"

namespace gloved::daemon {
namespace {

constexpr std::size_t kMaxNotedWords = 64;
constexpr std::size_t kMaxNotedBytes = 1024;
/// In JSON each byte that is not UTF-8 takes twelve.
constexpr std::size_t kMaxRenderedBytes = 12;
/// Of a noted word, besides its bytes: names and punctuation in a reply, or the string itself.
constexpr std::size_t kOverheadBytes = 64;

/// Of a request in JSON, where quotes and backslashes get a backslash each. Requests that would
/// grow more are not told.
constexpr std::size_t kMaxJsonGrowth = 2;

static_assert(kMaxNotedWords * 2 * kOverheadBytes + kMaxNotedBytes * kMaxRenderedBytes <=
              kMaxNotesBytes);

}  // namespace

LookUpRules Vocabulary::rules_for(const wire::Request& request) const {
    const wire::Options& options = request.options;
    LookUpRules rules{options.unknown.value_or(rules_.unknown),
                      options.word_case.value_or(rules_.word_case)};
    // ANALOGY has no unknown=, and leaves out no word.
    if (request.verb == wire::Verb::analogy) rules.unknown = wire::Unknown::error;
    return rules;
}

void LookUpNotes::append_to(std::vector<wire::StatusField>& fields) const {
    if (!skipped.empty()) fields.push_back({"skipped", wire::WordsField{skipped}});
    if (!replaced.empty()) fields.push_back({"replaced", wire::PairsField{"word", "by", replaced}});
    if (unlisted > 0) fields.push_back({"unlisted", unlisted});
}

std::size_t LookUpNotes::held_bytes() const {
    std::size_t bytes = 0;
    const auto add = [&](const std::string& word) {
        bytes += kOverheadBytes + kMaxRenderedBytes * word.size();
    };
    for (const std::string& word : skipped) add(word);
    for (const auto& [typed, taken] : replaced) {
        add(typed);
        add(taken);
    }
    return bytes;
}

void Audited::append_to(std::vector<wire::StatusField>& fields) const {
    fields.push_back({"request", request});
    fields.push_back({"lists", wire::PairsField{"list", "checksum", lists}});
}

std::size_t Audited::held_bytes() const {
    return kMaxJsonGrowth * request.capacity() + lists.size() * 2 * kOverheadBytes;
}

std::unique_ptr<const Audited> audited_request(const wire::Request& request,
                                               const Vocabulary& vocabulary) {
    const LookUpRules rules = vocabulary.rules_for(request);
    auto audited = std::make_unique<Audited>();
    audited->request = wire::request_line(request, rules.unknown, rules.word_case);
    if (audited->request.size() > wire::kMaxLineBytes) return nullptr;
    // Some code points take 48 bytes in JSON.
    std::string in_json;
    wire::append_json_string(in_json, audited->request);
    if (in_json.size() > kMaxJsonGrowth * wire::kMaxLineBytes) return nullptr;
    const auto is_named = [&](const std::string& list) {
        const auto among = [&](const std::vector<std::string>& names) {
            return std::ranges::find(names, list) != names.end();
        };
        return among(request.options.within) || among(request.options.without);
    };
    for (const ListFacts& facts : vocabulary.lists().facts()) {
        if (is_named(facts.name))
            audited->lists.emplace_back(facts.name, format::hex(facts.checksum));
    }
    return audited;
}

std::optional<kernels::Row> WordFinder::find(const std::string& word) {
    const format::Model& model = vocabulary_.model();
    if (const auto row = model.find(word)) return row;
    if (rules_.word_case == wire::WordCase::exact) return std::nullopt;
    const auto row = vocabulary_.cases().find_in_other_case(word);
    if (!row) return std::nullopt;
    const auto is_noted = [&](const auto& pair) { return pair.first == word; };
    if (std::ranges::any_of(notes().replaced, is_noted)) return row;
    if (has_room_for(word.size() + model.key(*row).size()))
        notes().replaced.emplace_back(word, model.key(*row));
    return row;
}

Error WordFinder::unknown_word(const std::string& word) const {
    std::string message = printable(word, kMaxWordInMessage) + " is not in the model";
    const std::string hint = other_form_hint(
        word, [&](const std::string& form) { return vocabulary_.model().find(form).has_value(); },
        kMaxWordInMessage);
    if (!hint.empty()) message += hint + " (case=ignore takes it)";
    return {ErrorCode::unknown_word, std::move(message), word};
}

Result<std::optional<kernels::Row>> WordFinder::find_or_skip(const std::string& word) {
    const auto row = find(word);
    if (row) return row;
    if (rules_.unknown == wire::Unknown::error) return unknown_word(word);
    if (std::ranges::find(notes().skipped, word) == notes().skipped.end() &&
        has_room_for(word.size()))
        notes().skipped.push_back(word);
    return row;
}

LookUpNotes& WordFinder::notes() {
    if (notes_ == nullptr) notes_ = std::make_unique<LookUpNotes>();
    return *notes_;
}

bool WordFinder::has_room_for(std::size_t bytes) {
    if (noted_words_ == kMaxNotedWords || noted_bytes_ + bytes > kMaxNotedBytes) {
        ++notes().unlisted;
        return false;
    }
    ++noted_words_;
    noted_bytes_ += bytes;
    return true;
}

}  // namespace gloved::daemon
