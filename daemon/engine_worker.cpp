#include "daemon/engine_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <variant>

#include "common/error_with.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "daemon/log.hpp"
#include "daemon/resolve.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/row_pairs.hpp"
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
/// Memory that all waiting requests may hold.
constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20;
/// The cost model learns only from batches where hits take a smaller share of the time.
constexpr double kMaxHitsShare = 0.25;
/// It learns nothing from a batch if the thread's other work took a larger share of its time.
constexpr double kMaxOverlapShare = 0.7;
/// A plane that leaves more than one row in ten is counted as unselective.
constexpr std::uint64_t kUnselectiveDivisor = 10;
/// As many vectors as the largest pass takes.
constexpr std::size_t kMaxBatch = CostModel::kMaxVectors;
static_assert(kMaxBatch == std::size_t{1} << (kBatchSizes - 1));

/// How long the worker polls for the next request before it sleeps.
constexpr std::chrono::microseconds kSpin{200};
/// Two threads poll; others need processors too.
constexpr unsigned kMinProcessorsToSpin = 4;

/// Answers wait for the start of the next batch only if that has this many queries.
constexpr std::size_t kMinOverlap = 32;
/// How long the worker sleeps at a time while it waits for jobs for a moment.
constexpr std::chrono::microseconds kNap{20};

/// With the request for so many ranks in one order of few rows, the rows are put in order. Of more
/// rows that takes as long as a count of many ranks takes on processors. A GPU counts sooner.
constexpr unsigned kRanksOfFewRows = 2;
constexpr unsigned kRanksOfManyRows = 32;
/// A GPU puts so many rows in order itself. Of more, the host gets all scores and selects.
constexpr std::size_t kFewRowsOfGpu = 1024;
/// The clock is read after so many jobs that were answered at once.
constexpr std::size_t kJobsBetweenTimes = 64;

/// The queue's source of probes; connections count from 1.
constexpr std::uint64_t kProbeSource = 0;

/// Whether it is usual for an engine to answer a question for near words by the scores of all rows.
/// The cpu engine does so for many hits, a GPU without codes for any number.
bool answers_by_scores(const kernels::Engine& engine) {
    const auto facts = engine.gpu_facts();
    return !facts || (!facts->holds_plane && facts->int8_pass_queries == 0);
}

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
      scores_are_usual_(answers_by_scores(*engine_)),
      should_spin_(engine_->kind() == kernels::EngineKind::cuda &&
                   kernels::usable_processors() >= kMinProcessorsToSpin),
      arrivals_(std::make_unique<Arrivals>(settings.io_threads + 1)),
      costs_(static_cast<double>(model_->vectors().size_bytes()) / kGuessBytesPerMs),
      ranks_(settings.rank_cache_bytes) {
    thread_ = std::thread([this] { loop(); });
}

void EngineWorker::stop() {
    for (Inbox& inbox : arrivals_->inboxes) {
        const std::lock_guard lock(inbox.mutex);
        inbox.closed = true;
    }
    arrivals_->stopped = true;
    ++arrivals_->count;
    arrivals_->count.notify_one();
    if (thread_.joinable()) thread_.join();
}

bool EngineWorker::submit(std::shared_ptr<Job> job, std::size_t loop, bool may_refuse) {
    const std::size_t bytes = job->queued_bytes;
    if (may_refuse && (arrivals_->jobs >= settings_.limits.queue_length ||
                       arrivals_->bytes + bytes > kMaxQueueBytes))
        return false;
    // Counted first: the worker may take the job before this function returns.
    ++arrivals_->jobs;
    arrivals_->bytes += bytes;
    {
        Inbox& inbox = arrivals_->inboxes[loop];
        const std::lock_guard lock(inbox.mutex);
        if (inbox.closed) {
            --arrivals_->jobs;
            arrivals_->bytes -= bytes;
            return false;
        }
        inbox.jobs.push_back(std::move(job));
    }
    ++arrivals_->count;
    arrivals_->count.notify_one();
    return true;
}

bool EngineWorker::probe(std::function<void(bool)> done) {
    auto job = std::make_shared<Job>();
    job->kind = Job::Kind::probe;
    job->connection = kProbeSource;
    job->times.arrived = Clock::now();
    job->probed = std::move(done);
    return submit(std::move(job), arrivals_->inboxes.size() - 1, false);
}

void EngineWorker::loop() {
    Batch batch;
    while (!batch.jobs.empty() || wait_for_jobs()) {
        fill(batch);
        if (batch.jobs.empty()) continue;
        gather(batch);
        batch = run_engine(std::move(batch));
        // While the device works on the next batch, there is time.
        if (batch.jobs.size() < kMinOverlap || will_gather(batch)) finish_computed(&batch);
    }
}

double EngineWorker::gain_ms(const Batch& batch, std::size_t vectors) const {
    if (vectors <= batch.vectors) return 0;
    return costs_.predict_ms(batch.vectors) + costs_.predict_ms(vectors - batch.vectors) -
           costs_.predict_ms(vectors);
}

bool EngineWorker::will_gather(const Batch& next) const {
    const std::size_t vectors = next.vectors + computed_.batch.vectors;
    return gathering_.is_due() && gain_ms(next, vectors) > 0 &&
           costs_.predict_ms(vectors) <= budget_ms(next);
}

void EngineWorker::gather(Batch& batch) {
    const std::size_t expected = gathering_.expected();
    const auto all_came = [&] { return batch.jobs.size() >= expected; };
    if (all_came() || queue_.size() > 0 || is_full(batch) || !computed_.batch.jobs.empty()) return;
    auto now = Clock::now();
    const auto until = gathering_.until(gain_ms(batch, expected), now);
    if (!until) return;
    while (!all_came() && !is_full(batch) && now < *until) {
        const std::uint32_t seen = arrivals_->count;
        fill(batch);
        now = Clock::now();
        while (!all_came() && arrivals_->count == seen && now < *until) {
            if (should_spin_) {
                kernels::pause_processor();
            } else {
                std::this_thread::sleep_for(kNap);
            }
            now = Clock::now();
        }
    }
    gathering_.end(all_came(), now);
}

bool EngineWorker::wait_for_jobs() {
    auto spin_until = Clock::time_point::min();
    if (should_spin_) spin_until = Clock::now() + kSpin;
    while (true) {
        const std::uint32_t seen = arrivals_->count;
        const bool is_last_time = arrivals_->stopped;  // read first: now the inboxes are closed
        empty_inboxes();
        if (queue_.size() > 0) return true;
        if (is_last_time) return false;
        drop_forgotten();
        while (arrivals_->count == seen && Clock::now() < spin_until) kernels::pause_processor();
        arrivals_->count.wait(seen);
    }
}

void EngineWorker::empty_inboxes() {
    for (Inbox& inbox : arrivals_->inboxes) {
        {
            const std::lock_guard lock(inbox.mutex);
            taken_.swap(inbox.jobs);
        }
        for (JobPointer& job : taken_) {
            const std::uint64_t source = job->connection;
            const bool is_urgent = job->kind == Job::Kind::probe;
            queue_.push(source, std::move(job), is_urgent);
        }
        taken_.clear();
    }
}

void EngineWorker::fill(Batch& batch) {
    const auto begun = Clock::now();
    auto now = begun;
    empty_inboxes();
    std::size_t jobs = 0;
    std::size_t bytes = 0;
    batch.is_mixed = batch.is_mixed || queue_.is_mixed();
    while (!is_full(batch) && milliseconds(now - begun) < budget_ms(batch)) {
        auto job = queue_.pop();
        if (!job) break;
        ++jobs;
        bytes += (*job)->queued_bytes;
        const bool is_query = (*job)->kind == Job::Kind::query;
        prepare(*std::move(job), now, batch);
        // The clock counts too: prepare answers pieces of matrices, long lists of words, and ranks
        // that it finds in an order, and queries should not wait for all of those.
        if (!is_query || answered_.size() >= kJobsBetweenTimes) {
            hand_over();
            now = Clock::now();
        }
        if (queue_.size() == 0) empty_inboxes();
    }
    // Loops write these too: once for all jobs.
    arrivals_->jobs -= jobs;
    arrivals_->bytes -= bytes;
    hand_over();
}

bool EngineWorker::is_full(const Batch& batch) const {
    if (batch.jobs.empty()) return false;
    return batch.jobs.size() >= kMaxBatch ||
           costs_.predict_ms(batch.vectors + 1) + batch.other_ms + batch.hits_ms > budget_ms(batch);
}

double EngineWorker::budget_ms(const Batch& batch) const {
    if (settings_.batch_ms > 0) return settings_.batch_ms;
    const double singles = batch.is_mixed ? kMixedBudgetSingles : kBudgetSingles;
    return std::max(singles * costs_.single_ms(), kMinBudgetMs);
}

void EngineWorker::prepare(JobPointer job, Clock::time_point now, Batch& batch) {
    // An answer in pieces counts from its first piece to its last.
    if (job->kind != Job::Kind::next_piece) job->times.taken = now;
    if (job->abandoned.load(std::memory_order_relaxed)) return answered(std::move(job));
    if ((job->error = fault())) return answered(std::move(job));
    switch (job->kind) {
        case Job::Kind::next_piece:
            job->reply.make_costly_piece();
            return answered(std::move(job));
        case Job::Kind::probe: {
            auto query = known_.query(false);
            if (!query) return answered(std::move(job));
            batch.other_ms += kRangeMs;
            batch.jobs.push_back(std::move(job));
            batch.queries.push_back(*std::move(query));
            return;
        }
        default:
            break;
    }
    if (job->times.taken - job->times.arrived > settings_.limits.request_timeout) {
        job->error = {ErrorCode::timeout,
                      fmt::format("waited longer than {} ms for the engine; the daemon is "
                                  "overloaded",
                                  settings_.limits.request_timeout.count())};
        return answered(std::move(job));
    }
    if (job->kind == Job::Kind::request) {
        parse_line(*job);
        const bool is_query = needs_engine(*job->request);
        is_query ? make_query(*job) : make_reply(*job);
        if (!is_query || job->error) return answered(std::move(job));
        batch.other_ms += milliseconds(Clock::now() - now);
    }
    kernels::Query query = std::move(job->resolved.query);
    add_query(std::move(job), std::move(query), batch);
}

bool EngineWorker::take_rank(JobPointer& job, kernels::Query& query, Batch& batch) {
    auto* const count = std::get_if<kernels::CountBefore>(&query.kind);
    if (count == nullptr || job->resolved.audited) return false;
    drop_forgotten();
    const std::size_t rows = kernels::most_rows(query.filter, model_->rows());
    const bool on_gpu = engine_->kind() == kernels::EngineKind::cuda;
    if (on_gpu && rows > kernels::kMaxShortList) return false;
    const bool few = rows <= (on_gpu ? kFewRowsOfGpu : kernels::kMaxShortList);
    std::string key = RankCache::key_of(query);
    if (!ranks_.has_room_for(key, rows)) return false;
    const kernels::Hit target = kernels::counted_hit(*model_, *count);
    if (const RankCache::Order* order = ranks_.find(key)) {
        job->answer.count = RankCache::count_before(*order, target);
        ++counts_.queries;
        ++counts_.rank_cache_hits;
        answered(std::move(job));
        return true;
    }
    const auto made = std::ranges::find(batch.orderings, key, &Ordering::key);
    if (made != batch.orderings.end()) {
        made->others.emplace_back(std::move(job), target);
        return true;
    }
    if (!ranks_.reaches(key, few ? kRanksOfFewRows : kRanksOfManyRows)) return false;
    batch.orderings.push_back({std::move(key), batch.jobs.size(), target});
    kernels::QueryVector vector = std::move(count->vector);
    query.kind = kernels::Cosine{std::move(vector)};
    query.k = std::max<std::size_t>(rows, 1);
    return false;
}

void EngineWorker::add_query(JobPointer job, kernels::Query query, Batch& batch) {
    if (take_rank(job, query, batch)) return;
    const bool is_count = std::holds_alternative<kernels::CountBefore>(query.kind);
    const std::size_t hits = is_count ? 0 : std::min(query.k, model_->rows());
    if (hits > kFreeHits) batch.hits_ms += kHitMs * static_cast<double>(hits - kFreeHits);
    if (query.filter.rows) {
        batch.other_ms += kRangeMs + costs_.single_ms() *
                                         static_cast<double>(query.filter.rows->size()) /
                                         static_cast<double>(model_->rows());
    } else {
        batch.vectors += kernels::vectors_of(query);
    }
    batch.jobs.push_back(std::move(job));
    batch.queries.push_back(std::move(query));
}

EngineWorker::Batch EngineWorker::run_engine(Batch batch) {
    Batch next;
    overlap_ms_ = 0;
    const auto begun = Clock::now();
    auto ran = engine_->run(batch.queries, [&] {
        const auto meanwhile = Clock::now();
        finish_computed();
        fill(next);
        overlap_ms_ = milliseconds(Clock::now() - meanwhile);
    });
    const auto ended = Clock::now();
    finish_computed();  // unless the engine had time for that
    if (!ran) {
        stop_answering(
            {ran.error().code, fmt::format("engine {}: {}", engine_->name(), ran.error().message)});
    } else {
        learn(batch, *ran, milliseconds(ended - begun));
        count_batch(batch);
        computed_.answers = *std::move(ran);
    }
    computed_.batch = std::move(batch);
    computed_.at = ended;
    return next;
}

void EngineWorker::finish_computed(const Batch* next) {
    auto& [batch, answers, at] = computed_;
    if (batch.jobs.empty()) return;
    const auto queries = static_cast<std::size_t>(std::ranges::count_if(
        batch.jobs, [](const JobPointer& job) { return job->kind != Job::Kind::probe; }));
    const auto fault = this->fault();
    for (Ordering& ordering : batch.orderings) {
        if (!fault) finish_ordering(ordering, answers[ordering.place]);
        for (auto& [job, target] : ordering.others) {
            job->error = fault;
            answered(std::move(job), at);
        }
    }
    for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
        Job& job = *batch.jobs[i];
        // The loop frees it, on the thread that allocated it.
        job.resolved.query = std::move(batch.queries[i]);
        if (fault) {
            job.error = fault;
        } else {
            finish(job, answers[i]);
        }
        answered(std::move(batch.jobs[i]), at);
    }
    computed_ = {};
    const std::size_t waiting = arrivals_->jobs + (next != nullptr ? next->jobs.size() : 0);
    hand_over();
    gathering_.begin(queries + waiting, Clock::now());
}

void EngineWorker::drop_forgotten() {
    if (!forgets_ranks_.exchange(false)) return;
    ranks_.clear();
    counts_.rank_cache_bytes = 0;
}

void EngineWorker::finish_ordering(Ordering& ordering, kernels::Answer& answer) {
    RankCache::Order order = std::exchange(answer.hits, {});
    answer.count = RankCache::count_before(order, ordering.target);
    for (auto& [job, target] : ordering.others)
        job->answer.count = RankCache::count_before(order, target);
    counts_.queries += ordering.others.size();
    counts_.rank_cache_hits += ordering.others.size();
    ranks_.keep(ordering.key, std::move(order));
    counts_.rank_cache_bytes = ranks_.bytes();
}

void EngineWorker::finish(Job& job, kernels::Answer& answer) {
    if (job.kind != Job::Kind::probe) {
        count_pass(answer.certificate);
        job.answer = std::move(answer);
        return;
    }
    const Status right = known_.check(*engine_, answer);
    // A file that was cut short makes a sound engine answer wrongly.
    if (files_are_unchanged() && !right) stop_answering(right.error());
}

void EngineWorker::learn(const Batch& batch, std::span<const kernels::Answer> answers, double ms) {
    counts_.single_us = static_cast<std::uint64_t>(costs_.single_ms() * 1000);
    // Separate passes over some rows, many hits, and scans for other questions than for near words
    // would teach a wrong price.
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const kernels::Certificate& certificate = answers[i].certificate;
        const bool is_usual =
            certificate.pass != Pass::float64 ||
            (scores_are_usual_ && std::holds_alternative<kernels::Cosine>(batch.queries[i].kind) &&
             certificate.scanned == model_->rows());
        if (!is_usual) return;
    }
    if (batch.vectors != answers.size() || batch.hits_ms >= kMaxHitsShare * ms) return;
    // The device may have waited for this thread. Then the batch took less than `ms`.
    if (overlap_ms_ > kMaxOverlapShare * ms && ms > costs_.predict_ms(batch.vectors)) return;
    costs_.learn(batch.vectors, ms);
    counts_.single_us = static_cast<std::uint64_t>(costs_.single_ms() * 1000);
}

void EngineWorker::count_batch(const Batch& batch) {
    const auto asked = static_cast<std::size_t>(std::ranges::count_if(
        batch.jobs, [](const JobPointer& job) { return job->kind != Job::Kind::probe; }));
    if (asked == 0) return;
    counts_.queries += asked;
    counts_.scanned += asked;
    if (asked > counts_.largest_batch) counts_.largest_batch = asked;
    ++counts_.batches;
    ++counts_.batches_of[static_cast<std::size_t>(std::bit_width(asked - 1))];
}

void EngineWorker::count_pass(const kernels::Certificate& certificate) {
    ++counts_.answers_by[static_cast<std::size_t>(certificate.pass)];
    const bool wide = (certificate.pass == Pass::plane || certificate.pass == Pass::int8) &&
                      certificate.survivors > certificate.scanned / kUnselectiveDivisor;
    if (wide || certificate.plane_overflowed) ++counts_.plane_unselective;
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

void EngineWorker::forget_ranks() {
    forgets_ranks_ = true;
    counts_.rank_cache_bytes = 0;
    ++arrivals_->count;
    arrivals_->count.notify_one();
}

bool EngineWorker::files_are_unchanged() {
    const auto unchanged = model_->verify_sizes();
    if (unchanged) return true;
    if (!has_fault_) stop_answering(unchanged.error());
    return false;
}

void EngineWorker::parse_line(Job& job) {
    if (job.line.empty()) return;
    auto parsed = wire::parse_request(std::exchange(job.line, {}));
    assert(parsed);  // the session has parsed it before
    job.request = std::make_unique<wire::Request>(*std::move(parsed));
}

void EngineWorker::make_query(Job& job) {
    auto resolved = resolve_query(*job.request, *job.vocabulary, job.form);
    job.request = nullptr;
    if (!resolved) {
        job.error = resolved.error();
        return;
    }
    job.kind = Job::Kind::query;
    job.resolved = *std::move(resolved);
}

void EngineWorker::make_reply(Job& job) {
    auto reply = reply_without_engine(*job.request, model_, *job.vocabulary, name_, job.form,
                                      job.times.arrived);
    job.request = nullptr;
    if (!reply) {
        job.error = reply.error();
        return;
    }
    job.reply = *std::move(reply);
    // Of a costly answer only the first piece: other requests get their turn before the next.
    if (job.reply.is_costly()) job.reply.make_costly_piece();
    ++counts_.queries;
}

void EngineWorker::answered(JobPointer job, Clock::time_point computed) {
    job->times.computed = computed;
    if (job->kind == Job::Kind::probe) return job->probed(!has_fault_ && !job->error);
    answered_.push_back(std::move(job));
}

void EngineWorker::hand_over() {
    // There are few receivers: one for each loop.
    while (!answered_.empty()) {
        JobReceiver& receiver = *answered_.front()->receiver;
        const auto others = std::stable_partition(
            answered_.begin(), answered_.end(),
            [&](const JobPointer& job) { return job->receiver == &receiver; });
        std::vector<JobPointer> jobs(std::make_move_iterator(answered_.begin()),
                                     std::make_move_iterator(others));
        answered_.erase(answered_.begin(), others);
        receiver.receive(std::move(jobs));
    }
}

}  // namespace gloved::daemon
