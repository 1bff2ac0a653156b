// gloved-bench museum search: the three tables of the student project, for ten words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "common/format/model.hpp"
#include "common/format/ranks.hpp"
#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "museum/search.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/museum.hpp"

namespace gloved::bench {
namespace {

using kernels::Hit;
using kernels::QueryVector;
using museum::SearchTimes;
static_assert(kMaxMuseumHits == museum::kMaxHits);

/// A word of the original's tables, and the rank to use in a model without it.
struct OriginalWord {
    const char* word;
    std::uint32_t rank;
};
/// In the original's order.
constexpr std::array<OriginalWord, 10> kAsked = {{{"ring", 3000},
                                                  {"key", 1000},
                                                  {"key", 1000},
                                                  {"key", 1000},
                                                  {"ring", 3000},
                                                  {"king", 2000},
                                                  {"king", 2000},
                                                  {"ring", 3000},
                                                  {"barca", 60000},
                                                  {"messi", 30000}}};

struct Word {
    std::string label;
    QueryVector vector;
};

/// The vectors of kAsked, or, if the model lacks one, those of words by rank for all of them: a
/// mixture would be comparable with nothing.
Result<std::vector<Word>> find_words(const format::Model& model) {
    const auto row_of = format::rows_by_rank(model);
    if (!row_of) return row_of.error();
    const auto has = [&](const OriginalWord& asked) {
        const auto row = model.find(asked.word);
        return row && model.norms()[*row] > 0;
    };
    const bool by_rank = !std::ranges::all_of(kAsked, has);
    std::vector<Word> words;
    for (const OriginalWord& asked : kAsked) {
        format::Row row = 0;
        std::string label = asked.word;
        if (by_rank) {
            // The next rank whose vector is not zero; there is one.
            std::size_t rank = asked.rank % row_of->size();
            while (!(model.norms()[(*row_of)[rank]] > 0)) rank = (rank + 1) % row_of->size();
            row = (*row_of)[rank];
            label += fmt::format(" #{}", rank);
        } else {
            row = *model.find(asked.word);
        }
        const kernels::WeightedRow term{1.0, row};
        auto vector = kernels::make_query_vector(model, std::span(&term, 1), false);
        if (!vector) return vector.error();
        words.push_back({label, *std::move(vector)});
    }
    return words;
}

using Run = std::function<Result<std::vector<Hit>>(const QueryVector&, std::size_t, SearchTimes&)>;

/// A version or an engine, and its times.
struct Contestant {
    std::string name;
    std::string idea;
    bool on_host = false;
    bool is_engine = false;
    Run run;
    std::vector<std::vector<SearchTimes>> rounds{};  ///< [round][word]
    double spent_ms = 0;

    std::vector<double> all(const std::function<double(const SearchTimes&)>& part) const {
        std::vector<double> values;
        for (const auto& round : rounds) {
            for (const SearchTimes& times : round) values.push_back(part(times));
        }
        return values;
    }
    double mean_total() const {
        return mean(all([](const SearchTimes& times) { return times.total; }));
    }
};

/// Compares hits with the canonical scores and with the best of the cpu engine, `exact`.
Status check_hits(const format::Model& model, const std::string& name, const QueryVector& query,
                  std::span<const Hit> hits, std::span<const Hit> exact, double bound) {
    const auto wrong = [&](std::size_t i) {
        return error_with(ErrorCode::internal, "{} answers wrong: hit {}", name, i);
    };
    if (hits.size() != exact.size()) return wrong(hits.size());
    std::set<kernels::Row> seen;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        const Hit& hit = hits[i];
        if (hit.row >= model.rows() || !seen.insert(hit.row).second) return wrong(i);
        if (i > 0 && !(hit.score <= hits[i - 1].score)) return wrong(i);
        const double norm = model.norms()[hit.row];
        if (norm != 0 && !kernels::bound_covers(norm)) continue;
        const double canonical = kernels::canonical_score(
            query.values.data(), query.norm, model.vector(hit.row).data(), norm, model.dim());
        // NaN is outside every bound.
        if (!(std::abs(hit.score - canonical) <= bound) ||
            !(canonical >= exact.back().score - 2 * bound))
            return wrong(i);
    }
    return {};
}

/// An engine, which has no parts.
Result<Contestant> make_engine_contestant(const std::string& name, const format::Model& model,
                                          const MuseumSettings& settings) {
    kernels::EngineOptions options;
    options.threads = settings.threads;
    options.devices = settings.devices;
    auto made = kernels::make_engine(*kernels::parse_engine(name), model, options);
    if (!made) return made.error();
    std::shared_ptr<kernels::Engine> engine = *std::move(made);
    Run run = [engine](const QueryVector& vector, std::size_t k,
                       SearchTimes& times) -> Result<std::vector<Hit>> {
        const kernels::Query query{kernels::Cosine{vector}, k, {}, {}};
        Result<std::vector<kernels::Answer>> answers = std::vector<kernels::Answer>();
        times = {};
        times.total = time_ms([&] { answers = engine->run(std::span(&query, 1)); });
        if (!answers) return answers.error();
        return std::move((*answers)[0].hits);
    };
    return Contestant{name, "gloved's engine: " + engine->description(), name == "cpu", true,
                      std::move(run)};
}

Result<Contestant> make_contestant(const std::string& name, const format::Model& model,
                                   const MuseumSettings& settings) {
    const auto version = std::ranges::find(museum::versions(), name, &museum::Version::name);
    if (version == museum::versions().end()) return make_engine_contestant(name, model, settings);
    auto made = museum::Search::create(*version, model, settings.device());
    if (!made) return made.error();
    std::shared_ptr<museum::Search> search = *std::move(made);
    Run run = [search](const QueryVector& vector, std::size_t k, SearchTimes& times) {
        return search->run(vector, k, &times);
    };
    return Contestant{name, std::string(version->idea), version->launch == nullptr, false,
                      std::move(run)};
}

Status check(const Contestant& contestant, const format::Model& model, std::span<const Word> words,
             std::size_t k, const Contestant& cpu) {
    const double bound = contestant.is_engine ? 0 : museum::score_bound(model.dim());
    SearchTimes times;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        const std::size_t wanted = i == 0 ? museum::kMaxHits : k;
        const auto exact = cpu.run(words[i].vector, wanted, times);
        if (!exact) return exact.error();
        const auto hits = contestant.run(words[i].vector, wanted, times);
        if (!hits) return hits.error();
        Status right = check_hits(model, contestant.name, words[i].vector, *hits, *exact, bound);
        if (!right) return right;
    }
    return {};
}

/// Searches all words once. A plain read before each search empties the device's caches, and is
/// itself a sample of the ceiling.
Status time_round(Contestant& contestant, std::span<const Word> words, std::size_t k,
                  DeviceReader& reader, std::vector<double>& reads) {
    std::vector<SearchTimes> round;
    for (const Word& word : words) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        const auto read = reader.read_ms();
        if (!read) return read.error();
        reads.push_back(*read);
        const auto hits = contestant.run(word.vector, k, round.emplace_back());
        if (!hits) return hits.error();
        contestant.spent_ms += round.back().total;
    }
    contestant.rounds.push_back(std::move(round));
    return {};
}

Table words_table(std::span<const Contestant> contestants, std::span<const Word> words,
                  TableFormat format) {
    // CSV has a column for each number, text one for both.
    const bool split = format == TableFormat::csv;
    std::vector<std::string> headings = {"version", "rounds"};
    for (const Word& word : words) {
        headings.push_back(split ? word.label + " mean" : word.label);
        if (split) headings.push_back(word.label + " error");
    }
    Table table(headings);
    for (const Contestant& contestant : contestants) {
        std::vector<std::string> cells = {contestant.name,
                                          fmt::to_string(contestant.rounds.size())};
        for (std::size_t word = 0; word < words.size(); ++word) {
            std::vector<double> totals;
            for (const auto& round : contestant.rounds) totals.push_back(round[word].total);
            const auto error = standard_error(totals);
            const std::string error_text = error ? fmt::format("{:.3f}", *error) : "";
            cells.push_back(figure(mean(totals)));
            if (split) {
                cells.push_back(error_text);
            } else if (error) {
                cells.back() += " ±" + error_text;
            }
        }
        table.add(std::move(cells));
    }
    return table;
}

Table speedup_table(std::span<const Contestant> contestants, std::size_t rows, double read_ms) {
    Table table({"version", "ms", "x v0", "x previous", "distances/ms", "x read"});
    const auto v0 = std::ranges::find(contestants, "v0", &Contestant::name);
    std::optional<double> previous;
    for (const Contestant& contestant : contestants) {
        const double ms = contestant.mean_total();
        const auto gain = [&](const std::optional<double>& over) {
            return over ? fmt::format("{:.2f}", *over / ms) : std::string();
        };
        const bool is_beside = contestant.is_engine && contestant.on_host;
        table.add({contestant.name, figure(ms),
                   gain(v0 == contestants.end() ? std::nullopt : std::optional(v0->mean_total())),
                   gain(is_beside ? std::nullopt : previous),
                   fmt::format("{:.0f}", static_cast<double>(rows) / ms),
                   contestant.on_host ? "" : fmt::format("{:.2f}", ms / read_ms)});
        if (!is_beside) previous = ms;
    }
    return table;
}

Table parts_table(std::span<const Contestant> contestants) {
    Table table({"version", "DotProduct", "FirstMerge", "BotchedMergeSort", "overhead", "total"});
    for (const Contestant& contestant : contestants) {
        if (contestant.is_engine) continue;
        const auto part = [&](const std::function<double(const SearchTimes&)>& of) {
            return figure(mean(contestant.all(of)));
        };
        table.add({contestant.name,
                   part([](const SearchTimes& times) { return times.dot_product; }),
                   part([](const SearchTimes& times) { return times.first_merge; }),
                   part([](const SearchTimes& times) { return times.botched_merge_sort; }),
                   part([](const SearchTimes& times) { return times.overhead(); }),
                   figure(contestant.mean_total())});
    }
    return table;
}

void print_tables(std::span<const Contestant> contestants, std::span<const Word> words,
                  const format::Model& model, double read_ms, TableFormat format) {
    print_note(format, "Table 1: milliseconds per word, mean and standard error");
    words_table(contestants, words, format).print(stdout, format);
    fmt::print("\n");
    print_note(format, "Table 2: speedup");
    speedup_table(contestants, model.rows(), read_ms).print(stdout, format);
    print_note(format, fmt::format("plain read of all vectors; device {} ms", figure(read_ms)));
    for (const Contestant& contestant : contestants)
        print_note(format, fmt::format("{}: {}", contestant.name, contestant.idea));
    fmt::print("\n");
    print_note(format, "Table 3: milliseconds of each part");
    parts_table(contestants).print(stdout, format);
}

Result<format::Model> open_model(const MuseumSettings& settings, const std::string& scratch) {
    if (!settings.model.empty()) return format::Model::open(settings.model);
    const std::string directory = scratch + "/model";
    const GenerateOptions options{settings.rows, static_cast<std::uint32_t>(settings.dim),
                                  settings.seed, settings.threads};
    const auto made = generate_model(directory, options, cli::stop_requested);
    if (!made) return made.error();
    return format::Model::open(directory);
}

}  // namespace

Status print_museum_search(const MuseumSettings& settings) {
    const auto scratch = ScratchDirectory::create();
    if (!scratch) return scratch.error();
    const auto model = open_model(settings, scratch->path());
    if (!model) return model.error();
    if (std::ranges::none_of(model->norms(), [](double norm) { return norm > 0; }))
        return bad_source("every vector is zero; there is nothing to ask for");
    const auto words = find_words(*model);
    if (!words) return words.error();
    print_note(settings.format,
               fmt::format("model      {} x {} float32", with_commas(model->rows()), model->dim()));

    const auto cpu = make_engine_contestant("cpu", *model, settings);
    if (!cpu) return cpu.error();
    std::vector<Contestant> contestants;
    for (const std::string& name : settings.versions) {
        auto made = make_contestant(name, *model, settings);
        if (!made) return made.error();
        Status right = check(*made, *model, *words, settings.k, *cpu);
        if (!right) return right;
        contestants.push_back(*std::move(made));
    }
    print_note(settings.format, "checked    all scores are within their bounds");
    fmt::print("\n");
    std::fflush(stdout);
    auto reader = DeviceReader::create(model->vectors().size_bytes(), settings.device());
    if (!reader) return reader.error();
    std::vector<double> reads;
    for (std::size_t round = 0; round < settings.repeat; ++round) {
        for (Contestant& contestant : contestants) {
            if (round > 0 && contestant.spent_ms > settings.seconds * 1000) continue;
            Status done = time_round(contestant, *words, settings.k, *reader, reads);
            if (!done) return done;
        }
    }
    print_tables(contestants, *words, *model, median(reads), settings.format);
    return {};
}

}  // namespace gloved::bench
