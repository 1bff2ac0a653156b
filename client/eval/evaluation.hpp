// The evaluations of gloved-eval: asks the daemon analogy questions or word pairs, and computes the
// model's accuracy or its correlation with people's ratings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/eval/asker.hpp"
#include "client/eval/letter_case.hpp"
#include "client/eval/questions.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// How to evaluate.
struct EvaluationSettings {
    std::uint32_t top = 300'000;  ///< use only this many of the model's words, the most frequent
    std::string method = "add";   ///< option of ANALOGY: add or mul
    LetterCase letter_case = LetterCase::ignore;
};

/// Called with the numbers of finished questions and of all questions; first with `done` = 0.
using OnProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// How many questions were answered correctly.
struct AnalogyCount {
    std::uint64_t correct = 0;
    std::uint64_t asked = 0;    ///< questions with an answer, correct or wrong
    std::uint64_t skipped = 0;  ///< because a word is not among the model's `top`

    /// Percentage of correct answers; NaN if none was asked.
    double percent() const;
    AnalogyCount& operator+=(const AnalogyCount& other);
};

/// Counts by section, by kind of section, and of all questions.
struct AnalogyScore {
    /// The count of an AnalogySection.
    struct Section {
        std::string name;
        bool syntactic = false;  ///< see AnalogySection
        AnalogyCount count;
    };
    std::vector<Section> sections;
    AnalogyCount semantic;
    AnalogyCount syntactic;
    AnalogyCount total;
    std::optional<std::string> hint;  ///< Vocabulary::hint
};

/// Whether `hits`, the words of an answer, best first, answer the question: the first hit that is
/// not one of the three given words is the expected word.
bool is_answered(const AnalogyQuestion& question, const std::vector<std::string>& hits,
                 LetterCase letter_case);

/// Asks every question whose four words are all among the model's `top`, with ANALOGY restricted to
/// these words, as gensim's evaluate_word_analogies does. A question with a zero query vector
/// counts as answered wrongly. Errors: those of Asker::ask; an ERR of the daemon; bad_request if no
/// question could be asked.
Result<AnalogyScore> evaluate_analogies(Asker& asker, const std::vector<AnalogySection>& sections,
                                        const EvaluationSettings& settings,
                                        const OnProgress& on_progress);

/// How well similarities agree with people's ratings.
struct PairScore {
    std::uint64_t pairs = 0;    ///< compared
    std::uint64_t skipped = 0;  ///< because a word is not among the model's `top`
    double pearson = 0;         ///< NaN if one side is constant
    double spearman = 0;
    std::optional<std::string> hint;  ///< Vocabulary::hint

    /// Percentage of skipped pairs.
    double skipped_percent() const;
};

/// Correlates SIM's scores with people's ratings over all pairs whose two words are both among the
/// model's `top`, as gensim's evaluate_word_pairs does. The similarity of a zero vector is 0.
/// Errors: those of Asker::ask; an ERR of the daemon; bad_request if fewer than two pairs are left.
Result<PairScore> evaluate_pairs(Asker& asker, const std::vector<RatedPair>& pairs,
                                 const EvaluationSettings& settings, const OnProgress& on_progress);

}  // namespace gloved::client
