#include "tools/bench/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "cli/signals.hpp"
#include "common/elapsed.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/measure.hpp"
#include "tools/random_list.hpp"

namespace gloved::bench {
namespace {

using kernels::EngineKind;

constexpr std::size_t kRoundsWithProcessor = 9;
constexpr std::size_t kRoundsOfDevice = 49;
/// Rows per call of sgemm: from 2,048 to 262,144 the CPU time was the same within a tenth.
constexpr std::size_t kBlockRows = 16384;
constexpr double kTail = 0.99;
/// Queries that an engine on a GPU answers before each measurement.
constexpr std::size_t kWarmingQueries = 3;

struct NamedEngine {
    std::string label;
    bool on_device = false;
    bool on_several = false;  ///< devices
    std::unique_ptr<kernels::Engine> engine;
    std::vector<std::size_t> batches;
};

/// The kinds of engines that `settings` name. A single named engine is included even if it cannot
/// run: making it gives the reason.
std::vector<EngineKind> engine_kinds(const EnginesSettings& settings) {
    if (settings.engine) return {*settings.engine};
    std::vector<EngineKind> kinds;
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.unavailable.empty()) kinds.push_back(entry.kind);
    }
    if (!settings.all_engines && kinds.size() > 1) kinds.resize(1);
    return kinds;
}

bool is_on_device(EngineKind kind) { return kind == EngineKind::cuda; }

/// Whether the measurement uses a GPU: the engine is cuda, or it is auto or all and cuda can run.
bool wants_device(const EnginesSettings& settings) {
    const auto kinds = engine_kinds(settings);
    return std::ranges::any_of(kinds, is_on_device);
}

/// Makes one engine and prints how long that took, and the engine's messages.
Result<NamedEngine> make_engine(EngineKind kind, const std::string& simd,
                                const DeviceChoice& devices, const format::Model& model,
                                const EnginesSettings& settings) {
    NamedEngine named;
    named.on_device = is_on_device(kind);
    std::vector<std::pair<double, std::string>> said;
    const auto begin = std::chrono::steady_clock::now();
    kernels::EngineOptions options;
    options.threads = settings.threads;
    options.simd = simd;
    options.devices = devices;
    options.spread = settings.spread;
    options.pin = settings.pin;
    options.planes = settings.planes;
    if (settings.fine_plane) options.fine_plane = kernels::FinePlane::at_start;
    options.wgmma = settings.wgmma;
    options.gpu_memory_bytes = settings.gpu_memory_bytes;
    options.time_device = true;
    options.lists = !settings.within.empty();
    options.log = [&](const std::string& line) { said.emplace_back(ms_since(begin), line); };
    auto engine = kernels::make_engine(kind, model, options);
    const double ms = ms_since(begin);
    if (!engine) return engine.error();
    named.engine = *std::move(engine);
    const std::string description = named.engine->description();
    const auto facts = named.engine->gpu_facts();
    named.on_several = facts && facts->shards.size() > 1;
    named.label = named.engine->name() + " " +
                  (named.on_several ? fmt::format("on {} GPUs", facts->shards.size())
                                    : description.substr(0, description.find(',')));
    if (!settings.batches.empty()) {
        named.batches = settings.batches;
    } else if (named.on_device) {
        named.batches = {1, 2, 8, 64, 256, 1024};
    } else {
        named.batches = {1, 8, 64};
    }
    print_note(settings.format, fmt::format("engine   {}: {}", named.engine->name(), description));
    print_note(settings.format, fmt::format("         ready after {} ms, --planes {}{}", figure(ms),
                                            settings.planes ? "on" : "off",
                                            !named.on_device ? ""
                                            : settings.pin   ? ", --pin on"
                                                             : ", --pin off"));
    for (const auto& [at_ms, line] : said) {
        print_note(settings.format, fmt::format("         after {} ms: {}", figure(at_ms), line));
    }
    return named;
}

std::vector<std::vector<format::Row>> make_lists(const format::Model& model,
                                                 const EnginesSettings& settings) {
    std::mt19937_64 random(settings.seed);
    std::vector<std::vector<format::Row>> lists;
    for (const std::size_t size : settings.within)
        lists.push_back(random_list(model.rows(), size, random));
    return lists;
}

Result<std::vector<NamedEngine>> make_engines(const format::Model& model,
                                              const EnginesSettings& settings) {
    std::vector<NamedEngine> engines;
    const auto add = [&](EngineKind kind, const std::string& simd,
                         const DeviceChoice& devices) -> Status {
        auto engine = make_engine(kind, simd, devices, model, settings);
        if (!engine) return engine.error();
        engines.push_back(*std::move(engine));
        return {};
    };
    for (const EngineKind kind : engine_kinds(settings)) {
        std::vector<std::string> sets = {is_on_device(kind) ? "" : settings.simd};
        if (sets[0] == "all") sets = kernels::simd_names();
        for (const std::string& simd : sets) {
            // One of several devices is the peer of all of them.
            if (is_on_device(kind) && kernels::count_devices(settings.devices) > 1) {
                Status added = add(kind, simd, {.numbers = {settings.device()}, .all = false});
                if (!added) return added.error();
            }
            if (Status added = add(kind, simd, settings.devices); !added) return added.error();
        }
    }
    return engines;
}

std::string ratio(double of, const Series* to) {
    return to == nullptr || to->ms.empty() ? "" : fmt::format("{:.2f}", of / to->median());
}

/// The device's milliseconds for a run. All queries of a pass report its time, and a large batch
/// takes several passes, of different times. (Two passes with exactly the
/// same time count as one, which does not affect the median over rounds.)
double device_ms_of(std::span<const kernels::Answer> answers) {
    std::set<double> passes;
    for (const kernels::Answer& answer : answers) passes.insert(answer.certificate.device_ms);
    return std::accumulate(passes.begin(), passes.end(), 0.0);
}

/// Batch sizes for CPU engines, ascending, without 1.
std::set<std::size_t> batches_on_processor(std::span<const NamedEngine> engines) {
    std::set<std::size_t> batches;
    for (const NamedEngine& named : engines) {
        if (!named.on_device) batches.insert(named.batches.begin(), named.batches.end());
    }
    batches.erase(1);
    return batches;
}

/// Makes queries for `count` random words, as NEAR does, with the k and the filters of `settings`.
/// Error: as make_query_vector.
Result<std::vector<kernels::Query>> make_queries(const format::Model& model, RandomWords& words,
                                                 std::size_t count,
                                                 const EnginesSettings& settings) {
    std::vector<kernels::Query> queries(count);
    for (kernels::Query& query : queries) {
        const kernels::WeightedRow term{1.0, words.next()};
        auto vector = kernels::make_query_vector(model, std::span(&term, 1), false);
        if (!vector) return vector.error();
        query.kind = kernels::Cosine{*std::move(vector)};
        query.k = settings.k;
        query.excluded = {term.row};
        while (query.excluded.size() < settings.exclude) query.excluded.push_back(words.next());
        if (settings.top > 0) query.filter.rank_below = static_cast<std::uint32_t>(settings.top);
        if (settings.range > 0) {
            const std::size_t rows = std::min(settings.range, model.rows());
            const std::size_t first = words.next() * (model.rows() - rows + 1) / model.rows();
            query.filter.rows = kernels::RowRange{first, first + rows};
        }
        if (settings.min_score) query.filter.min_score = *settings.min_score;
    }
    return queries;
}

/// Everything to time, in the order of the table: plain read and OpenBLAS, then each engine's
/// single query and batches.
class EngineBenchmark {
  public:
    EngineBenchmark(const format::Model& model, const EnginesSettings& settings)
        : model_(model),
          settings_(settings),
          pool_(settings.threads),
          words_(model, settings.seed),
          lists_(model.rows(), make_lists(model, settings)) {}
    // Contenders hold references to this object.
    EngineBenchmark(const EngineBenchmark&) = delete;
    EngineBenchmark& operator=(const EngineBenchmark&) = delete;

    void add_floor() {
        floor_ = contenders_.size();
        add({"read of all vectors (floor)", 0, {}, [this]() -> Status {
                 read_all(pool_, std::as_bytes(model_.vectors()));
                 return {};
             }});
    }

    void add_sgemv(const OpenBlas& blas) {
        sgemv_ = contenders_.size();
        dots_.resize(model_.rows());
        add({"OpenBLAS sgemv, no top-k", 1, {}, [this, &blas]() -> Status {
                 const float* query = model_.vector(words_.next()).data();
                 blas.sgemv(model_.vectors().data(), model_.rows(), model_.dim(), query,
                            dots_.data());
                 return {};
             }});
    }

    /// Scores a batch with OpenBLAS, one block of rows at a time, so that the scores stay in the
    /// cache.
    void add_sgemm(const OpenBlas& blas, std::size_t batch) {
        sgemm_.push_back(contenders_.size());
        if (dots_.size() < kBlockRows * batch) dots_.resize(kBlockRows * batch);
        add({fmt::format("OpenBLAS sgemm of {}, no top-k", batch), batch,
             [this, batch](std::size_t) {
                 matrix_.clear();
                 for (std::size_t i = 0; i < batch; ++i) {
                     const auto query = model_.vector(words_.next());
                     matrix_.insert(matrix_.end(), query.begin(), query.end());
                 }
             },
             [this, batch, &blas]() -> Status {
                 for (std::size_t row = 0; row < model_.rows(); row += kBlockRows) {
                     blas.sgemm(model_.vectors().data() + row * model_.dim(),
                                std::min(kBlockRows, model_.rows() - row), model_.dim(),
                                matrix_.data(), batch, dots_.data());
                 }
                 return {};
             }});
    }

    void add_ceiling(DeviceReader& reader) {
        ceiling_ = contenders_.size();
        add({"device reads all vectors (ceiling)",
             0,
             {},
             [this, &reader]() -> Status {
                 const auto ms = reader.read_ms();
                 if (!ms) return ms.error();
                 device_ms_ = *ms;
                 return {};
             },
             [this] { return device_ms_; }});
    }

    void add_engine(NamedEngine& named) {
        for (const std::size_t batch : named.batches) {
            const std::size_t index = contenders_.size();
            if (named.on_device && !named.on_several) on_one_device_[batch] = index;
            add_batch(named, batch, std::nullopt);
            for (std::size_t list = 0; list < settings_.within.size(); ++list) {
                without_list_[contenders_.size()] = index;
                add_batch(named, batch, list);
            }
        }
    }

    /// `list`: the place in EnginesSettings::within of the list in which to search; nullopt: in
    /// none.
    void add_batch(NamedEngine& named, std::size_t batch, std::optional<std::size_t> list) {
        const std::size_t index = contenders_.size();
        if (named.on_several) on_several_.insert(index);
        // Several devices answer a batch at the same time, each in a time of its own.
        const bool timed = named.on_device && (!named.on_several || batch == 1);
        add({fmt::format("{}: {}{}", named.label,
                         batch == 1 ? "one query" : fmt::format("batch of {}", batch),
                         list ? fmt::format(" within {}", settings_.within[*list]) : ""),
             batch,
             [this, batch, list, &named](std::size_t) { made_ = prepare(named, batch, list); },
             [this, &named]() -> Status {
                 if (!made_) return made_;
                 auto answers = named.engine->run(queries_);
                 if (!answers) return answers.error();
                 answers_ = *std::move(answers);
                 return {};
             },
             timed ? std::function<double()>([this] { return device_ms_; }) : nullptr,
             [this, index] {
                 device_ms_ = device_ms_of(answers_);
                 note(notes_[index], answers_);
             }},
            true);
    }

    Result<Table> run(std::size_t rounds) {
        const auto all = measure(contenders_, rounds, cli::stop_requested);
        if (!all) return all.error();
        const Peers peers = find_peers(*all);
        Table table(headings(peers));
        const Series* single = nullptr;
        for (std::size_t i = 0; i < all->size(); ++i) {
            const Series& series = (*all)[i];
            // Each engine's single query comes before its batches.
            if (!is_engine_[i]) single = nullptr;
            const auto without = without_list_.find(i);
            const bool has_list = without != without_list_.end();
            if (is_engine_[i] && series.queries == 1 && !has_list) single = &series;
            const bool several = on_several_.contains(i);
            const auto one = on_one_device_.find(series.queries);
            const bool has_peer = several && !has_list && one != on_one_device_.end();
            table.add(cells(series, notes_[i], single, has_peer ? &(*all)[one->second] : nullptr,
                            has_list ? &(*all)[without->second] : nullptr, peers));
        }
        return table;
    }

  private:
    /// Makes a batch, and lets an engine on a GPU answer one query more, so that its threads are as
    /// awake as in a row of batches.
    Status prepare(NamedEngine& named, std::size_t batch, std::optional<std::size_t> list) {
        answers_.clear();
        auto fresh = make_queries(model_, words_, batch + 1, settings_);
        if (!fresh) return fresh.error();
        queries_ = *std::move(fresh);
        for (kernels::Query& query : queries_) {
            if (!list) continue;
            query.filter.within = kernels::ListMask{1} << *list;
            query.filter.lists = &lists_;
        }
        if (named.on_device) {
            for (std::size_t i = 0; i < kWarmingQueries; ++i) {
                auto answer = named.engine->run(std::span(queries_).last(1));
                if (!answer) return answer.error();
            }
        }
        queries_.pop_back();
        return {};
    }

    void add(Contender contender, bool is_engine = false) {
        contenders_.push_back(std::move(contender));
        notes_.emplace_back();
        is_engine_.push_back(is_engine);
    }

    /// Facts from the certificates of a contender's answers.
    struct Notes {
        std::optional<kernels::Pass> pass;  // of the last answer
        std::vector<double> survivors;
        std::vector<double> shares;  // bytes read / bytes of all vectors
    };
    static bool is_by_codes(const std::optional<kernels::Pass>& pass) {
        return pass == kernels::Pass::plane || pass == kernels::Pass::int8;
    }
    void note(Notes& notes, std::span<const kernels::Answer> answers) const {
        notes.pass = answers.back().certificate.pass;
        for (const kernels::Answer& answer : answers) {
            notes.survivors.push_back(static_cast<double>(answer.certificate.survivors));
            notes.shares.push_back(static_cast<double>(answer.certificate.read_bytes) /
                                   static_cast<double>(model_.vectors().size_bytes()));
        }
    }

    /// The series to compare with; null if they were not measured.
    struct Peers {
        const Series* floor = nullptr;
        const Series* sgemv = nullptr;
        const Series* ceiling = nullptr;
        std::vector<const Series*> sgemm{};
        bool several = false;  // whether an engine ran on several devices
        bool lists = false;    // whether an engine searched within lists
        bool codes = false;    // whether an engine searched codes first

        const Series* sgemm_of(std::size_t batch) const {
            for (const Series* series : sgemm) {
                if (series->queries == batch) return series;
            }
            return nullptr;
        }
    };

    Peers find_peers(const std::vector<Series>& all) const {
        Peers peers;
        if (floor_) peers.floor = &all[*floor_];
        if (sgemv_) peers.sgemv = &all[*sgemv_];
        if (ceiling_) peers.ceiling = &all[*ceiling_];
        peers.several = !on_several_.empty();
        peers.lists = !without_list_.empty();
        for (const std::size_t index : sgemm_) peers.sgemm.push_back(&all[index]);
        peers.codes =
            std::ranges::any_of(notes_, [](const Notes& n) { return is_by_codes(n.pass); });
        return peers;
    }

    static std::vector<std::string> headings(const Peers& peers) {
        std::vector<std::string> headings = {"what", "ms median", "ms min", "ms p99"};
        const auto also = [&](bool there, std::initializer_list<const char*> names) {
            if (there) headings.insert(headings.end(), names.begin(), names.end());
        };
        also(peers.ceiling != nullptr, {"device ms", "device p99", "wall - device us"});
        also(true, {"GB/s"});
        also(peers.floor != nullptr, {"x floor"});
        also(peers.sgemv != nullptr, {"x sgemv"});
        also(!peers.sgemm.empty(), {"x sgemm"});
        also(peers.ceiling != nullptr, {"x ceiling"});
        also(peers.several, {"x one GPU"});
        also(peers.lists, {"x no list"});
        also(true, {"ms a query", "queries/s", "gain over single", "pass"});
        also(peers.codes, {"survivors", "p99", "% of bytes", "p99 %"});
        return headings;
    }

    /// The cells of a series. `single` is the single query of the same engine, if it is one;
    /// `one_device` is the same batch on one device, if the series is of several; `no_list` is the
    /// same batch without a list, if the series is within one.
    std::vector<std::string> cells(const Series& series, const Notes& notes, const Series* single,
                                   const Series* one_device, const Series* no_list,
                                   const Peers& peers) const {
        const bool on_device = !series.device_ms.empty();
        const double ms = series.median();
        const double device_ms = on_device ? bench::median(series.device_ms) : 0;
        const double read_ms = on_device ? device_ms : ms;
        const auto queries = static_cast<double>(series.queries);
        std::vector<std::string> cells = {series.what, figure(ms), figure(series.min()),
                                          figure(series.percentile(kTail))};
        const auto cell = [&](bool there, bool filled, const std::function<std::string()>& text) {
            if (there) cells.push_back(filled ? text() : "");
        };
        cell(peers.ceiling != nullptr, on_device, [&] { return figure(device_ms); });
        cell(peers.ceiling != nullptr, on_device,
             [&] { return figure(percentile(series.device_ms, kTail)); });
        cell(peers.ceiling != nullptr, on_device,
             [&] { return fmt::format("{:.0f}", series.median_wait_ms() * 1000); });
        cell(true, read_ms > 0, [&] {
            return fmt::format("{:.1f}",
                               static_cast<double>(model_.vectors().size_bytes()) / read_ms / 1e6);
        });
        cell(peers.floor != nullptr, !on_device, [&] { return ratio(ms, peers.floor); });
        cell(peers.sgemv != nullptr, !on_device, [&] { return ratio(ms, peers.sgemv); });
        cell(!peers.sgemm.empty(), !on_device && peers.sgemm_of(series.queries) != nullptr,
             [&] { return ratio(ms, peers.sgemm_of(series.queries)); });
        cell(peers.ceiling != nullptr, on_device, [&] {
            return fmt::format("{:.3f}", device_ms / bench::median(peers.ceiling->device_ms));
        });
        cell(peers.several, one_device != nullptr, [&] { return ratio(ms, one_device); });
        cell(peers.lists, no_list != nullptr, [&] { return ratio(ms, no_list); });
        cell(true, series.queries > 0, [&] { return fmt::format("{:.3f}", ms / queries); });
        cell(true, series.queries > 0, [&] { return fmt::format("{:.0f}", queries / ms * 1000); });
        cell(true, single != nullptr && single != &series,
             [&] { return ratio(single->median() * queries, &series); });
        cells.push_back(notes.pass ? std::string(to_string(*notes.pass)) : "");
        const bool by_codes = is_by_codes(notes.pass);
        cell(peers.codes, by_codes,
             [&] { return fmt::format("{:.0f}", bench::median(notes.survivors)); });
        cell(peers.codes, by_codes,
             [&] { return fmt::format("{:.0f}", percentile(notes.survivors, kTail)); });
        cell(peers.codes, by_codes,
             [&] { return fmt::format("{:.2f}", 100 * bench::median(notes.shares)); });
        cell(peers.codes, by_codes,
             [&] { return fmt::format("{:.2f}", 100 * percentile(notes.shares, kTail)); });
        return cells;
    }

    const format::Model& model_;
    const EnginesSettings& settings_;
    kernels::ThreadPool pool_;
    RandomWords words_;
    const kernels::RowLists lists_;  // of EnginesSettings::within
    std::vector<float> dots_;
    std::vector<float> matrix_;  // queries, side by side
    std::vector<kernels::Query> queries_;
    std::vector<kernels::Answer> answers_;  // of the last run
    Status made_;
    double device_ms_ = 0;  // of the last run
    std::vector<Contender> contenders_;
    std::vector<Notes> notes_;     // one per contender
    std::vector<bool> is_engine_;  // of each contender
    std::optional<std::size_t> floor_, sgemv_, ceiling_;
    std::vector<std::size_t> sgemm_;                    // indices of contenders
    std::map<std::size_t, std::size_t> on_one_device_;  // by batch, indices of contenders
    std::set<std::size_t> on_several_;                  // indices of contenders
    std::map<std::size_t, std::size_t> without_list_;   // of one within a list, the same without
};

}  // namespace

bool wants_processor(const EnginesSettings& settings) {
    const auto kinds = engine_kinds(settings);
    return !std::ranges::all_of(kinds, is_on_device);
}

Status print_engine_table(const format::Model& model, const EnginesSettings& settings,
                          const OpenBlas* blas) {
    const bool processor = wants_processor(settings);
    const bool device = wants_device(settings);
    auto engines = make_engines(model, settings);
    if (!engines) return engines.error();
    std::optional<DeviceReader> reader;
    if (device) {
        auto made = DeviceReader::create(model.vectors().size_bytes(), settings.device());
        if (!made) return made.error();
        reader.emplace(*std::move(made));
        print_note(settings.format, "ceiling  " + reader->description());
    }
    const std::size_t rounds = settings.repeat != 0 ? settings.repeat
                               : processor          ? kRoundsWithProcessor
                                                    : kRoundsOfDevice;
    print_note(settings.format,
               fmt::format("rounds   {}, k={}, other random words in each", rounds, settings.k));
    fmt::print("\n");
    std::fflush(stdout);

    EngineBenchmark benchmark(model, settings);
    if (processor) benchmark.add_floor();
    if (processor && blas != nullptr) {
        benchmark.add_sgemv(*blas);
        for (const std::size_t batch : batches_on_processor(*engines))
            benchmark.add_sgemm(*blas, batch);
    }
    if (reader) benchmark.add_ceiling(*reader);
    for (NamedEngine& named : *engines) benchmark.add_engine(named);
    const auto table = benchmark.run(rounds);
    if (!table) return table.error();
    table->print(stdout, settings.format);
    if (device) {
        print_note(settings.format,
                   "device: GB/s and x ceiling are the bytes of all vectors over the device's own "
                   "time; wall - device is the host's additional wait");
    }
    return {};
}

}  // namespace gloved::bench
