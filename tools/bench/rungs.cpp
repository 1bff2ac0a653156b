#include "tools/bench/rungs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/engine.hpp"
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

/// The rung that runs on the CPU.
constexpr std::string_view kHostRung = "v0";
constexpr std::size_t kRounds = 10;
/// A standard error needs two.
constexpr std::size_t kMinRounds = 2;

/// A word of the original's tables, and the rank to use in a model without it.
struct OriginalWord {
    const char* word;
    std::uint32_t rank;
};
constexpr OriginalWord kRing = {"ring", 3000};
constexpr OriginalWord kKey = {"key", 1000};
constexpr OriginalWord kKing = {"king", 2000};
constexpr OriginalWord kBarca = {"barca", 60000};
constexpr OriginalWord kMessi = {"messi", 30000};
/// In the original's order.
constexpr std::array<OriginalWord, 10> kAsked = {kRing, kKey,  kKey,  kKey,   kRing,
                                                 kKing, kKing, kRing, kBarca, kMessi};

struct Word {
    std::string label;
    format::Row row = 0;
};

struct Words {
    std::vector<Word> asked;  ///< in the order of kAsked
    bool by_rank = false;
};

/// Finds the words of kAsked, or, if the model lacks one, words by rank for all of them: a mixture
/// would be comparable with nothing.
Words find_words(const format::Model& model) {
    Words words;
    for (const OriginalWord& asked : kAsked) {
        const auto row = model.find(asked.word);
        if (row && model.norms()[*row] > 0) words.asked.push_back({asked.word, *row});
    }
    if (words.asked.size() == kAsked.size()) return words;
    words = {{}, true};
    std::vector<format::Row> row_of(model.rows());
    for (format::Row row = 0; row < row_of.size(); ++row) row_of[model.ranks()[row]] = row;
    for (const OriginalWord& asked : kAsked) {
        // The next rank whose vector is not zero; there is one.
        std::size_t rank = asked.rank % row_of.size();
        while (!(model.norms()[row_of[rank]] > 0)) rank = (rank + 1) % row_of.size();
        words.asked.push_back({fmt::format("{} #{}", asked.word, rank), row_of[rank]});
    }
    return words;
}

/// Whether words[i] is the first of its row.
bool is_first(std::span<const Word> words, std::size_t i) {
    return std::none_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const Word& word) { return word.row == words[i].row; });
}

/// A rung and its measurements.
struct TimedRung {
    std::unique_ptr<Rung> rung;
    RungFigures figures;
    double spent_ms = 0;
};

/// Compares the answer to every distinct query with the cpu engine's, which is canonical.
Status check_rung(Rung& rung, const format::Model& model,
                  std::span<const kernels::QueryVector> queries, std::size_t timed_k,
                  kernels::Engine& canonical) {
    const double bound = rung.info().score_bound(model.dim());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        // The first query with the largest k of a rung, the others with the k that is timed.
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

/// Times a rung's searches for all words. A plain read before each of them empties the device's
/// caches, and is itself a sample of the ceiling.
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

bool needs_device(const std::string& rung) { return rung != kHostRung; }

/// The rungs that can run here, and what they need.
struct Ladder {
    RungChoice choice;
    std::string why_left_out;
    std::shared_ptr<const kernels::ladder::ResidentModel> resident;
    std::optional<DeviceReader> reader;  ///< none without a device
};

Result<Ladder> prepare_ladder(const format::Model& model, const Settings& settings) {
    Ladder ladder{choose_rungs(settings), "this build has no CUDA", {}, {}};
    std::vector<std::string>& run = ladder.choice.run;
    if (std::ranges::none_of(run, needs_device)) return ladder;
    if (const auto device = start_device(settings.device()); !device) {
        ladder.why_left_out = device.error().message;
        std::ranges::copy_if(run, std::back_inserter(ladder.choice.left_out), needs_device);
        std::erase_if(run, needs_device);
        return ladder;
    }
    auto uploaded = kernels::ladder::make_resident_model(model, settings.device());
    if (!uploaded) return uploaded.error();
    ladder.resident = *std::move(uploaded);
    // After the model, which needs the memory more.
    auto reader = DeviceReader::create(model.vectors().size_bytes(), settings.device());
    if (!reader) return reader.error();
    ladder.reader.emplace(*std::move(reader));
    return ladder;
}

std::size_t rounds_of(const Settings& settings) {
    return settings.repeat == 0 ? kRounds : settings.repeat;
}

void print_conditions(const format::Model& model, const Settings& settings, const Ladder& ladder,
                      const Words& words) {
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    note(fmt::format(
        "rungs    {} rounds, at least {} for a rung that takes longer than {:.0f} s; k={}",
        rounds_of(settings), kMinRounds, settings.rung_seconds, settings.k));
    note(words.by_rank ? "words    by rank, since this model lacks words of the original's tables:"
                       : "words    those of the original's tables");
    for (std::size_t i = 0; words.by_rank && i < words.asked.size(); ++i) {
        if (!is_first(words.asked, i)) continue;
        note(fmt::format("         {}: {}", words.asked[i].label,
                         printable(model.key(words.asked[i].row))));
    }
    if (ladder.reader) note("ceiling  " + ladder.reader->description());
    if (!ladder.choice.left_out.empty()) {
        note(fmt::format("left out {}: {}", fmt::join(ladder.choice.left_out, ", "),
                         ladder.why_left_out));
    }
    std::fflush(stdout);
}

/// Makes the rungs and checks their answers.
Result<std::vector<TimedRung>> make_rungs(const format::Model& model, const Settings& settings,
                                          const Ladder& ladder,
                                          std::span<const kernels::QueryVector> queries) {
    auto canonical = kernels::make_engine(kernels::EngineKind::cpu, model, {settings.threads});
    if (!canonical) return canonical.error();
    std::vector<TimedRung> rungs;
    for (const std::string& name : ladder.choice.run) {
        auto made = kernels::ladder::make_rung(name, model, ladder.resident, settings.device());
        if (!made) return made.error();
        TimedRung timed;
        timed.rung = *std::move(made);
        if (Status right = check_rung(*timed.rung, model, queries, settings.k, **canonical); !right)
            return right.error();
        const RungInfo& info = timed.rung->info();
        timed.figures = {std::string(info.name),
                         std::string(info.idea),
                         info.discarded,
                         !needs_device(name),
                         {}};
        rungs.push_back(std::move(timed));
    }
    return rungs;
}

struct PlainReads {
    std::vector<double> host_ms;
    std::vector<double> device_ms;
};

/// Times all rungs in turns, round by round, with a plain read of host memory in each round.
Result<PlainReads> time_rungs(const format::Model& model, const Settings& settings,
                              std::span<const kernels::QueryVector> queries, DeviceReader* reader,
                              std::vector<TimedRung>& rungs) {
    kernels::ThreadPool pool(settings.threads);
    PlainReads reads;
    for (std::size_t round = 0; round < rounds_of(settings); ++round) {
        reads.host_ms.push_back(time_ms([&] { read_all(pool, std::as_bytes(model.vectors())); }));
        for (std::size_t i = 0; i < rungs.size(); ++i) {
            TimedRung& timed = rungs[(i + round) % rungs.size()];
            if (round >= kMinRounds && timed.spent_ms > settings.rung_seconds * 1000) continue;
            Status status;
            timed.spent_ms += time_ms([&] {
                auto times = time_words(*timed.rung, queries, settings.k, reader, reads.device_ms);
                if (times)
                    timed.figures.runs.push_back(*std::move(times));
                else
                    status = times.error();
            });
            if (!status) return status.error();
        }
    }
    return reads;
}

void print_tables(const RungReport& report, const Settings& settings) {
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    const auto gbs = [&](double ms) { return static_cast<double>(report.vector_bytes) / ms / 1e6; };
    std::string ceilings =
        fmt::format("read ceiling: processor, {} threads {} ms, {:.1f} GB/s (for v0)",
                    settings.threads, figure(report.host_read_ms), gbs(report.host_read_ms));
    if (report.device_read_ms) {
        ceilings += fmt::format("; device {} ms, {:.1f} GB/s", figure(*report.device_read_ms),
                                gbs(*report.device_read_ms));
    }
    note("Table 1: milliseconds per word, mean and standard error");
    words_table(report, settings.format).print(stdout, settings.format);
    note(ceilings);
    fmt::print("\n");
    note("Table 2: speedup");
    speedup_table(report).print(stdout, settings.format);
    for (const RungFigures& rung : report.rungs) note(fmt::format("{}: {}", rung.name, rung.idea));
    fmt::print("\n");
    note("Table 3: milliseconds of each part");
    parts_table(report).print(stdout, settings.format);
}

}  // namespace

RungChoice choose_rungs(const Settings& settings) {
    std::vector<std::string_view> known;
    for (const RungInfo& info : kernels::ladder::list_rungs()) known.push_back(info.name);
    const bool complete = std::ranges::any_of(known, [](auto name) { return name != kHostRung; });
    return parse_rungs(settings.rungs, known, complete);
}

Status print_rungs(const format::Model& model, const Settings& settings) {
    auto ladder = prepare_ladder(model, settings);
    if (!ladder) return ladder.error();
    const Words words = find_words(model);
    const auto queries = make_vectors(model, words.asked);
    if (!queries) return queries.error();
    print_conditions(model, settings, *ladder, words);
    if (ladder->choice.run.empty()) {
        return Error{ErrorCode::unsupported,
                     "none of these rungs can run here: " + ladder->why_left_out};
    }
    std::vector<kernels::QueryVector> distinct;
    for (std::size_t i = 0; i < words.asked.size(); ++i) {
        if (is_first(words.asked, i)) distinct.push_back((*queries)[i]);
    }
    auto rungs = make_rungs(model, settings, *ladder, distinct);
    if (!rungs) return rungs.error();
    print_note(settings.format,
               "checked  every rung's scores are within its bound of the canonical ones");
    fmt::print("\n");
    std::fflush(stdout);

    DeviceReader* const reader = ladder->reader ? &*ladder->reader : nullptr;
    const auto reads = time_rungs(model, settings, *queries, reader, *rungs);
    if (!reads) return reads.error();
    RungReport report;
    for (const Word& word : words.asked) report.words.push_back(word.label);
    report.rows = model.rows();
    report.vector_bytes = model.vectors().size_bytes();
    report.host_read_ms = median(reads->host_ms);
    if (!reads->device_ms.empty()) report.device_read_ms = median(reads->device_ms);
    for (TimedRung& timed : *rungs) report.rungs.push_back(std::move(timed.figures));
    print_tables(report, settings);
    return {};
}

}  // namespace gloved::bench
