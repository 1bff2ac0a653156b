// How well a model answers questions whose answers are known.
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
    std::uint32_t top = 300'000;  ///< only this many words, the most frequent ones, count
    std::string method = "add";   ///< of ANALOGY
    LetterCase letter_case = LetterCase::ignore;
};

/// Is told how many questions are done, of how many; once before the first.
using OnProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct AnalogyCount {
    std::uint64_t correct = 0;
    std::uint64_t asked = 0;    ///< correct or not
    std::uint64_t skipped = 0;  ///< for a word that the model has not among its `top`

    /// Correct of asked, in per cent; NaN if none was asked.
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

/// Whether `hits`, best first, answer the question: the first of them that is none of the given
/// words is the expected one.
bool is_answered(const AnalogyQuestion& question, const std::vector<std::string>& hits,
                 LetterCase letter_case);

/// Asks every question of which the model has all four words among its `top`, as gensim's
/// evaluate_word_analogies does: ANALOGY among these words. A zero query vector counts as a wrong
/// answer. Errors: those of Asker::ask, a refusal, and bad_request when no question could be asked.
Result<AnalogyScore> evaluate_analogies(Asker& asker, const std::vector<AnalogySection>& sections,
                                        const EvaluationSettings& settings,
                                        const OnProgress& on_progress);

struct PairScore {
    std::uint64_t pairs = 0;    ///< compared
    std::uint64_t skipped = 0;  ///< for a word that the model has not among its `top`
    double pearson = 0;         ///< NaN where one side is constant
    double spearman = 0;

    /// Skipped of all, in per cent.
    double skipped_percent() const;
};

/// Compares SIM with the scores that people gave, for every pair of which the model has both words
/// among its `top`, as gensim's evaluate_word_pairs does. A zero vector is similar to nothing: 0.
/// Errors: those of Asker::ask, a refusal, and bad_request when fewer than two pairs are left.
Result<PairScore> evaluate_pairs(Asker& asker, const std::vector<RatedPair>& pairs,
                                 const EvaluationSettings& settings, const OnProgress& on_progress);

}  // namespace gloved::client
