#include "tools/bench/rungs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "common/quoting.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/rung_check.hpp"
#include "tools/bench/rung_report.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {
namespace {

using kernels::ladder::Rung;
using kernels::ladder::RungInfo;
using kernels::ladder::RungTimes;

/// The rung that needs no device.
constexpr std::string_view kHostRung = "v0";
constexpr std::size_t kRounds = 10;
/// A standard error needs two.
constexpr std::size_t kMinRounds = 2;

/// A word of the original's tables, and the rank that stands for it in a model without it.
struct Asked {
    const char* word;
    std::uint32_t rank;
};
constexpr Asked kRing = {"ring", 3000};
constexpr Asked kKey = {"key", 1000};
constexpr Asked kKing = {"king", 2000};
constexpr Asked kBarca = {"barca", 60000};
constexpr Asked kMessi = {"messi", 30000};
/// In the original's order.
constexpr std::array<Asked, 10> kAsked = {kRing, kKey,  kKey,  kKey,   kRing,
                                          kKing, kKing, kRing, kBarca, kMessi};

struct Word {
    std::string label;
    format::Row row = 0;
};

struct Words {
    std::vector<Word> asked;  ///< in the order of kAsked
    bool by_rank = false;
};

/// The words of kAsked. The model has all of them, or ranks stand for all: half of each would
/// compare with nothing.
Words find_words(const format::Model& model) {
    Words words;
    for (const Asked& asked : kAsked) {
        const auto row = model.find(asked.word);
        if (row && model.norms()[*row] > 0) words.asked.push_back({asked.word, *row});
    }
    if (words.asked.size() == kAsked.size()) return words;
    words = {{}, true};
    std::vector<format::Row> row_of(model.rows());
    for (format::Row row = 0; row < row_of.size(); ++row) row_of[model.ranks()[row]] = row;
    for (const Asked& asked : kAsked) {
        // The next rank whose vector is not zero: there is one.
        std::size_t rank = asked.rank % row_of.size();
        while (!(model.norms()[row_of[rank]] > 0)) rank = (rank + 1) % row_of.size();
        words.asked.push_back({fmt::format("{} #{}", asked.word, rank), row_of[rank]});
    }
    return words;
}

/// Whether no word before words[i] is the same.
bool is_first(std::span<const Word> words, std::size_t i) {
    return std::none_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const Word& word) { return word.row == words[i].row; });
}

/// A rung on the ladder, with the query of each word.
struct Climber {
    std::unique_ptr<Rung> rung;
    RungFigures figures;
    double spent_ms = 0;
};

/// Compares every distinct query's answer with the cpu engine's, which is canonical.
Status check_rung(Rung& rung, const format::Model& model,
                  std::span<const kernels::QueryVector> queries, std::size_t timed_k,
                  kernels::Engine& canonical) {
    const double bound = rung.info().score_bound(model.dim());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        // The most that a rung can find, once; what is timed, for the others.
        const std::size_t k = i == 0 ? kernels::ladder::kMaxLadderHits : timed_k;
        const kernels::Query query{kernels::Cosine{queries[i]}, k, {}, {}};
        const auto exact = canonical.run(std::span(&query, 1));
        if (!exact) return exact.error();
        const auto hits = rung.search(queries[i], k, nullptr);
        if (!hits) return hits.error();
        if (Status right = check_hits(model, queries[i], *hits, exact->front().hits, bound);
            !right) {
            return Error{right.error().code, fmt::format("rung {} answers wrong: {}",
                                                         rung.info().name, right.error().message)};
        }
    }
    return {};
}

Result<std::vector<kernels::QueryVector>> make_vectors(const format::Model& model,
                                                       std::span<const Word> words) {
    std::vector<kernels::QueryVector> vectors;
    for (const Word& word : words) {
        const kernels::WeightedRow term{1.0, word.row};
        auto vector = kernels::make_query_vector(model, std::span(&term, 1), false);
        if (!vector) return vector.error();
        vectors.push_back(*std::move(vector));
    }
    return vectors;
}

/// One rung's searches for all words. The plain read before each of them leaves the device's caches
/// cold, and is itself a sample of the ceiling.
Result<std::vector<RungTimes>> time_words(Rung& rung, std::span<const kernels::QueryVector> queries,
                                          std::size_t k, DeviceReader* reader,
                                          std::vector<double>& device_reads) {
    std::vector<RungTimes> round;
    for (const kernels::QueryVector& query : queries) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        if (reader != nullptr) {
            const auto read = reader->read_ms();
            if (!read) return read.error();
            device_reads.push_back(*read);
        }
        RungTimes times;
        const auto hits = rung.search(query, k, &times);
        if (!hits) return hits.error();
        round.push_back(times);
    }
    return round;
}

}  // namespace

RungChoice choose_rungs(const Settings& settings) {
    std::vector<std::string_view> known;
    for (const RungInfo& info : kernels::ladder::list_rungs()) known.push_back(info.name);
    const bool complete =
        std::any_of(known.begin(), known.end(), [](auto name) { return name != kHostRung; });
    return parse_rungs(settings.rungs, known, complete);
}

Status print_rungs(const format::Model& model, const Settings& settings) {
    RungChoice choice = choose_rungs(settings);
    // All of what this build has not got, it has not got for one reason.
    std::string why = "this build has no CUDA";
    std::optional<DeviceReader> reader;
    std::shared_ptr<const kernels::ladder::ResidentModel> resident;
    const auto of_device = [](const std::string& name) { return name != kHostRung; };
    if (std::any_of(choice.run.begin(), choice.run.end(), of_device)) {
        if (const auto facts = start_device(settings.device)) {
            auto uploaded = kernels::ladder::make_resident_model(model, settings.device);
            if (!uploaded) return uploaded.error();
            resident = *std::move(uploaded);
            // After the model: the rest of the memory is for the read.
            auto made = DeviceReader::create(model.vectors().size_bytes(), settings.device);
            if (!made) return made.error();
            reader.emplace(*std::move(made));
        } else {
            why = facts.error().message;
            const auto first =
                std::stable_partition(choice.run.begin(), choice.run.end(),
                                      [&](const std::string& name) { return !of_device(name); });
            choice.left_out.assign(first, choice.run.end());
            choice.run.erase(first, choice.run.end());
        }
    }

    const auto [words, by_rank] = find_words(model);
    const auto queries = make_vectors(model, words);
    if (!queries) return queries.error();
    const std::size_t rounds = settings.repeat == 0 ? kRounds : settings.repeat;
    print_note(
        settings.format,
        fmt::format("rungs    up to {} rounds, but no more than {} after {:.0f} s of one; k={}",
                    rounds, kMinRounds, settings.rung_seconds, settings.k));
    print_note(settings.format, !by_rank ? "words    those of the original's tables"
                                         : "words    this model lacks words of the original's "
                                           "tables; these, by rank, stand for them:");
    for (std::size_t i = 0; by_rank && i < words.size(); ++i) {
        if (!is_first(words, i)) continue;
        print_note(settings.format, fmt::format("         {}: {}", words[i].label,
                                                printable(model.key(words[i].row))));
    }
    if (reader) print_note(settings.format, "ceiling  " + reader->description());
    if (!choice.left_out.empty()) {
        print_note(settings.format,
                   fmt::format("left out {}: {}", fmt::join(choice.left_out, ", "), why));
    }
    std::fflush(stdout);
    if (choice.run.empty())
        return Error{ErrorCode::unsupported, "none of these rungs can run here: " + why};

    auto canonical = kernels::make_engine(kernels::EngineKind::cpu, model, {settings.threads});
    if (!canonical) return canonical.error();
    std::vector<kernels::QueryVector> distinct;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (is_first(words, i)) distinct.push_back((*queries)[i]);
    }
    std::vector<Climber> climbers;
    for (const std::string& name : choice.run) {
        Climber climber;
        auto made = kernels::ladder::make_rung(name, model, resident, settings.device);
        if (!made) return made.error();
        climber.rung = *std::move(made);
        if (Status right = check_rung(*climber.rung, model, distinct, settings.k, **canonical);
            !right)
            return right;
        const RungInfo& info = climber.rung->info();
        climber.figures = {
            std::string(info.name), std::string(info.idea), info.discarded, !of_device(name), {}};
        climbers.push_back(std::move(climber));
    }
    print_note(settings.format,
               "checked  every rung's scores: within its own bound of the canonical ones");
    fmt::print("\n");
    std::fflush(stdout);
    canonical->reset();

    kernels::ThreadPool pool(settings.threads);
    std::vector<double> host_reads;
    std::vector<double> device_reads;
    for (std::size_t round = 0; round < rounds; ++round) {
        host_reads.push_back(time_ms([&] { read_all(pool, std::as_bytes(model.vectors())); }));
        for (std::size_t i = 0; i < climbers.size(); ++i) {
            Climber& climber = climbers[(i + round) % climbers.size()];
            if (round >= kMinRounds && climber.spent_ms > settings.rung_seconds * 1000) continue;
            Status timed;
            climber.spent_ms += time_ms([&] {
                auto times = time_words(*climber.rung, *queries, settings.k,
                                        reader ? &*reader : nullptr, device_reads);
                if (times)
                    climber.figures.runs.push_back(*std::move(times));
                else
                    timed = times.error();
            });
            if (!timed) return timed;
        }
    }

    RungReport report;
    for (const Word& word : words) report.words.push_back(word.label);
    report.rows = model.rows();
    report.vector_bytes = model.vectors().size_bytes();
    report.host_read_ms = median(host_reads);
    if (!device_reads.empty()) report.device_read_ms = median(device_reads);
    for (Climber& climber : climbers) report.rungs.push_back(std::move(climber.figures));
    const auto gbs = [&](double ms) { return static_cast<double>(report.vector_bytes) / ms / 1e6; };
    std::string ceilings = fmt::format(
        "read ceiling: processor, {} threads {} ms, {:.1f} GB/s (v0 is held against it)",
        settings.threads, figure(report.host_read_ms), gbs(report.host_read_ms));
    if (report.device_read_ms) {
        ceilings += fmt::format("; device {} ms, {:.1f} GB/s", figure(*report.device_read_ms),
                                gbs(*report.device_read_ms));
    }
    print_note(settings.format, "Table 1: milliseconds a word, mean and standard error");
    words_table(report, settings.format).print(stdout, settings.format);
    print_note(settings.format, ceilings);
    fmt::print("\n");
    print_note(settings.format, "Table 2: how many times as fast");
    speedup_table(report).print(stdout, settings.format);
    for (const RungFigures& rung : report.rungs) {
        print_note(settings.format, fmt::format("{}: {}", rung.name, rung.idea));
    }
    fmt::print("\n");
    print_note(settings.format, "Table 3: where the milliseconds go");
    parts_table(report).print(stdout, settings.format);
    return {};
}

}  // namespace gloved::bench
