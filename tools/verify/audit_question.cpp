#include "tools/verify/audit_question.hpp"

#include <algorithm>
#include <cstddef>

#include "common/case_fold.hpp"
#include "common/quoting.hpp"
#include "common/unicode_form.hpp"
#include "common/wire/request_line.hpp"

namespace gloved::verify {

using format::Model;
using format::Row;
using wire::Verb;

std::optional<Row> AuditWords::find(std::string_view word, bool ignores_case) {
    if (const auto row = model_.find(word)) return row;
    return ignores_case ? find_in_other_case(word) : std::nullopt;
}

std::optional<Row> AuditWords::find_in_other_case(std::string_view word) {
    for (const std::string& form : {lower_case(word), capitalized(word), upper_case(word)}) {
        if (const auto row = model_.find(form)) return row;
    }
    if (const auto row = find_folded(word)) return row;
    for (const auto& form : {composed(word), decomposed(word)}) {
        if (!form) continue;
        if (const auto row = model_.find(*form)) return row;
        if (const auto row = find_folded(*form)) return row;
    }
    return std::nullopt;
}

std::optional<Row> AuditWords::find_folded(std::string_view word) {
    std::call_once(folded_, [&] { fold_all(); });
    const auto found = by_folding_.find(fold_case(word));
    return found == by_folding_.end() ? std::nullopt : std::optional(found->second);
}

void AuditWords::fold_all() {
    const auto ranks = model_.ranks();
    for (std::size_t i = 0; i < model_.rows(); ++i) {
        const auto row = static_cast<Row>(i);
        const auto [at, is_new] = by_folding_.emplace(fold_case(model_.key(row)), row);
        if (!is_new && ranks[row] < ranks[at->second]) at->second = row;
    }
}

namespace {

/// Looks up the words of a request. Error: that of read_audit_question.
class QuestionReader {
  public:
    QuestionReader(const Model& model, AuditWords& words, const std::string& line)
        : model_(model), words_(words), line_(line) {}

    Result<AuditQuestion> read() {
        if (line_.size() > wire::kMaxLineBytes) return wrong("the request is too long");
        auto request = wire::parse_request(line_);
        if (!request) return wrong("the request is refused: " + request.error().message);
        question_.request = *std::move(request);
        const wire::Options& options = question_.request.options;
        const Verb verb = question_.request.verb;
        if (verb != Verb::near && verb != Verb::nearvec && verb != Verb::analogy)
            return wrong("the request is of another verb");
        if (!options.certify || line_ != wire::request_line(question_.request, wire::Unknown::error,
                                                            wire::WordCase::exact))
            return wrong("the request is not as a daemon writes it, with all options");
        ignores_case_ = options.word_case == wire::WordCase::ignore;
        skips_ = options.unknown == wire::Unknown::skip;
        for (const std::string& word : question_.request.chosen) {
            const auto row = find(word);
            if (!row) return row.error();
            if (*row) question_.chosen.push_back(**row);
        }
        if (question_.chosen.empty() && options.only > 0)
            return wrong("no word of only= is in the model");
        std::ranges::sort(question_.chosen);
        for (const expr::Term& term : question_.request.terms) {
            if (Status taken = take(term.word, term.coefficient); !taken) return taken.error();
        }
        for (const std::string& word : question_.request.words) {
            if (Status taken = take(word, 1); !taken) return taken.error();
        }
        if (question_.rows.empty() && question_.request.verb != Verb::nearvec)
            return wrong("no word of the request is in the model");
        return std::move(question_);
    }

  private:
    Status take(const std::string& word, double coefficient) {
        const auto row = find(word);
        if (!row) return row.error();
        if (!*row) return {};
        question_.rows.push_back(**row);
        question_.weights.emplace_back(coefficient, **row);
        return {};
    }

    /// The row of a word; nothing if it is left out.
    Result<std::optional<Row>> find(const std::string& word) {
        const auto row = words_.find(word, ignores_case_);
        if (!row) {
            if (!skips_) return wrong(printable(word) + " is not in the model");
            if (std::ranges::find(question_.skipped, word) == question_.skipped.end() &&
                has_room_for(word.size()))
                question_.skipped.push_back(word);
            return row;
        }
        const std::string_view key = model_.key(*row);
        const auto is_noted = [&](const auto& pair) { return pair.first == word; };
        if (key != word && std::ranges::none_of(question_.replaced, is_noted) &&
            has_room_for(word.size() + key.size()))
            question_.replaced.emplace_back(word, key);
        return row;
    }

    /// Whether another word is named in the reply: 64 of 1,024 bytes in all.
    bool has_room_for(std::size_t bytes) {
        const std::size_t named = question_.skipped.size() + question_.replaced.size();
        if (named == 64 || named_bytes_ + bytes > 1024) {
            ++question_.unlisted;
            return false;
        }
        named_bytes_ += bytes;
        return true;
    }

    const Model& model_;
    AuditWords& words_;
    const std::string& line_;
    AuditQuestion question_;
    std::size_t named_bytes_ = 0;
    bool ignores_case_ = false;
    bool skips_ = false;
};

}  // namespace

Result<AuditQuestion> read_audit_question(const Model& model, AuditWords& words,
                                          const std::string& line) {
    return QuestionReader(model, words, line).read();
}

}  // namespace gloved::verify
