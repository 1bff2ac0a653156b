#include "daemon/engine_worker.hpp"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <utility>
#include <variant>

#include "common/error_with.hpp"
#include "common/expr/expression.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "daemon/log.hpp"
#include "daemon/resolve.hpp"
#include "daemon/text_source.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::daemon {
namespace {

using kernels::Pass;

/// Guess for the first query: a slow memory.
constexpr double kGuessBytesPerMs = 5e6;
/// Cost of re-scoring and sorting one hit beyond kFreeHits, which every pass includes.
constexpr double kHitMs = 1e-3;
constexpr std::size_t kFreeHits = 100;
/// Fixed cost of a separate pass over some rows.
constexpr double kRangeMs = 0.03;
/// Cost of looking a word up and adding its row.
constexpr double kWordMs = 2e-3;
/// Memory that all waiting requests may hold.
constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20;
/// The cost model learns only from batches where hits take a smaller share of the time.
constexpr double kMaxHitsShare = 0.25;
/// A plane that leaves more than one row in ten is counted as unselective.
constexpr std::uint64_t kUnselectiveDivisor = 10;
/// As many vectors as one pass takes.
constexpr std::size_t kMaxBatch = CostModel::kMaxVectors;
static_assert(kMaxBatch == std::size_t{1} << (kBatchSizes - 1));

/// How long the worker polls for the next request before it sleeps.
constexpr std::chrono::microseconds kSpin{200};
/// Two threads poll; others need processors too.
constexpr unsigned kMinProcessorsToSpin = 4;

/// The queue's source of probes; connections count from 1.
constexpr std::uint64_t kProbeSource = 0;

double milliseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

EngineWorker::EngineWorker(std::string name, std::shared_ptr<const format::Model> model,
                           std::unique_ptr<kernels::Engine> engine, const Settings& settings)
    : name_(std::move(name)),
      model_(std::move(model)),
      known_(model_),
      engine_(std::move(engine)),
      settings_(settings),
      should_spin_(engine_->kind() == kernels::EngineKind::cuda &&
                   kernels::usable_processors() >= kMinProcessorsToSpin),
      costs_(static_cast<double>(model_->vectors().size_bytes()) / kGuessBytesPerMs),
      queue_(settings.limits.queue_length, kMaxQueueBytes) {
    thread_ = std::thread([this] { loop(); });
}

void EngineWorker::stop() {
    queue_.close();
    if (thread_.joinable()) thread_.join();
}

void EngineWorker::loop() {
    while (auto job = queue_.pop(should_spin_ ? kSpin : std::chrono::microseconds{})) {
        Batch batch;
        const auto begun = Clock::now();
        while (job) {
            prepare(*job, batch);
            const bool full = batch.scans.size() >= kMaxBatch;
            // The clock counts too: prepare answers pieces of matrices and long lists of words,
            // and queries should not wait for all of those.
            const bool late = milliseconds(Clock::now() - begun) >= budget_ms();
            if (full || late ||
                costs_.predict_ms(batch.vectors + 1) + batch.other_ms + batch.hits_ms > budget_ms())
                break;
            job = queue_.try_pop();
        }
        if (!batch.scans.empty()) run_engine(batch);
    }
}

void EngineWorker::prepare(Job& job, Batch& batch) {
    job.times.taken = Clock::now();
    if (job.abandoned->load(std::memory_order_relaxed)) return deliver(job, Reply());
    if (const auto fault = this->fault()) return fail(job, *fault);
    if (job.is_continuation) {
        job.begun.make_costly_piece();
        return deliver(job, std::move(job.begun));
    }
    if (job.is_probe) {
        auto query = known_.query(false);
        if (!query) return deliver(job, Reply());
        batch.other_ms += kRangeMs;
        batch.scans.push_back({std::move(job), *std::move(query)});
        return;
    }
    if (job.times.taken - job.times.arrived > settings_.limits.request_timeout) {
        return fail(
            job, {ErrorCode::timeout,
                  fmt::format("waited longer than {} ms for the engine; the daemon is overloaded",
                              settings_.limits.request_timeout.count())});
    }
    if (!job.line.empty()) {
        auto parsed = wire::parse_request(std::exchange(job.line, {}));
        assert(parsed);  // the session has parsed it before
        job.request = *std::move(parsed);
    }
    batch.other_ms +=
        kWordMs * static_cast<double>(job.request.words.size() + job.request.terms.size());
    if (!needs_engine(job.request.verb)) return answer_without_engine(job);
    auto query = resolve_query(job.request, *model_);
    if (!query) return fail(job, query.error());
    // The query has its own copy: free this one.
    std::vector<expr::Term>().swap(job.request.terms);
    std::vector<std::string>().swap(job.request.words);
    std::vector<float>().swap(job.request.values);
    const bool is_count = std::holds_alternative<kernels::CountBefore>(query->kind);
    const std::size_t hits = is_count ? 0 : std::min(query->k, model_->rows());
    if (hits > kFreeHits) batch.hits_ms += kHitMs * static_cast<double>(hits - kFreeHits);
    if (query->filter.rows) {
        batch.other_ms += kRangeMs + costs_.single_ms() *
                                         static_cast<double>(query->filter.rows->size()) /
                                         static_cast<double>(model_->rows());
    } else {
        batch.vectors += kernels::vectors_of(*query);
    }
    batch.scans.push_back({std::move(job), *std::move(query)});
}

void EngineWorker::run_engine(Batch& batch) {
    std::vector<kernels::Query> queries;
    for (Scan& scan : batch.scans) queries.push_back(std::move(scan.query));
    const auto begun = Clock::now();
    auto ran = engine_->run(queries);
    const auto ended = Clock::now();
    if (!ran)
        stop_answering(
            {ran.error().code, fmt::format("engine {}: {}", engine_->name(), ran.error().message)});
    if (const auto fault = this->fault()) {
        for (Scan& scan : batch.scans) fail(scan.job, *fault);
        return;
    }
    std::vector<kernels::Answer>& answers = *ran;
    // Separate passes over some rows, many hits and float64 passes would teach a wrong price.
    const double ms = milliseconds(ended - begun);
    const bool usual = std::ranges::all_of(answers, [](const kernels::Answer& answer) {
        return answer.certificate.pass != Pass::float64;
    });
    if (usual && batch.vectors == queries.size() && batch.hits_ms < kMaxHitsShare * ms)
        costs_.learn(batch.vectors, ms);

    const auto asked = static_cast<std::size_t>(
        std::ranges::count_if(batch.scans, [](const Scan& scan) { return !scan.job.is_probe; }));
    counts_.single_us = static_cast<std::uint64_t>(costs_.single_ms() * 1000);
    if (asked > 0) {
        counts_.queries += asked;
        counts_.scanned += asked;
        if (asked > counts_.largest_batch) counts_.largest_batch = asked;
        ++counts_.batches;
        ++counts_.batches_of[static_cast<std::size_t>(std::bit_width(asked - 1))];
    }

    for (std::size_t i = 0; i < queries.size(); ++i) {
        Job& job = batch.scans[i].job;
        const wire::Options& options = job.request.options;
        kernels::Answer& found = answers[i];
        if (job.is_probe) {
            const Status right = known_.check(*engine_, found);
            // A file that was cut short makes a sound engine answer wrongly.
            if (files_are_unchanged() && !right) stop_answering(right.error());
            deliver(job, Reply());
            continue;
        }
        count_pass(found.certificate);
        std::vector<wire::StatusField> fields = status_fields(job, true);
        if (options.certify) append_certificate(fields, found);
        const std::size_t hits = found.hits.size();
        Lines lines = job.request.verb == wire::Verb::rank
                          ? rank_line(job.form, found.count + 1)
                          : Lines{hits,
                                  {},
                                  std::make_unique<HitLines>(job.form, std::move(found.hits),
                                                             options.fields, model_)};
        deliver(job, Reply(job.form, job.request.verb, fields, std::move(lines)));
    }
}

void EngineWorker::count_pass(const kernels::Certificate& certificate) {
    ++counts_.answers_by[static_cast<std::size_t>(certificate.pass)];
    const bool wide = (certificate.pass == Pass::plane || certificate.pass == Pass::int8) &&
                      certificate.survivors > certificate.scanned / kUnselectiveDivisor;
    if (wide || certificate.plane_overflowed) ++counts_.plane_unselective;
}

std::vector<wire::StatusField> EngineWorker::status_fields(const Job& job, bool by_engine) const {
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - job.times.arrived)
            .count();
    std::vector<wire::StatusField> fields;
    if (by_engine) fields.push_back({"engine", engine_->name()});
    fields.push_back({"us", static_cast<std::uint64_t>(us)});
    for (auto& field : model_fields(name_, *model_)) fields.push_back(std::move(field));
    return fields;
}

/// Nothing that a faulty device returns can be trusted, so the process answers no more and ends.
/// The report comes first: sessions must not write answers that they have already.
void EngineWorker::stop_answering(const Error& error) {
    log_critical("model {}: {}; exiting without further answers", name_, error.message);
    refuse_all(error);
    if (on_fault_) on_fault_(error);
}

void EngineWorker::refuse_all(const Error& error) {
    const std::lock_guard lock(fault_mutex_);
    if (!fault_)
        fault_ = error_with(ErrorCode::unavailable, "out of service ({}); the daemon stops",
                            error.message);
    has_fault_ = true;
}

std::optional<Error> EngineWorker::fault() const {
    if (!has_fault_) return std::nullopt;
    const std::lock_guard lock(fault_mutex_);
    return fault_;
}

bool EngineWorker::files_are_unchanged() {
    const auto unchanged = model_->verify_sizes();
    if (unchanged) return true;
    if (!has_fault_) stop_answering(unchanged.error());
    return false;
}

bool EngineWorker::probe(std::function<void(bool)> done) {
    Job job;
    job.is_probe = true;
    job.times.arrived = Clock::now();
    job.abandoned = std::make_shared<std::atomic<bool>>(false);
    job.done = [this, done = std::move(done)](const Reply& reply, const Times&) {
        done(!has_fault_ && !reply.error());
    };
    return queue_.push(kProbeSource, std::move(job), 0, true, true);
}

void EngineWorker::answer_without_engine(Job& job) {
    auto lines = daemon::answer_without_engine(job.request, model_, job.form);
    if (!lines) return fail(job, lines.error());
    Reply reply(job.form, job.request.verb, status_fields(job, false), *std::move(lines));
    // Of a costly answer only the first piece: other requests get their turn before the next.
    if (reply.is_costly()) reply.make_costly_piece();
    ++counts_.queries;
    deliver(job, std::move(reply));
}

void EngineWorker::fail(Job& job, const Error& error) {
    // In the middle of an answer an ERR line would look like one of its lines.
    deliver(job, job.is_continuation ? Reply::broken() : Reply(job.form, error));
}

void EngineWorker::deliver(Job& job, Reply reply) {
    job.times.computed = Clock::now();
    job.done(std::move(reply), job.times);
    job.done = nullptr;  // releases the model now, not at the end of the batch
}

}  // namespace gloved::daemon
