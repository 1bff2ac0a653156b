#include "daemon/compute.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <thread>

#include "common/wire/reply.hpp"
#include "daemon/resolve.hpp"

namespace gloved::daemon {
namespace {

/// Until the first query is measured: what a slow memory would take.
constexpr double kGuessBytesPerMs = 5e6;
/// Re-scoring and sorting one hit.
constexpr double kHitMs = 1e-3;
/// Looking a word up and adding its row.
constexpr double kWordMs = 2e-3;
/// What waiting requests may hold in all.
constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20;
/// Hits cost beside the pass; a pass that carried more than this share of them says little about passes.
constexpr double kTellingShare = 0.25;
constexpr int kDeliveryAttempts = 200;
constexpr std::chrono::milliseconds kDeliveryPause{10};
/// As many as one pass over memory takes.
constexpr std::size_t kMaxBatch = CostModel::kMaxVectors;

/// Made beforehand: when it is needed there is no memory to make it.
const Error kOutOfMemory{ErrorCode::unavailable, "out of memory; try a smaller k"};

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

}  // namespace

Compute::Compute(std::shared_ptr<const format::Model> model, std::unique_ptr<kernels::Engine> engine,
                 const Settings& settings)
    : model_(std::move(model)),
      engine_(std::move(engine)),
      settings_(settings),
      costs_(static_cast<double>(model_->vectors().size_bytes()) / kGuessBytesPerMs),
      queue_(settings.limits.queue_length, kMaxQueueBytes),
      thread_([this] { loop(); }) {}

void Compute::stop() {
    queue_.close();
    if (thread_.joinable()) thread_.join();
}

void Compute::loop() {
    Batch batch;
    batch.scans.reserve(kMaxBatch);  // so that adding a job cannot fail
    while (auto job = queue_.pop()) {
        batch.scans.clear();
        batch.vectors = 0;
        batch.other_ms = 0;
        while (job) {
            try {
                prepare(*job, batch);
            } catch (const std::bad_alloc&) {
                fail(*job, kOutOfMemory);
            }
            const bool full = batch.scans.size() >= kMaxBatch;
            if (full || costs_.predict_ms(batch.vectors) + batch.other_ms >= budget_ms()) break;
            job = queue_.try_pop();
        }
        if (batch.scans.empty()) continue;
        try {
            answer(batch);
        } catch (const std::bad_alloc&) {
            // A batch too large for the memory that is left. Answers already given stay given: their `done` is gone.
            for (Scan& scan : batch.scans) {
                if (scan.job.done) fail(scan.job, kOutOfMemory);
            }
        }
    }
}

void Compute::prepare(Job& job, Batch& batch) {
    if (job.abandoned->load(std::memory_order_relaxed)) return;
    if (Clock::now() - job.arrived > settings_.limits.request_timeout) {
        return fail(
            job, {ErrorCode::timeout, fmt::format("waited longer than {} ms for the engine; the daemon is overloaded",
                                                  settings_.limits.request_timeout.count())});
    }
    batch.other_ms += kWordMs * static_cast<double>(job.request.words.size() + job.request.terms.size());
    if (job.request.verb != wire::Verb::near) {
        auto reply = answer_directly(job.request, *model_);
        if (!reply) return fail(job, reply.error());
        ++counts_.queries;
        return deliver(job, [&] { return Reply(*reply); });
    }
    auto query = resolve_near(job.request, *model_);
    if (!query) return fail(job, query.error());
    batch.other_ms += kHitMs * static_cast<double>(std::min(query->k, model_->rows()));
    if (query->filter.rows) {
        batch.other_ms +=
            costs_.single_ms() * static_cast<double>(query->filter.rows->size()) / static_cast<double>(model_->rows());
    } else {
        batch.vectors += kernels::vectors_of(*query);
    }
    batch.scans.push_back({std::move(job), *std::move(query)});
}

void Compute::answer(Batch& batch) {
    std::vector<kernels::Query> queries;
    for (Scan& scan : batch.scans) queries.push_back(std::move(scan.query));
    const auto begun = Clock::now();
    auto answers = engine_->run(queries);
    const auto ended = Clock::now();
    // Passes of their own over some rows, and many hits, would teach a wrong price.
    const double ms = milliseconds(ended - begun);
    if (batch.vectors == queries.size() && batch.other_ms < kTellingShare * ms) costs_.learn(batch.vectors, ms);

    counts_.queries += queries.size();
    counts_.single_us = static_cast<std::uint64_t>(costs_.single_ms() * 1000);
    if (queries.size() > counts_.largest_batch) counts_.largest_batch = queries.size();
    ++counts_.batches;

    for (std::size_t i = 0; i < queries.size(); ++i) {
        Job& job = batch.scans[i].job;
        const wire::Options& options = job.request.options;
        kernels::Answer& found = answers[i];
        const auto us = std::chrono::duration_cast<std::chrono::microseconds>(ended - job.arrived).count();
        std::vector<wire::StatusField> fields = {{"engine", engine_->name()}, {"us", std::to_string(us)}};
        if (options.certify) {
            fields.emplace_back("scanned", std::to_string(found.certificate.scanned));
            fields.emplace_back("rescored", std::to_string(found.certificate.rescored));
            if (!found.hits.empty()) fields.emplace_back("kth", fmt::format("{:.17g}", found.hits.back().score));
            fields.emplace_back("rejected_below", fmt::format("{:.17g}", found.certificate.rejected_below));
        }
        Reply reply(fields, std::move(found.hits), options.fields, model_);
        deliver(job, [&] { return std::move(reply); });
    }
}

void Compute::fail(Job& job, const Error& error) {
    ++counts_.errors;
    deliver(job, [&] { return Reply(error); });
}

/// An answer that is not delivered leaves its connection waiting for ever, so where there is no memory even for that, it is
/// tried again for a while. A process that stays so short of memory is better ended, and started anew by its supervisor.
void Compute::deliver(Job& job, const std::function<Reply()>& make_reply) noexcept {
    std::optional<Reply> reply;
    for (int attempt = 0; attempt < kDeliveryAttempts; ++attempt) {
        try {
            if (!reply) reply = make_reply();
            job.done(*reply);
            job.done = nullptr;
            return;
        } catch (const std::bad_alloc&) {
            std::this_thread::sleep_for(kDeliveryPause);
        }
    }
    std::terminate();
}

}  // namespace gloved::daemon
