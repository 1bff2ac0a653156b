#include "daemon/compute.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <new>

#include "common/quoting.hpp"
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
/// As many as one pass over memory takes.
constexpr std::size_t kMaxBatch = 256;

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

}  // namespace

Compute::Compute(std::shared_ptr<const format::Model> model, std::unique_ptr<kernels::Engine> engine,
                 const Settings& settings)
    : model_(std::move(model)),
      engine_(std::move(engine)),
      settings_(settings),
      costs_(static_cast<double>(model_->vectors().size_bytes()) / kGuessBytesPerMs),
      queue_(settings.limits.queue_length),
      thread_([this] { loop(); }) {}

Compute::~Compute() {
    queue_.close();
    thread_.join();
}

void Compute::loop() {
    std::vector<Scan> batch;
    while (auto job = queue_.pop()) {
        double cost = 0;
        while (job) {
            cost += prepare(*std::move(job), batch);
            if (cost >= budget_ms() || batch.size() >= kMaxBatch) break;
            job = queue_.try_pop();
        }
        if (batch.empty()) continue;
        try {
            answer(batch);
        } catch (const std::bad_alloc&) {
            // A batch too large for the memory that is left. Answers already given stay given: `done` takes the job's
            // place.
            spdlog::error("out of memory while answering {} queries", batch.size());
            for (const Scan& scan : batch) {
                if (scan.job.done) fail(scan.job, {ErrorCode::unavailable, "out of memory; try a smaller k"});
            }
        }
        batch.clear();
    }
}

double Compute::prepare(Job job, std::vector<Scan>& batch) {
    if (job.abandoned->load(std::memory_order_relaxed)) return 0;
    if (Clock::now() - job.arrived > settings_.limits.request_timeout) {
        fail(job, {ErrorCode::timeout, fmt::format("waited longer than {} ms for the engine; the daemon is overloaded",
                                                   settings_.limits.request_timeout.count())});
        return 0;
    }
    if (job.request.verb != wire::Verb::near) {
        const double cost = kWordMs * static_cast<double>(job.request.words.size());
        auto reply = answer_directly(job.request, *model_);
        if (!reply) {
            fail(job, reply.error());
        } else {
            ++counts_.queries;
            job.done(Reply(*std::move(reply)));
        }
        return cost;
    }
    auto query = resolve_near(job.request, *model_);
    const double resolving = kWordMs * static_cast<double>(job.request.terms.size());
    if (!query) {
        fail(job, query.error());
        return resolving;
    }
    const double cost = resolving + predicted_ms(*query, batch.empty());
    batch.push_back({std::move(job), *std::move(query)});
    return cost;
}

double Compute::predicted_ms(const kernels::Query& query, bool first) const {
    const double hits = kHitMs * static_cast<double>(std::min(query.k, model_->rows()));
    if (query.filter.rows) {
        return hits + costs_.single_ms() * static_cast<double>(query.filter.rows->size()) /
                          static_cast<double>(model_->rows());
    }
    return hits + (first ? costs_.single_ms() : costs_.further_ms());
}

void Compute::answer(std::vector<Scan>& batch) {
    std::vector<kernels::Query> queries;
    std::size_t whole_model = 0;
    for (Scan& scan : batch) {
        if (!scan.query.filter.rows) whole_model += kernels::vectors_of(scan.query);
        queries.push_back(std::move(scan.query));
    }
    const auto begun = Clock::now();
    auto answers = engine_->run(queries);
    const auto ended = Clock::now();
    // Batches with passes of their own over some rows would teach a wrong price.
    if (whole_model == queries.size()) costs_.learn(whole_model, milliseconds(ended - begun));

    counts_.queries += batch.size();
    ++counts_.batches;
    counts_.single_us = static_cast<std::uint64_t>(costs_.single_ms() * 1000);
    if (batch.size() > counts_.largest_batch) counts_.largest_batch = batch.size();

    for (std::size_t i = 0; i < batch.size(); ++i) {
        const auto done = std::move(batch[i].job.done);
        batch[i].job.done = nullptr;
        const wire::Options& options = batch[i].job.request.options;
        kernels::Answer& found = answers[i];
        const auto us = std::chrono::duration_cast<std::chrono::microseconds>(ended - batch[i].job.arrived).count();
        std::vector<wire::StatusField> fields = {{"engine", engine_->name()}, {"us", std::to_string(us)}};
        if (options.certify) {
            fields.emplace_back("scanned", std::to_string(found.certificate.scanned));
            fields.emplace_back("rescored", std::to_string(found.certificate.rescored));
            if (!found.hits.empty()) fields.emplace_back("kth", fmt::format("{:.17g}", found.hits.back().score));
            fields.emplace_back("rejected_below", fmt::format("{:.17g}", found.certificate.rejected_below));
        }
        std::string status = wire::ok_line(found.hits.size(), fields);
        done(Reply(std::move(status), std::move(found.hits), options.fields, model_));
    }
}

void Compute::fail(const Job& job, const Error& error) {
    ++counts_.errors;
    job.done(Reply(error));
}

}  // namespace gloved::daemon
