// Asks the questions of an evaluation and counts how well the model answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/eval/asker.hpp"
#include "client/eval/letter_case.hpp"
#include "client/eval/questions.hpp"
#include "common/result.hpp"

namespace gloved::client {

struct EvaluationSettings {
    std::uint32_t top = 300'000;  ///< use only this many words, the most frequent
    std::string method = "add";   ///< of ANALOGY
    LetterCase letter_case = LetterCase::ignore;
};

/// Called with the number of finished questions and of all; first with 0.
using OnProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct AnalogyCount {
    std::uint64_t correct = 0;
    std::uint64_t asked = 0;    ///< correct or not
    std::uint64_t skipped = 0;  ///< because a word is not among the model's `top`

    /// Percentage of correct answers; NaN if none was asked.
    double percent() const;
    AnalogyCount& operator+=(const AnalogyCount& other);
};

struct AnalogyScore {
    struct Section {
        std::string name;
        bool syntactic = false;
        AnalogyCount count;
    };
    std::vector<Section> sections;
    AnalogyCount semantic;
    AnalogyCount syntactic;
    AnalogyCount total;
};

/// Whether `hits`, best first, answer the question: the first of them that is not a given word is
/// the expected word.
bool is_answered(const AnalogyQuestion& question, const std::vector<std::string>& hits,
                 LetterCase letter_case);

/// Asks every question with all four words among the model's `top`, as gensim's
/// evaluate_word_analogies does: ANALOGY among these words. A zero query vector counts as a wrong
/// answer. Errors: those of Asker::ask; a refusal; bad_request if no question could be asked.
Result<AnalogyScore> evaluate_analogies(Asker& asker, const std::vector<AnalogySection>& sections,
                                        const EvaluationSettings& settings,
                                        const OnProgress& on_progress);

struct PairScore {
    std::uint64_t pairs = 0;    ///< compared
    std::uint64_t skipped = 0;  ///< because a word is not among the model's `top`
    double pearson = 0;         ///< NaN if one side is constant
    double spearman = 0;

    /// Percentage of skipped pairs.
    double skipped_percent() const;
};

/// Compares SIM with people's scores for every pair with both words among the model's `top`, as
/// gensim's evaluate_word_pairs does. The similarity of a zero vector is 0. Errors: those of
/// Asker::ask; a refusal; bad_request if fewer than two pairs are left.
Result<PairScore> evaluate_pairs(Asker& asker, const std::vector<RatedPair>& pairs,
                                 const EvaluationSettings& settings, const OnProgress& on_progress);

}  // namespace gloved::client
