// Vocabulary: how the words and the lists that requests name are found in a model.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/format/case_index.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "daemon/settings.hpp"
#include "daemon/word_lists.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// The lists of a model, its words by case folding, and the rules for requests that choose none.
/// Immutable: any threads may use it.
class Vocabulary {
  public:
    /// `cases` is the index of `model`.
    Vocabulary(std::shared_ptr<const format::Model> model, WordLists lists,
               std::shared_ptr<const format::CaseIndex> cases, LookUpRules rules)
        : model_(std::move(model)),
          lists_(std::move(lists)),
          cases_(std::move(cases)),
          rules_(rules) {}

    const format::Model& model() const { return *model_; }
    const WordLists& lists() const { return lists_; }
    const format::CaseIndex& cases() const { return *cases_; }
    /// The index, for another Vocabulary of the model.
    const std::shared_ptr<const format::CaseIndex>& shared_cases() const { return cases_; }
    /// The rules for a request.
    LookUpRules rules_for(const wire::Request& request) const;

  private:
    const std::shared_ptr<const format::Model> model_;
    const WordLists lists_;
    const std::shared_ptr<const format::CaseIndex> cases_;
    const LookUpRules rules_;
};

/// What became of those words of a request that the model does not have as they were typed.
struct LookUpNotes {
    std::vector<std::string> skipped;                           ///< left out
    std::vector<std::pair<std::string, std::string>> replaced;  ///< by a word of the model
    /// How many more were skipped or replaced. A request may have 32,768 words, and its reply
    /// should not be longer for each.
    std::size_t unlisted = 0;

    /// Appends what there is to the fields of a status line.
    void append_to(std::vector<wire::StatusField>& fields) const;
    /// Bytes of memory that they take, also as a part of a reply, at most.
    std::size_t held_bytes() const;
};

/// What certify=1 tells in JSON of a request, so that others can check the answer.
struct Audited {
    std::string request;  ///< wire::request_line
    /// Names and checksums (ListFacts) of the lists that it names, each once.
    std::vector<std::pair<std::string, std::string>> lists;

    /// Appends both to the fields of a reply in JSON.
    void append_to(std::vector<wire::StatusField>& fields) const;
    /// Bytes of memory that it takes, also as a part of a reply, at most.
    std::size_t held_bytes() const;
};

/// nullptr if the request with all its options is longer than a line may be, because nobody can
/// send it then, or twice as long in JSON. The lists that it names must exist.
std::unique_ptr<const Audited> audited_request(const wire::Request& request,
                                               const Vocabulary& vocabulary);

/// Most bytes of LookUpNotes::held_bytes.
inline constexpr std::size_t kMaxNotesBytes = std::size_t{20} * 1024;

/// Longer words are cut off in messages.
inline constexpr std::size_t kMaxWordInMessage = 200;

/// Looks up the words of one request, and notes what became of them.
class WordFinder {
  public:
    /// `vocabulary` must outlive the finder.
    WordFinder(const Vocabulary& vocabulary, const wire::Request& request)
        : vocabulary_(vocabulary), rules_(vocabulary.rules_for(request)) {}

    /// The row of `word`. If case is ignored and the model does not have the word as it stands,
    /// that of CaseIndex::find_in_other_case.
    std::optional<kernels::Row> find(const std::string& word);
    /// As `find`; nothing if the model does not have the word and unknown words are skipped. Error:
    /// unknown_word, with the word in Error::subject.
    Result<std::optional<kernels::Row>> find_or_skip(const std::string& word);

    /// The error for a word that the model does not have. Tells if it has the same letters with
    /// composed accents, or with decomposed ones.
    Error unknown_word(const std::string& word) const;

    /// What there is to tell; nullptr if nothing.
    std::unique_ptr<const LookUpNotes> take_notes() { return std::move(notes_); }

  private:
    LookUpNotes& notes();
    /// Whether there is room for another word in the lists.
    bool has_room_for(std::size_t bytes);

    const Vocabulary& vocabulary_;
    const LookUpRules rules_;
    std::unique_ptr<LookUpNotes> notes_;
    std::size_t noted_words_ = 0;
    std::size_t noted_bytes_ = 0;
};

}  // namespace gloved::daemon
