#include "daemon/stats_reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/process_memory.hpp"
#include "common/program_version.hpp"
#include "common/wire/reply.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/log.hpp"
#include "daemon/pin.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {
namespace {

using Fact = wire::StatusField;
using kernels::Pass;

constexpr std::array<std::pair<std::string_view, double>, 4> kPercentiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}}};

/// Memory of this process without the mapped models; 0 where the system does not report it.
std::uint64_t own_memory_bytes() {
    const auto memory = process_memory("/proc/self/status");
    return memory ? memory->own_bytes : 0;
}

/// Rounds a load time to microseconds.
double to_microsecond(double ms) { return std::round(ms * 1000) / 1000; }

std::array<Fact, 15> facts_of(const kernels::GpuFacts& gpu) {
    const std::string held = gpu.holds_vectors ? gpu.holds_plane ? "vectors and plane" : "vectors"
                             : gpu.holds_plane ? "plane"
                                               : "codes";
    const std::string spread = gpu.shards.size() == 1 ? "one" : gpu.replicas ? "queries" : "rows";
    std::string memory_of;  // of a GPU that holds two shards, two figures
    for (const auto& shard : gpu.shards) {
        memory_of +=
            fmt::format("{}{}:{}", memory_of.empty() ? "" : " ", shard.device, shard.memory_bytes);
    }
    return {{{"gpu_memory_bytes", gpu.memory_bytes},
             {"gpu_memory_of", memory_of},
             {"gpu_shards", std::uint64_t{gpu.shards.size()}},
             {"gpu_spread", spread},
             {"gpu_plane_pass_queries", gpu.plane_pass_queries},
             {"gpu_int8_pass_queries", gpu.int8_pass_queries},
             {"gpu_host_bytes", gpu.host_bytes},
             {"gpu_holds", held},
             {"upload_pinned", std::string(gpu.upload_pinned ? "yes" : "no")},
             {"load_driver_ms", to_microsecond(gpu.driver_ms)},
             {"load_context_ms", to_microsecond(gpu.context_ms)},
             {"load_pin_ms", to_microsecond(gpu.pin_ms)},
             {"load_upload_ms", to_microsecond(gpu.upload_ms)},
             {"load_plane_ms", to_microsecond(gpu.plane_ms)},
             {"load_prepare_ms", to_microsecond(gpu.prepare_ms)}}};
}

/// A number where there is a limit.
Fact memlock_fact() {
    const auto limit = memlock_limit();
    return limit ? Fact{"memlock_limit_bytes", *limit}
                 : Fact{"memlock_limit_bytes", describe(limit)};
}

void add_value(wire::LineWriter& line, wire::Form form, const Fact& fact) {
    const std::string& name = fact.key;
    if (const auto* count = std::get_if<std::uint64_t>(&fact.value)) {
        line.count(name, *count);
    } else if (const auto* number = std::get_if<double>(&fact.value)) {
        // Milliseconds, for people to read.
        if (form == wire::Form::text) {
            line.text(name, fmt::format("{:.3f}", *number));
        } else {
            line.score(name, *number);
        }
    } else {
        line.message(name, std::get<std::string>(fact.value));
    }
}

std::uint64_t seconds_of(Clock::duration duration) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

double seconds_in(std::chrono::milliseconds time) {
    return std::chrono::duration<double>(time).count();
}

/// Formats the numbers of batches of one query, of up to two, of up to four …: «1:20 2:5 4:3».
std::string sizes_of(const WorkerCounts& counts) {
    std::string text;
    for (std::size_t i = 0; i < kBatchSizes; ++i) {
        const std::uint64_t count = counts.batches_of[i];
        if (count != 0)
            text += fmt::format("{}{}:{}", text.empty() ? "" : " ", std::size_t{1} << i, count);
    }
    return text;
}

/// Writes metrics in the text exposition format of Prometheus, version 0.0.4.
class Exposition {
  public:
    /// Writes the head of a metric; its samples follow.
    void metric(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        fmt::format_to(std::back_inserter(text_), "# HELP gloved_{} {}\n# TYPE gloved_{} {}\n",
                       name, help, name, type);
    }
    /// Writes a sample. `labels`: the text between braces; names of models, engines and stages need
    /// no escapes.
    template <class Value>
    void sample(std::string_view labels, Value value, std::string_view suffix = {}) {
        fmt::format_to(std::back_inserter(text_), "gloved_{}{}{}{}{} {}\n", name_, suffix,
                       labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}", value);
    }
    template <class Value>
    void single(std::string_view name, std::string_view type, std::string_view help, Value value) {
        metric(name, type, help);
        sample({}, value);
    }
    const std::string& text() const { return text_; }

  private:
    std::string name_;
    std::string text_;
};

/// Calls `visit(worker, labels)` for every engine of every model.
template <class Visit>
void for_each_worker(const Models& models, const Visit& visit) {
    for (const auto& loaded : models) {
        for (const auto& worker : loaded->workers()) {
            visit(*worker, fmt::format("model=\"{}\",engine=\"{}\"", loaded->name(),
                                       worker->engine().name()));
        }
    }
}

void expose_models(Exposition& out, const Models& models) {
    out.metric("model_info", "gauge", "The models that are served, the default first.");
    for (const auto& loaded : models) {
        out.sample(fmt::format("model=\"{}\",generation=\"{}\",engine=\"{}\",pinned=\"{}\"",
                               loaded->name(), format::hex(loaded->model().generation()),
                               loaded->first_worker().engine().name(),
                               to_string(loaded->running()->pinned())),
                   1);
    }
    out.metric("model_rows", "gauge", "Words of a model.");
    for (const auto& loaded : models) {
        out.sample(fmt::format("model=\"{}\"", loaded->name()), loaded->model().rows());
    }
}

void expose_times(Exposition& out, const Statistics& statistics) {
    // From 16 µs to 33 s, by factors of two. These bounds are exact: buckets end at powers of two.
    constexpr unsigned kFirst = 4;
    constexpr unsigned kLast = 25;
    out.metric("request_seconds", "histogram", "Time of requests about a model, by stage.");
    for (const auto& [stage, times] : statistics.stages()) {
        for (unsigned power = kFirst; power <= kLast; ++power) {
            out.sample(fmt::format("stage=\"{}\",le=\"{}\"", stage,
                                   static_cast<double>(std::uint64_t{1} << power) / 1e6),
                       times.below_power(power), "_bucket");
        }
        out.sample(fmt::format("stage=\"{}\",le=\"+Inf\"", stage), times.count(), "_bucket");
        out.sample(fmt::format("stage=\"{}\"", stage), times.sum_us() / 1e6, "_sum");
        out.sample(fmt::format("stage=\"{}\"", stage), times.count(), "_count");
    }
}

void expose_workers(Exposition& out, const Models& models) {
    out.metric("batch_size", "histogram", "Queries that were scanned together.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        const WorkerCounts& counts = worker.counts();
        // Scans continue meanwhile: count what the buckets hold, so that the two agree.
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < kBatchSizes; ++i) {
            sum += counts.batches_of[i];
            out.sample(fmt::format("{},le=\"{}\"", labels, std::size_t{1} << i), sum, "_bucket");
        }
        out.sample(labels + ",le=\"+Inf\"", sum, "_bucket");
        out.sample(labels, counts.scanned.load(), "_sum");
        out.sample(labels, sum, "_count");
    });
    out.metric("answers_total", "counter", "Scanned queries by the pass that led to their answer.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        for (const Pass pass : kernels::kPasses) {
            out.sample(fmt::format("{},pass=\"{}\"", labels, to_string(pass)),
                       worker.counts().answers_by[static_cast<std::size_t>(pass)].load());
        }
    });
    out.metric("answers_neighbors_total", "counter", "Answers from the model's neighbors file.");
    for (const auto& loaded : models) {
        out.sample(fmt::format("model=\"{}\"", loaded->name()),
                   loaded->running()->stored_answers());
    }
    out.metric("plane_unselective_total", "counter",
               "Answers for which a plane left more than a tenth of the rows, or was given up.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        out.sample(labels, worker.counts().plane_unselective.load());
    });
    out.metric("fine_plane_bytes", "gauge", "Memory of the planes that were made for batches.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        out.sample(labels, std::uint64_t{worker.engine().fine_plane_bytes()});
    });
    out.metric("rank_cache_bytes", "gauge", "Memory of the orders that are kept for RANK.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        out.sample(labels, worker.counts().rank_cache_bytes.load());
    });
    out.metric("rank_cache_hits_total", "counter", "Ranks that were found in such an order.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        out.sample(labels, worker.counts().rank_cache_hits.load());
    });
    out.metric("queue_depth", "gauge", "Requests that wait for an engine.");
    for_each_worker(models, [&](const EngineWorker& worker, const std::string& labels) {
        out.sample(labels, worker.waiting());
    });
}

/// What STATS reports of one model.
std::vector<Fact> facts_of_model(const LoadedModel& loaded) {
    const format::Model& model = loaded.model();
    const RunningModel& running = *loaded.running();
    const EngineWorker& first = loaded.first_worker();
    std::string engines;
    std::uint64_t queries = 0;
    std::uint64_t batches = 0;
    std::uint64_t largest_batch = 0;
    std::array<std::uint64_t, kernels::kPasses.size()> answers_by{};
    std::uint64_t plane_unselective = 0;
    std::uint64_t fine_plane_bytes = 0;
    std::uint64_t rank_cache_bytes = 0;
    std::uint64_t rank_cache_hits = 0;
    for (const auto& worker : loaded.workers()) {
        engines += (engines.empty() ? "" : " ") + worker->engine().name();
        queries += worker->counts().queries + worker->counts().look_ups;
        batches += worker->counts().batches;
        largest_batch = std::max(largest_batch, worker->counts().largest_batch.load());
        for (std::size_t i = 0; i < answers_by.size(); ++i)
            answers_by[i] += worker->counts().answers_by[i];
        plane_unselective += worker->counts().plane_unselective;
        fine_plane_bytes += worker->engine().fine_plane_bytes();
        rank_cache_bytes += worker->counts().rank_cache_bytes;
        rank_cache_hits += worker->counts().rank_cache_hits;
    }
    std::vector<Fact> facts = {
        {"model", loaded.name()},
        {"rows", model.rows()},
        {"dim", model.dim()},
        {"generation", format::hex(model.generation())},
        {"engine", first.engine().name()},
        {"engine_description", first.engine().description()},
        {"engines", engines},
        {"pinned", std::string(to_string(running.pinned()))},
        {"load_keys_ms", model.load_keys_ms()},
        {"load_values_ms", model.load_values_ms()},
        {"word_index_bytes", model.index_bytes()},
        {"case_index_bytes", loaded.vocabulary().cases().size_bytes()},
        {"queries", queries},
        {"batches", batches},
        {"largest_batch", largest_batch},
        {"batch_sizes", sizes_of(first.counts())},
        {"single_query_us", first.counts().single_us.load()},
    };
    for (const Pass pass : kernels::kPasses) {
        facts.push_back({fmt::format("answers_{}", to_string(pass)),
                         answers_by[static_cast<std::size_t>(pass)]});
    }
    const format::Neighbors* const neighbors = running.neighbors();
    const WordLists& lists = loaded.vocabulary().lists();
    facts.push_back({"lists", lists.facts().size()});
    facts.push_back({"list_bytes", lists.size_bytes()});
    facts.push_back({"neighbors_k", neighbors == nullptr ? std::uint64_t{0} : neighbors->k()});
    facts.push_back({"answers_neighbors", running.stored_answers()});
    facts.push_back({"plane_unselective", plane_unselective});
    facts.push_back({"fine_plane_bytes", fine_plane_bytes});
    facts.push_back({"rank_cache_bytes", rank_cache_bytes});
    facts.push_back({"rank_cache_hits", rank_cache_hits});
    if (!running.missing_engines().empty())
        facts.push_back({"missing_engines", running.missing_engines()});
    if (const auto gpu = first.engine().gpu_facts()) {
        const auto of_gpu = facts_of(*gpu);
        facts.insert(facts.end(), of_gpu.begin(), of_gpu.end());
    }
    return facts;
}

/// What STATS reports of the daemon: counters and limits.
std::vector<Fact> facts_of_daemon(const ServerState& state) {
    const Limits& limits = state.settings.limits;
    const ConnectionCounts& connections = state.statistics.connections();
    return {
        {"answered", state.statistics.answered()},
        {"errors", state.statistics.refused()},
        {"queue_depth", state.models.waiting()},
        {"queue_length", limits.queue_length},
        {"connections", state.open_connections},
        {"connections_total", connections.admitted},
        {"refused_connections", connections.refused},
        {"refused_uid_share", connections.refused_uid_share},
        {"cut_line_timeout", connections.count_of(CloseReason::slow_line)},
        {"cut_idle_timeout", connections.count_of(CloseReason::idle)},
        {"cut_write_timeout", connections.count_of(CloseReason::unread)},
        {"max_connections", state.max_connections},
        {"io_threads", std::uint64_t{state.settings.io_threads}},
        {"uid_share", limits.uid_share},
        {"max_k", limits.max_k},
        {"max_line_bytes", wire::kMaxLineBytes},
        {"max_unread_bytes", kMaxHeldBytes},
        {"request_timeout_s", seconds_in(limits.request_timeout)},
        {"line_timeout_s", seconds_in(limits.line_timeout)},
        {"idle_timeout_s", seconds_in(limits.idle_timeout)},
        {"write_timeout_s", seconds_in(limits.write_timeout)},
        {"drain_timeout_s", seconds_in(limits.drain_timeout)},
        memlock_fact(),
        {"own_memory_bytes", own_memory_bytes()},
        {"retired_models", state.models.retired()},
        {"reloads", state.models.reloads()},
        {"failed_reloads", state.models.failed_reloads()},
        {"suggested", state.suggester.searches()},
        {"not_suggested", state.suggester.omitted()},
        {"log_lines_lost", lost_log_lines()},
    };
}

}  // namespace

Reply stats_reply(wire::Form form, const ServerState& state, const LoadedModel& loaded) {
    const std::string degraded_reason = state.models.degraded_reason();
    std::vector<Fact> facts = {
        {"health", std::string(degraded_reason.empty() ? "serving" : "degraded")}};
    if (!degraded_reason.empty()) facts.push_back({"health_reason", degraded_reason});
    facts.push_back({"version", std::string(kProgramVersion)});
    facts.push_back({"uptime_s", seconds_of(Clock::now() - state.started)});
    facts.push_back({"models", state.models.all().size()});
    for (Fact& fact : facts_of_model(loaded)) facts.push_back(std::move(fact));
    for (Fact& fact : facts_of_daemon(state)) facts.push_back(std::move(fact));
    for (const auto& [stage, times] : state.statistics.stages()) {
        for (const auto& [name, share] : kPercentiles) {
            facts.push_back({fmt::format("{}_{}_us", stage, name), times.percentile_us(share)});
        }
    }
    state.statistics.for_each_count(
        [&](const std::string& verb, const std::string& outcome, std::uint64_t count) {
            facts.push_back({fmt::format("requests_{}_{}", verb, outcome), count});
        });

    Lines lines{facts.size(), {}, nullptr};
    wire::LineWriter line(lines.text, form, true);
    if (form == wire::Form::json) line.begin();
    for (const Fact& fact : facts) {
        if (form == wire::Form::text) {
            line.begin();
            line.text("key", fact.key);
        }
        add_value(line, form, fact);
        if (form == wire::Form::text) line.end();
    }
    if (form == wire::Form::json) line.end();
    return {form, wire::Verb::stats, {}, std::move(lines)};
}

Reply metrics_reply(wire::Form form, const ServerState& state) {
    const ConnectionCounts& connections = state.statistics.connections();
    Exposition out;
    out.metric("build_info", "gauge", "The program's version.");
    out.sample(fmt::format("version=\"{}\"", kProgramVersion), 1);
    out.single("uptime_seconds", "gauge", "Since the start.",
               seconds_of(Clock::now() - state.started));
    out.single("degraded", "gauge",
               "1 when something is wrong though requests are answered: STATS has health_reason.",
               state.models.degraded_reason().empty() ? 0 : 1);
    expose_models(out, state.models.all());
    out.metric("requests_total", "counter",
               "Requests by model, if they ask one, verb and outcome; verb none: an ERR line that "
               "answers no request.");
    const auto& models = state.settings.models;
    state.statistics.for_each_series([&](std::size_t place, const std::string& verb,
                                         const std::string& outcome, std::uint64_t count) {
        const std::string model =
            place < models.size() ? fmt::format("model=\"{}\",", models[place].name) : "";
        out.sample(fmt::format("{}verb=\"{}\",outcome=\"{}\"", model, verb, outcome), count);
    });
    expose_times(out, state.statistics);
    expose_workers(out, state.models.all());
    out.single("queue_length", "gauge", "How many may wait for an engine.",
               state.settings.limits.queue_length);
    out.single("connections", "gauge", "Open connections.", state.open_connections);
    // Not «connections_total»: OpenMetrics would take it for the same family.
    out.single("accepted_connections_total", "counter", "Connections since the start.",
               std::uint64_t{connections.admitted});
    out.single("max_connections", "gauge", "How many may be open.", state.max_connections);
    out.metric("refused_connections_total", "counter",
               "Connections that were one too many, for all or for their user.");
    out.sample("limit=\"max_connections\"", connections.refused - connections.refused_uid_share);
    out.sample("limit=\"uid_share\"", std::uint64_t{connections.refused_uid_share});
    out.metric("cut_connections_total", "counter",
               "Connections ended because their peer was too slow.");
    out.sample("limit=\"line_timeout\"", connections.count_of(CloseReason::slow_line));
    out.sample("limit=\"idle_timeout\"", connections.count_of(CloseReason::idle));
    out.sample("limit=\"write_timeout\"", connections.count_of(CloseReason::unread));
    out.single("own_memory_bytes", "gauge", "Memory beside the mapped models.", own_memory_bytes());
    out.metric("gpu_memory_bytes", "gauge", "Device memory that a model's engine holds.");
    for (const auto& loaded : state.models.all()) {
        const auto gpu = loaded->first_worker().engine().gpu_facts();
        if (!gpu) continue;
        // A GPU that holds two shards is one sample.
        std::map<int, std::size_t> bytes_of;
        for (const auto& shard : gpu->shards) bytes_of[shard.device] += shard.memory_bytes;
        for (const auto& [device, bytes] : bytes_of) {
            out.sample(fmt::format("model=\"{}\",device=\"{}\"", loaded->name(), device), bytes);
        }
    }
    out.metric("reloads_total", "counter", "Models loaded anew.");
    out.sample("outcome=\"done\"", state.models.reloads());
    out.sample("outcome=\"failed\"", state.models.failed_reloads());
    out.metric("suggestions_total", "counter",
               "Unknown words, with near spellings looked for or not.");
    out.sample("outcome=\"looked_for\"", state.suggester.searches());
    out.sample("outcome=\"left_out\"", state.suggester.omitted());
    out.single("log_lines_lost_total", "counter", "Lines of the log that nobody read in time.",
               lost_log_lines());
    return Reply(wire::lines_reply(form, wire::Verb::stats, out.text()));
}

}  // namespace gloved::daemon
