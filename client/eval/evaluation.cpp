#include "client/eval/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "client/eval/correlation.hpp"
#include "client/eval/vocabulary.hpp"
#include "client/pipeline.hpp"
#include "common/error_with.hpp"
#include "common/wire/json_string.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {
namespace {

/// A daemon reads at most this many unanswered requests of a connection.
constexpr std::size_t kMaxWindow = 256;
/// Requests that scan the model wait for one another. This limit on the wait is far below the
/// daemon's limit of 10 s, so that it holds even if other clients ask.
constexpr double kWindowUs = 3e6;

/// ANALOGY leaves out the given words, but not their other spellings; five hits, as in gensim,
/// reach past these.
constexpr std::size_t kHitsIgnoringCase = 5;

Error no_known_words(std::uint64_t skipped, const char* what, std::uint32_t top,
                     const std::optional<std::string>& hint) {
    return error_with(
        ErrorCode::bad_request,
        "nothing to ask: each of {} {} has a word that is not among the model's {} most frequent{}",
        skipped, what, top, hint ? "; " + *hint : "");
}

std::string request(std::string_view verb, const std::string& options,
                    std::initializer_list<std::string_view> words) {
    std::string line(verb);
    if (!options.empty()) line += ' ' + options;
    for (const std::string_view word : words) line += ' ' + wire::quote_word(word);
    return line;
}

/// How many scanning requests to send at once: as many as the daemon answers in kWindowUs one by
/// one, or the pipeline's default if it has no figure yet.
Result<std::size_t> scan_window(Asker& asker) {
    std::size_t window = PipelineLimits{}.requests;
    Status asked = asker.ask(
        1, 1, [&](std::size_t) { return request("STATS", asker.model_option(), {}); },
        [&](std::size_t, const nlohmann::json& answer) -> Status {
            if (!answer.at("ok").get<bool>()) return Asker::refusal(answer);
            // 0 before the first query.
            const double us = answer.at("results").at(0).value("single_query_us", 0.0);
            if (us > 0) {
                window = static_cast<std::size_t>(
                    std::clamp(kWindowUs / us, 4.0, static_cast<double>(kMaxWindow)));
            }
            return {};
        });
    if (!asked) return asked.error();
    return window;
}

/// Asks which spellings the model has.
Status look_up(Asker& asker, Vocabulary& vocabulary) {
    const std::string& model = asker.model_option();
    const auto requests =
        has_requests(vocabulary.spellings(), "fields=rank" + (model.empty() ? "" : " " + model));
    return asker.ask(
        requests.size(), PipelineLimits{}.requests, [&](std::size_t i) { return requests[i].line; },
        [&](std::size_t i, const nlohmann::json& answer) -> Status {
            if (!answer.at("ok").get<bool>()) return Asker::refusal(answer);
            const nlohmann::json& results = answer.at("results");
            for (std::size_t j = 0; j < requests[i].count; ++j) {
                const nlohmann::json& word = results.at(j);
                if (!word.at("known").get<bool>()) continue;
                vocabulary.set_rank(vocabulary.spellings().at(requests[i].first + j),
                                    word.at("rank").get<std::uint64_t>());
            }
            return {};
        });
}

std::vector<std::string> words_of(const nlohmann::json& answer) {
    std::vector<std::string> words;
    for (const nlohmann::json& hit : answer.at("results"))
        words.push_back(wire::bytes_of_json_string(hit.at("word").get_ref<const std::string&>()));
    return words;
}

/// Whether the refusal is zero_vector; any other refusal ends the evaluation.
bool is_zero_vector(const nlohmann::json& answer) {
    return answer.at("code").get_ref<const std::string&>() ==
           wire::code_name(ErrorCode::zero_vector);
}

double percent_of(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// A question with known words, and the index of its section.
struct Askable {
    const AnalogyQuestion* question;
    std::size_t section;
};

/// Returns the questions with known words and counts the others as skipped.
std::vector<Askable> askable(const std::vector<AnalogySection>& sections,
                             const Vocabulary& vocabulary, AnalogyScore& score) {
    std::vector<Askable> questions;
    for (const AnalogySection& section : sections) {
        score.sections.push_back({section.name, section.syntactic(), {}});
        for (const AnalogyQuestion& question : section.questions) {
            const bool known = vocabulary.find(question.expected) != nullptr &&
                               std::ranges::all_of(question.given, [&](const std::string& word) {
                                   return vocabulary.find(word) != nullptr;
                               });
            if (known) {
                questions.push_back({&question, score.sections.size() - 1});
            } else {
                ++score.sections.back().count.skipped;
            }
        }
    }
    return questions;
}

void sum_sections(AnalogyScore& score) {
    for (const AnalogyScore::Section& section : score.sections) {
        (section.syntactic ? score.syntactic : score.semantic) += section.count;
        score.total += section.count;
    }
}

}  // namespace

double AnalogyCount::percent() const { return percent_of(correct, asked); }

AnalogyCount& AnalogyCount::operator+=(const AnalogyCount& other) {
    correct += other.correct;
    asked += other.asked;
    skipped += other.skipped;
    return *this;
}

double PairScore::skipped_percent() const { return percent_of(skipped, pairs + skipped); }

bool is_answered(const AnalogyQuestion& question, const std::vector<std::string>& hits,
                 LetterCase letter_case) {
    const auto key = [&](const std::string& word) { return word_key(word, letter_case); };
    for (const std::string& hit : hits) {
        const bool given = std::ranges::any_of(
            question.given, [&](const std::string& word) { return key(word) == key(hit); });
        if (!given) return key(hit) == key(question.expected);
    }
    return false;
}

Result<AnalogyScore> evaluate_analogies(Asker& asker, const std::vector<AnalogySection>& sections,
                                        const EvaluationSettings& settings,
                                        const OnProgress& on_progress) {
    Vocabulary vocabulary(settings.letter_case, settings.top);
    for (const AnalogySection& section : sections) {
        for (const AnalogyQuestion& question : section.questions) {
            for (const std::string& word : question.given) vocabulary.add(word);
            vocabulary.add(question.expected);
        }
    }
    const auto window = scan_window(asker);
    if (!window) return window.error();
    if (Status known = look_up(asker, vocabulary); !known) return known.error();

    AnalogyScore score;
    score.hint = vocabulary.hint();
    const std::vector<Askable> questions = askable(sections, vocabulary, score);
    std::string options =
        fmt::format("case=exact k={} top={} method={}",
                    settings.letter_case == LetterCase::ignore ? kHitsIgnoringCase : 1,
                    settings.top, settings.method);
    if (!asker.model_option().empty()) options += " " + asker.model_option();
    on_progress(0, questions.size());
    const Status asked = asker.ask(
        questions.size(), *window,
        [&](std::size_t i) {
            const auto& [a, b, c] = questions[i].question->given;
            return request("ANALOGY", options,
                           {*vocabulary.find(a), *vocabulary.find(b), *vocabulary.find(c)});
        },
        [&](std::size_t i, const nlohmann::json& answer) -> Status {
            const bool ok = answer.at("ok").get<bool>();
            if (!ok && !is_zero_vector(answer)) return Asker::refusal(answer);
            AnalogyCount& count = score.sections[questions[i].section].count;
            ++count.asked;
            if (ok && is_answered(*questions[i].question, words_of(answer), settings.letter_case))
                ++count.correct;
            on_progress(i + 1, questions.size());
            return {};
        });
    if (!asked) return asked.error();
    sum_sections(score);
    if (score.total.asked == 0)
        return no_known_words(score.total.skipped, "questions", settings.top, score.hint);
    return score;
}

Result<PairScore> evaluate_pairs(Asker& asker, const std::vector<RatedPair>& pairs,
                                 const EvaluationSettings& settings,
                                 const OnProgress& on_progress) {
    Vocabulary vocabulary(settings.letter_case, settings.top);
    for (const RatedPair& pair : pairs) {
        for (const std::string& word : pair.words) vocabulary.add(word);
    }
    if (Status known = look_up(asker, vocabulary); !known) return known.error();

    PairScore score;
    score.hint = vocabulary.hint();
    std::vector<const RatedPair*> rated;
    for (const RatedPair& pair : pairs) {
        if (vocabulary.find(pair.words[0]) != nullptr && vocabulary.find(pair.words[1]) != nullptr)
            rated.push_back(&pair);
    }
    score.pairs = rated.size();
    score.skipped = pairs.size() - rated.size();
    if (rated.empty()) return no_known_words(score.skipped, "pairs", settings.top, score.hint);
    if (rated.size() == 1) {
        return error_with(ErrorCode::bad_request,
                          "one pair is left, {} have unknown words; a correlation needs two",
                          score.skipped);
    }

    on_progress(0, rated.size());
    std::vector<double> people;
    std::vector<double> model;
    std::string sim_options = "unknown=error case=exact";
    if (!asker.model_option().empty()) sim_options += " " + asker.model_option();
    const Status asked = asker.ask(
        rated.size(), PipelineLimits{}.requests,
        [&](std::size_t i) {
            const auto& [a, b] = rated[i]->words;
            return request("SIM", sim_options, {*vocabulary.find(a), *vocabulary.find(b)});
        },
        [&](std::size_t i, const nlohmann::json& answer) -> Status {
            const bool ok = answer.at("ok").get<bool>();
            if (!ok && !is_zero_vector(answer)) return Asker::refusal(answer);
            people.push_back(rated[i]->score);
            model.push_back(ok ? answer.at("results").at(0).at("score").get<double>() : 0.0);
            on_progress(i + 1, rated.size());
            return {};
        });
    if (!asked) return asked.error();
    score.pearson = pearson(people, model);
    score.spearman = spearman(people, model);
    return score;
}

}  // namespace gloved::client
