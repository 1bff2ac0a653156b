#include "tools/verify/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <variant>

#include "common/progress.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tools/convert/ordered_pipeline.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using kernels::Answer;
using kernels::Engine;
using kernels::Hit;
using kernels::Query;
using kernels::Row;

/// Engines may take another path for a query alone than for many.
constexpr std::size_t kAlone = 20;
constexpr std::size_t kInSmallBatches = 80;
constexpr std::size_t kSmallBatch = 8;
constexpr std::size_t kBatch = 100;

Error interrupted() { return {ErrorCode::interrupted, "interrupted"}; }

/// A query, and what it was made of.
struct Asked {
    Query query;
    std::vector<Weights> expressions;  ///< one a vector, in the order of the query's
    bool unit = false;
};

/// Makes random queries, the same from a seed whatever the standard library: only the generator's own numbers are used.
class Questions {
  public:
    Questions(const Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

    /// Nothing when a thousand expressions in a row had no direction: there are hardly any rows but zeros.
    std::optional<Asked> next(std::size_t index) {
        Asked asked;
        asked.unit = chance(4);
        // The two rarer kinds score every row in float64: seldom, but among the first few, which the plain search
        // answers too.
        const bool product = index == 1 || (index > 2 && chance(100));
        const bool count = index == 2 || (index > 2 && chance(100));
        if (product) {
            kernels::CosMul kind;
            for (std::size_t i = 0; i < 3; ++i) {
                auto vector = vector_of(asked, 1);
                if (!vector) return std::nullopt;
                (i < 2 ? kind.positives : kind.negatives).push_back(*std::move(vector));
            }
            asked.query.kind = std::move(kind);
        } else {
            auto vector = vector_of(asked, chance(2) ? 1 : 2 + below(3));
            if (!vector) return std::nullopt;
            if (count) {
                asked.query.kind = kernels::CountBefore{*std::move(vector), row()};
            } else {
                asked.query.kind = kernels::Cosine{*std::move(vector)};
            }
        }
        constexpr std::size_t kCounts[] = {1, 10, 100};
        asked.query.k = kCounts[below(3)];
        if (!chance(8)) exclude_inputs(asked);
        kernels::Filter& filter = asked.query.filter;
        if (chance(6)) filter.rank_below = static_cast<std::uint32_t>(1 + below(model_.rows()));
        if (chance(10)) filter.rows = model_.prefix_range(model_.key(row()).substr(0, 1));
        if (chance(10)) filter.min_score = static_cast<double>(below(9)) / 10 - 0.1;
        return asked;
    }

  private:
    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
    bool chance(std::size_t one_in) { return below(one_in) == 0; }
    Row row() { return static_cast<Row>(below(model_.rows())); }

    std::optional<kernels::QueryVector> vector_of(Asked& asked, std::size_t words) {
        for (int attempt = 0; attempt < 1000; ++attempt) {
            Weights weights;
            std::vector<kernels::WeightedRow> terms;
            for (std::size_t i = 0; i < words; ++i) {
                // 1, −1, and what is no short binary fraction.
                const double coefficient =
                    i == 0 ? 1.0 : (chance(2) ? 1.0 : static_cast<double>(1 + below(30)) / 10) * (chance(2) ? 1 : -1);
                weights.emplace_back(coefficient, row());
                terms.push_back({coefficient, weights.back().second});
            }
            auto vector = kernels::make_query_vector(model_, terms, asked.unit);
            if (!vector) continue;
            asked.expressions.push_back(std::move(weights));
            return *std::move(vector);
        }
        return std::nullopt;
    }

    static void exclude_inputs(Asked& asked) {
        for (const Weights& weights : asked.expressions) {
            for (const auto& [coefficient, row] : weights) asked.query.excluded.push_back(row);
        }
    }

    const Model& model_;
    std::mt19937_64 random_;
};

std::vector<Asked> make_questions(const Model& model, const EngineChecks& checks) {
    Questions questions(model, checks.seed);
    std::vector<Asked> asked;
    while (asked.size() < checks.queries) {
        auto next = questions.next(asked.size());
        if (!next) break;
        asked.push_back(*std::move(next));
    }
    return asked;
}

/// «query 17 ("king" − 0.5 × "man", k = 10)», so that a fault can be asked for again.
std::string query_name(const Model& model, const std::vector<Asked>& asked, std::size_t index) {
    std::string text;
    for (const Weights& weights : asked[index].expressions) {
        if (!text.empty()) text += ", ";
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const auto& [coefficient, row] = weights[i];
            if (i != 0 || coefficient != 1) text += fmt::format("{}{} × ", i == 0 ? "" : " + ", coefficient);
            text += printable(model.key(row));
        }
    }
    const Query& query = asked[index].query;
    const char* const kind = std::holds_alternative<kernels::CosMul>(query.kind)        ? "3CosMul of "
                             : std::holds_alternative<kernels::CountBefore>(query.kind) ? "rows before one to "
                                                                                        : "";
    return fmt::format("query {} ({}{}, {}, k = {})", index, kind, text, asked[index].unit ? "unit" : "raw", query.k);
}

std::string hit_name(const Model& model, const Hit& hit) {
    // Whatever a broken engine returns.
    if (hit.row >= model.rows()) return fmt::format("row {} (there are {})", hit.row, model.rows());
    return fmt::format("{} with {}", row_name(model, hit.row), hit.score);
}

/// Where two answers differ, by bits; nothing when they do not. What led to an answer may differ.
std::optional<std::string> difference(const Model& model, const Answer& got, const Answer& wanted) {
    const auto same = [](const Hit& a, const Hit& b) {
        return a.row == b.row && std::bit_cast<std::uint64_t>(a.score) == std::bit_cast<std::uint64_t>(b.score);
    };
    if (got.count != wanted.count) return fmt::format("{} rows for {}", got.count, wanted.count);
    const std::size_t common = std::min(got.hits.size(), wanted.hits.size());
    for (std::size_t i = 0; i < common; ++i) {
        if (same(got.hits[i], wanted.hits[i])) continue;
        return fmt::format("place {} is {} for {}", i + 1, hit_name(model, got.hits[i]),
                           hit_name(model, wanted.hits[i]));
    }
    if (got.hits.size() == wanted.hits.size()) return std::nullopt;
    return fmt::format("{} words for {}", got.hits.size(), wanted.hits.size());
}

Result<std::vector<Answer>> ask(Engine& engine, const Way& way, const Model& model, const std::vector<Asked>& asked,
                                const std::atomic<bool>& stop) {
    std::vector<Query> queries;
    queries.reserve(asked.size());
    for (const Asked& one : asked) queries.push_back(one.query);
    Progress progress("asking " + way.name, queries.size() * model.vectors().size_bytes());
    std::vector<Answer> answers;
    while (answers.size() < queries.size()) {
        if (stop) return interrupted();
        const std::size_t at = answers.size();
        const std::size_t batch = at < kAlone ? 1 : at < kAlone + kInSmallBatches ? kSmallBatch : kBatch;
        const auto part = std::span(queries).subspan(at, std::min(batch, queries.size() - at));
        auto got = engine.run(part);
        if (!got) return got.error();
        if (got->size() != part.size()) {
            return Error{ErrorCode::internal, fmt::format("{} answers for {} queries", got->size(), part.size())};
        }
        std::move(got->begin(), got->end(), std::back_inserter(answers));
        progress.update(answers.size() * model.vectors().size_bytes());
    }
    return answers;
}

Answer plain_answer(const Model& model, const Asked& asked) {
    std::vector<std::vector<float>> vectors;
    for (const Weights& weights : asked.expressions) vectors.push_back(oracle_query(model, weights, asked.unit));
    const Query& query = asked.query;
    const auto eligible = [&](std::uint32_t row, double score) {
        const kernels::Filter& filter = query.filter;
        constexpr auto kAnyRank = std::numeric_limits<std::uint32_t>::max();
        return (filter.rank_below == kAnyRank || model.ranks()[row] < filter.rank_below) &&
               (!filter.rows || (row >= filter.rows->first && row < filter.rows->last)) && score >= filter.min_score &&
               std::find(query.excluded.begin(), query.excluded.end(), row) == query.excluded.end();
    };
    Answer answer;
    if (std::holds_alternative<kernels::CosMul>(query.kind)) {
        const auto negatives =
            std::vector(std::make_move_iterator(vectors.end() - 1), std::make_move_iterator(vectors.end()));
        vectors.pop_back();
        answer.hits = oracle_top(oracle_cosmul(model, vectors, negatives), query.k, eligible);
        return answer;
    }
    const auto scores = oracle_scores(model, vectors[0]);
    if (const auto* const count = std::get_if<kernels::CountBefore>(&query.kind)) {
        for (std::uint32_t row = 0; row < scores.size(); ++row) {
            const bool before =
                scores[row] > scores[count->row] || (scores[row] == scores[count->row] && row < count->row);
            if (before && eligible(row, scores[row])) ++answer.count;
        }
        return answer;
    }
    answer.hits = oracle_top(scores, query.k, eligible);
    return answer;
}

/// The first of `answers` that the plain search does not give; nothing when it gives them all.
Result<std::optional<std::string>> first_unlike_plain(const Model& model, const std::vector<Asked>& asked,
                                                      std::span<const Answer> answers, std::size_t threads,
                                                      const std::atomic<bool>& stop) {
    struct Item {
        std::size_t index = 0;
        std::optional<std::string> difference;
    };
    Progress progress("searching plainly", answers.size() * model.vectors().size_bytes());
    std::optional<std::string> first;
    std::size_t next = 0;
    const auto produce = [&](Item& item) -> Result<bool> {
        if (stop) return interrupted();
        item.index = next;
        return next++ < answers.size();
    };
    const auto search = [&](Item& item) {
        item.difference = difference(model, answers[item.index], plain_answer(model, asked[item.index]));
    };
    const auto note = [&](Item& item) -> Status {
        if (item.difference && !first) {
            first = fmt::format("{}: {}", query_name(model, asked, item.index), *item.difference);
        }
        progress.update((item.index + 1) * model.vectors().size_bytes());
        return {};
    };
    if (Status searched = convert::run_ordered<Item>(threads, produce, search, note); !searched) {
        return searched.error();
    }
    return first;
}

/// The first answer that differs from that of `reference`.
std::optional<std::string> first_unlike(const Model& model, const std::vector<Asked>& asked,
                                        const std::vector<Answer>& answers, const std::vector<Answer>& reference) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
        if (const auto found = difference(model, answers[i], reference[i])) {
            return fmt::format("{}: {}", query_name(model, asked, i), *found);
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<Way> all_ways(const Model& model, std::size_t threads) {
    kernels::EngineOptions options;
    options.threads = static_cast<unsigned>(threads);
    options.all_devices = true;
    std::vector<Way> ways;
    for (const std::string& simd : kernels::simd_names()) {
        options.simd = simd;
        ways.push_back({"cpu " + simd, [&model, options] { return kernels::make_engine("cpu", model, options); }});
    }
    options.simd.clear();
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.name == "cpu") continue;
        ways.push_back({entry.name, [&model, options, entry] {
                            auto engine = kernels::make_engine(entry.name, model, options);
                            if (engine || engine.error().code != ErrorCode::unavailable) return engine;
                            const std::string& reason = entry.unavailable;
                            return decltype(engine)(
                                Error{ErrorCode::unavailable, reason.empty() ? engine.error().message : reason});
                        }});
    }
    return ways;
}

Status check_engines(const Model& model, const std::vector<Way>& ways, const EngineChecks& checks,
                     const std::atomic<bool>& stop, const Reporter& report) {
    const auto asked = make_questions(model, checks);
    if (asked.empty()) {
        report({"engines", true, "no query can be made: the rows have no direction"});
        return {};
    }
    std::optional<std::pair<std::string, std::vector<Answer>>> reference;
    for (const Way& way : ways) {
        if (stop) return interrupted();
        const auto outcome = [&](bool ok, const std::string& detail) { report({"engine " + way.name, ok, detail}); };
        auto engine = way.make();
        if (!engine) {
            const bool absent = engine.error().code == ErrorCode::unavailable;
            outcome(absent, (absent ? "not available: " : "") + engine.error().message);
            continue;
        }
        const auto begun = std::chrono::steady_clock::now();
        auto answers = ask(**engine, way, model, asked, stop);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        engine->reset();  // its memory is needed again
        if (!answers) {
            if (answers.error().code == ErrorCode::interrupted) return answers.error();
            outcome(false, answers.error().message);
            continue;
        }
        if (reference) {
            const auto unlike = first_unlike(model, asked, *answers, reference->second);
            outcome(!unlike, unlike ? fmt::format("differs from {}: {}", reference->first, *unlike)
                                    : fmt::format("{} answers in {:.1f} s, the bits of {}", asked.size(), seconds,
                                                  reference->first));
            continue;
        }
        const std::size_t plain = std::min(checks.reference, asked.size());
        const auto unlike = first_unlike_plain(model, asked, std::span(*answers).first(plain), checks.threads, stop);
        if (!unlike) return unlike.error();
        outcome(!*unlike, *unlike ? fmt::format("differs from a plain float64 search: {}", **unlike)
                                  : fmt::format("{} answers in {:.1f} s, of {} the bits of a plain float64 search",
                                                asked.size(), seconds, plain));
        reference.emplace(way.name, *std::move(answers));
    }
    return {};
}

}  // namespace gloved::verify
