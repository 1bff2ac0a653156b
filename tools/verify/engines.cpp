#include "tools/verify/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/progress.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/registry.hpp"
#include "tools/source/ordered_pipeline.hpp"
#include "tools/verify/oracle.hpp"
#include "tools/verify/questions.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using kernels::Answer;
using kernels::Engine;
using kernels::Hit;
using kernels::Query;
using kernels::Row;

/// Threads that draw questions while an engine answers others.
constexpr std::size_t kMaxDrawingThreads = 4;
/// Differing answers that are listed; all are counted.
constexpr std::size_t kMaxListedFaults = 3;
/// The first questions are one of each kind; the oracle always answers them.
constexpr std::size_t kKindsOfQuestions = 3;

/// What every way is asked.
struct Round {
    const Model& model;
    const Lists& lists;
    Questions questions;
    std::vector<std::size_t> batches;
    std::size_t answers = 0;
    std::size_t threads = 1;
    std::uint64_t seed = 0;
};

/// The parts of an answer that are compared.
struct AnswerView {
    std::span<const Hit> hits;
    std::uint64_t count = 0;
};

/// All answers of a way, in three arrays.
class Answers {
  public:
    void add(const Answer& answer) {
        hits_.insert(hits_.end(), answer.hits.begin(), answer.hits.end());
        ends_.push_back(hits_.size());
        counts_.push_back(answer.count);
    }
    AnswerView at(std::size_t number) const {
        const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
        return {std::span(hits_).subspan(begin, ends_[number] - begin), counts_[number]};
    }

  private:
    std::vector<Hit> hits_;
    std::vector<std::size_t> ends_;
    std::vector<std::uint64_t> counts_;
};

/// The result of asking a way.
struct Tally {
    std::size_t answers = 0;
    double seconds = 0;
    std::map<kernels::Pass, std::size_t> passes;  ///< answers by pass
    std::size_t differing = 0;
    std::vector<std::string> first;  ///< descriptions of the first that differ
};

std::string hit_name(const Model& model, const Hit& hit) {
    // A broken engine may return any row.
    if (hit.row >= model.rows()) return fmt::format("row {} (there are {})", hit.row, model.rows());
    return fmt::format("{} with {}", row_name(model, hit.row), hit.score);
}

/// Describes where two answers differ by bits; nullopt if they do not. Their passes may differ.
std::optional<std::string> difference(const Model& model, const AnswerView& got,
                                      const AnswerView& wanted) {
    const auto same = [](const Hit& a, const Hit& b) {
        return a.row == b.row &&
               std::bit_cast<std::uint64_t>(a.score) == std::bit_cast<std::uint64_t>(b.score);
    };
    if (got.count != wanted.count) return fmt::format("{} rows for {}", got.count, wanted.count);
    const auto [mine, other] = std::ranges::mismatch(got.hits, wanted.hits, same);
    if (mine != got.hits.end() && other != wanted.hits.end()) {
        return fmt::format("place {} is {} for {}", mine - got.hits.begin() + 1,
                           hit_name(model, *mine), hit_name(model, *other));
    }
    if (got.hits.size() == wanted.hits.size()) return std::nullopt;
    return fmt::format("{} words for {}", got.hits.size(), wanted.hits.size());
}

/// «query 17 of seed 1 (king, raw, k = 10): place 3 is …», so that the fault can be reproduced.
std::string fault_name(const Round& round, std::size_t number, std::string_view how,
                       const std::string& fault) {
    return fmt::format("query {} of seed {}{} ({}): {}", number, round.seed, how,
                       describe(round.model, round.questions.at(number)), fault);
}

/// Asks all questions. Compares the answers with `wanted`, or stores them in `kept` if that is
/// null.
Result<Tally> ask(Engine& engine, const std::string& name, const Round& round,
                  const Answers* wanted, Answers* kept, const std::atomic<bool>& stop) {
    struct Batch {
        std::size_t first = 0;
        std::vector<Query> queries;
    };
    Tally tally;
    Progress progress("asking " + name, round.answers, {"answers", 1});
    std::size_t next = 0;
    std::size_t first = 0;
    const auto produce = [&](Batch& batch) -> Result<bool> {
        if (stop) return source::interrupted();
        if (next == round.batches.size()) return false;
        batch.first = first;
        batch.queries.resize(round.batches[next]);
        first += round.batches[next++];
        return true;
    };
    const auto draw_batch = [&](Batch& batch) {
        for (std::size_t i = 0; i < batch.queries.size(); ++i)
            batch.queries[i] = round.questions.at(batch.first + i).query;
    };
    const auto take = [&](Batch& batch) -> Status {
        const auto begun = std::chrono::steady_clock::now();
        const auto got = engine.run(batch.queries);
        tally.seconds += seconds_since(begun);
        if (!got) return got.error();
        if (got->size() != batch.queries.size()) {
            return error_with(ErrorCode::internal, "{} answers for {} queries", got->size(),
                              batch.queries.size());
        }
        for (std::size_t i = 0; i < got->size(); ++i) {
            const Answer& answer = (*got)[i];
            ++tally.passes[answer.certificate.pass];
            if (wanted == nullptr) {
                kept->add(answer);
                continue;
            }
            const std::size_t number = batch.first + i;
            const auto found =
                difference(round.model, {answer.hits, answer.count}, wanted->at(number));
            if (!found || tally.differing++ >= kMaxListedFaults) continue;
            tally.first.push_back(fault_name(round, number,
                                             fmt::format(", one of {} together, by {}", got->size(),
                                                         to_string(answer.certificate.pass)),
                                             *found));
        }
        tally.answers += got->size();
        progress.update(tally.answers);
        return {};
    };
    const std::size_t threads = std::min(round.threads, kMaxDrawingThreads);
    if (Status asked = source::run_ordered<Batch>(threads, produce, draw_batch, take); !asked)
        return asked.error();
    return tally;
}

Answer oracle_answer(const Model& model, std::span<const double> norms, const Lists& lists,
                     const Question& question) {
    const Query& query = question.query;
    std::vector<const kernels::QueryVector*> asked;
    if (const auto* const product = std::get_if<kernels::CosMul>(&query.kind)) {
        for (const auto& vector : product->positives) asked.push_back(&vector);
        for (const auto& vector : product->negatives) asked.push_back(&vector);
    } else if (const auto* const count = std::get_if<kernels::CountBefore>(&query.kind)) {
        asked.push_back(&count->vector);
    } else {
        asked.push_back(&std::get<kernels::Cosine>(query.kind).vector);
    }
    std::vector<std::vector<float>> vectors;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const Weights& weights = question.sources[i].weights;
        vectors.push_back(weights.empty() ? asked[i]->values
                                          : oracle_query(model, weights, question.unit));
    }
    std::vector<Row> excluded = query.excluded;
    std::ranges::sort(excluded);
    const auto eligible = [&](std::uint32_t row, double score) {
        const kernels::Filter& filter = query.filter;
        constexpr auto kAnyRank = std::numeric_limits<std::uint32_t>::max();
        return (filter.rank_below == kAnyRank || model.ranks()[row] < filter.rank_below) &&
               (!filter.rows || (row >= filter.rows->first && row < filter.rows->last)) &&
               oracle_takes_lists(filter, lists, row) && score >= filter.min_score &&
               !std::ranges::binary_search(excluded, row);
    };
    Answer answer;
    if (std::holds_alternative<kernels::CosMul>(query.kind)) {
        const auto negatives = std::vector(std::make_move_iterator(vectors.end() - 1),
                                           std::make_move_iterator(vectors.end()));
        vectors.pop_back();
        answer.hits =
            oracle_top(oracle_cosmul(model, norms, vectors, negatives), query.k, eligible);
        return answer;
    }
    const auto scores = oracle_scores(model, norms, vectors[0]);
    if (const auto* const count = std::get_if<kernels::CountBefore>(&query.kind)) {
        for (std::uint32_t row = 0; row < scores.size(); ++row) {
            const bool before = scores[row] > scores[count->row] ||
                                (scores[row] == scores[count->row] && row < count->row);
            if (before && eligible(row, scores[row])) ++answer.count;
        }
        return answer;
    }
    answer.hits = oracle_top(scores, query.k, eligible);
    return answer;
}

/// Chooses `plain` question numbers: the first few, and others evenly spaced.
std::vector<std::size_t> sample(std::size_t answers, std::size_t plain) {
    plain = std::min(plain, answers);
    const std::size_t few = std::min(plain, kKindsOfQuestions);
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < few; ++i) numbers.push_back(i);
    for (std::size_t i = few; i < plain; ++i)
        numbers.push_back(few + (i - few) * (answers - few) / (plain - few));
    return numbers;
}

/// Compares the answers of these `numbers` with the oracle's; a difference is the answers' fault.
Result<Tally> compare_with_oracle(const Round& round, const Answers& answers,
                                  std::span<const std::size_t> numbers,
                                  const std::atomic<bool>& stop) {
    struct Item {
        std::size_t first = 0;  // in numbers
        std::size_t last = 0;
        std::optional<std::string> fault;
    };
    Tally tally;
    Progress progress("searching plainly", numbers.size(), {"answers", 1});
    const auto norms = oracle_norms(round.model);
    const auto produce = source::pieces_of(numbers.size(), 1, stop);
    const auto search = [&](Item& item) {
        const Answer plain =
            oracle_answer(round.model, norms, round.lists, round.questions.at(numbers[item.first]));
        item.fault =
            difference(round.model, answers.at(numbers[item.first]), {plain.hits, plain.count});
    };
    const auto note = [&](Item& item) -> Status {
        progress.update(++tally.answers);
        if (!item.fault || tally.differing++ >= kMaxListedFaults) return {};
        tally.first.push_back(fault_name(round, numbers[item.first], "", *item.fault));
        return {};
    };
    const Status searched = source::run_ordered<Item>(round.threads, produce, search, note);
    if (!searched) return searched.error();
    return tally;
}

/// «3 of 1000 answers differ from cpu avx2: query 17 …; query 19 …».
std::string faults_of(const Tally& tally, const std::string& other) {
    return fmt::format("{} of {} answers differ from {}: {}", tally.differing, tally.answers, other,
                       fmt::join(tally.first, "; "));
}

/// «1000 answers in 1.2 s by plane 990, float64 10».
std::string figures_of(const Tally& tally) {
    std::string passes;
    for (const auto& [pass, count] : tally.passes)
        passes += fmt::format("{}{} {}", passes.empty() ? "" : ", ", to_string(pass), count);
    return fmt::format("{} answers in {:.1f} s by {}", tally.answers, tally.seconds, passes);
}

Way make_way(const Model& model, const kernels::EngineEntry& entry, const std::string& name,
             const kernels::EngineOptions& options) {
    return {options.planes ? name + " plane" : name, [&model, entry, options] {
                auto engine = kernels::make_engine(entry.kind, model, options);
                if (engine || engine.error().code != ErrorCode::unavailable) return engine;
                const std::string& reason = entry.unavailable;
                return decltype(engine)(Error{ErrorCode::unavailable,
                                              reason.empty() ? engine.error().message : reason});
            }};
}

}  // namespace

std::vector<Way> all_ways(const Model& model, std::size_t threads, const DeviceChoice& devices) {
    kernels::EngineOptions options;
    options.lists = true;
    options.threads = static_cast<unsigned>(threads);
    options.devices = devices;
    std::vector<Way> ways;
    for (options.planes = false;; options.planes = true) {
        for (const std::string& simd : kernels::simd_names()) {
            if (options.planes && kernels::cpu::plane_kernel_for(simd) == nullptr) continue;
            options.simd = simd;
            ways.push_back(make_way(model, {kernels::EngineKind::cpu, {}}, "cpu " + simd, options));
        }
        if (options.planes) break;
    }
    options.simd.clear();
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.kind == kernels::EngineKind::cpu) continue;
        const std::string name(to_string(entry.kind));
        for (const bool planes : {false, true}) {
            options.planes = planes;
            ways.push_back(make_way(model, entry, name, options));
        }
        options.wgmma = false;
        ways.push_back(make_way(model, entry, name + " mma", options));
        options.wgmma = true;
        if (kernels::count_devices(devices) < 2) continue;
        options.spread = kernels::Spread::rows;
        ways.push_back(make_way(model, entry, name + " rows", options));
        options.devices = {.numbers = {devices.all ? 0 : devices.numbers.front()}, .all = false};
        ways.push_back(make_way(model, entry, name + " one", options));
    }
    return ways;
}

Result<std::vector<Way>> choose_ways(std::vector<Way> ways, const EngineChecks& checks) {
    const auto named = [&](std::string_view name) -> Result<Way> {
        const auto found = std::ranges::find(ways, name, &Way::name);
        if (found != ways.end()) {
            Way way = *found;
            way.required = true;
            return way;
        }
        std::string names;
        for (const Way& way : ways) names += (names.empty() ? "" : ", ") + way.name;
        return bad_request("no way '{}': there are {}", name, names);
    };
    std::vector<Way> chosen;
    if (!checks.reference.empty()) {
        auto way = named(checks.reference);
        if (!way) return way.error();
        chosen.push_back(*std::move(way));
    }
    const auto add = [&](Way way) {
        if (way.name != checks.reference) chosen.push_back(std::move(way));
    };
    if (checks.ways.empty()) {
        for (Way& way : ways) add(std::move(way));
        return chosen;
    }
    for (std::string_view rest = checks.ways; !rest.empty();) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        auto way = named(rest.substr(0, end));
        if (!way) return way.error();
        add(*std::move(way));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return chosen;
}

Status check_engines(const Model& model, const std::vector<Way>& ways, const EngineChecks& checks,
                     const std::atomic<bool>& stop, const Reporter& report) {
    const kernels::RowLists lists(model.rows(), checks.lists);
    const Round round{model,
                      checks.lists,
                      Questions(model, checks.seed, lists),
                      batch_sizes(checks.answers, checks.seed),
                      checks.answers,
                      checks.threads,
                      checks.seed};
    Answers reference;
    std::string reference_name;
    for (const Way& way : ways) {
        if (stop) return source::interrupted();
        const auto outcome = [&](bool ok, const std::string& detail) {
            report({"engine " + way.name, ok, detail});
        };
        auto engine = way.make();
        if (!engine) {
            const bool absent = engine.error().code == ErrorCode::unavailable;
            outcome(absent && !way.required,
                    (absent ? "not available: " : "") + engine.error().message);
            continue;
        }
        const bool is_reference = reference_name.empty();
        Answers kept;
        const auto tally =
            ask(**engine, way.name, round, is_reference ? nullptr : &reference, &kept, stop);
        engine->reset();  // frees its memory for the next
        if (!tally) {
            if (tally.error().code == ErrorCode::interrupted) return tally.error();
            outcome(false, tally.error().message);
            continue;
        }
        if (!is_reference) {
            outcome(tally->differing == 0,
                    figures_of(*tally) + (tally->differing == 0
                                              ? ", the bits of " + reference_name
                                              : "; " + faults_of(*tally, reference_name)));
            continue;
        }
        reference = std::move(kept);
        reference_name = way.name;
        const auto plain =
            compare_with_oracle(round, reference, sample(checks.answers, checks.plain), stop);
        if (!plain) return plain.error();
        outcome(plain->differing == 0,
                figures_of(*tally) +
                    (plain->differing == 0
                         ? fmt::format(", of {} the bits of a plain float64 search", plain->answers)
                         : "; " + faults_of(*plain, "a plain float64 search")));
    }
    return {};
}

}  // namespace gloved::verify
