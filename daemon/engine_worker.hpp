// EngineWorker: the thread that runs one engine. It takes jobs from the loops' threads and answers
// them in batches.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "daemon/cost_model.hpp"
#include "daemon/fair_queue.hpp"
#include "daemon/gathering.hpp"
#include "daemon/known_answer.hpp"
#include "daemon/rank_cache.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "daemon/vocabulary.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

struct Job;

/// When a request reached each stage.
struct Times {
    Clock::time_point arrived;   ///< read from its connection
    Clock::time_point taken;     ///< taken from the queue by the worker thread
    Clock::time_point computed;  ///< answered by the worker thread
};

/// Where answered jobs go.
class JobReceiver {
  public:
    /// Called on a worker's thread with the jobs of one batch. Must not wait.
    virtual void receive(std::vector<std::shared_ptr<Job>> jobs) = 0;

  protected:
    ~JobReceiver() = default;
};

/// A request on its way to an engine and back. Between `submit` and `receive` it belongs to the
/// worker, all but `abandoned`.
struct Job {
    enum class Kind {
        query,      ///< asks the engine `resolved`; the answer is `answer`
        probe,      ///< asks the engine the known query (KnownAnswer); the answer goes to `probed`
        request,    ///< asks the worker's thread to make `reply` or `resolved` of `request`
        next_piece  ///< asks it to render the next piece of `reply` (Reply::make_costly_piece)
    };

    Kind kind = Kind::query;
    wire::Form form = wire::Form::text;      ///< of `reply`
    const Vocabulary* vocabulary = nullptr;  ///< of the request, if that is about words; lives as
                                             ///< long as the job
    std::uint64_t connection = 0;            ///< number of the connection, for taking turns
    std::size_t queued_bytes = 0;            ///< memory that the job holds, approximately
    ResolvedQuery resolved;
    kernels::Answer answer;
    std::unique_ptr<wire::Request> request;
    std::string line;  ///< if not empty, the worker parses `request` from it
    Reply reply;
    std::optional<Error> error;  ///< instead of `answer` or `reply`
    Times times;
    /// True once the connection is closed and nobody wants the answer.
    std::atomic<bool> abandoned = false;
    JobReceiver* receiver = nullptr;
    bool is_awaited = false;  ///< the receiver's thread polls for the answer
    std::function<void(bool right)> probed;
};

/// Lower limit of a batch's budget, in milliseconds. Where one query takes microseconds, a batch
/// takes several times as long, and is still far cheaper than its queries one by one.
inline constexpr double kMinBudgetMs = 1;
/// A batch may take as long as so many single queries.
inline constexpr double kBudgetSingles = 4;
/// The same while clients with one request wait beside others that send ahead: they would wait for
/// the batches of these.
inline constexpr double kMixedBudgetSingles = 2;
/// Classes of batch sizes: 1, 2, 3–4, 5–8, … 2,049–4,096.
inline constexpr std::size_t kBatchSizes = CostModel::kSizes;

/// What a worker has done since the start; any thread may read.
struct WorkerCounts {
    std::atomic<std::uint64_t> queries = 0;  ///< requests that the worker's thread answered
    std::atomic<std::uint64_t> scanned = 0;  ///< of them, those that the engine answered in batches
    std::atomic<std::uint64_t> batches = 0;
    std::atomic<std::uint64_t> largest_batch = 0;
    std::array<std::atomic<std::uint64_t>, kBatchSizes> batches_of{};  ///< by class of size
    std::array<std::atomic<std::uint64_t>, kernels::kPasses.size()> answers_by{};  ///< by Pass
    /// Answers for which the plane ruled out less than nine tenths of the rows, or for which a list
    /// of survivors overflowed.
    std::atomic<std::uint64_t> plane_unselective = 0;
    std::atomic<std::uint64_t> single_us = 0;  ///< predicted for one query
    std::atomic<std::uint64_t> look_ups = 0;   ///< requests that loops answered themselves
    std::atomic<std::uint64_t> rank_cache_bytes = 0;
    std::atomic<std::uint64_t> rank_cache_hits = 0;  ///< ranks that were found in an order
};

/// Answers jobs in batches. Takes waiting jobs from the connections in turn, until their predicted
/// cost (CostModel) passes the budget, and calls Engine::run once for all of them. Waits for
/// further jobs only where clients that have just got answers are about to ask again (Gathering).
/// While a device works on a batch, the thread hands over the answers of the one before and
/// prepares the one after.
///
/// Each loop has an inbox of its own, whose lock it shares with the worker alone.
class EngineWorker {
  public:
    /// `name` is the model's, for messages. `settings` must outlive the worker.
    EngineWorker(std::string name, std::shared_ptr<const format::Model> model,
                 std::unique_ptr<kernels::Engine> engine, const Settings& settings);
    /// Sets the function to call when the engine has failed or the model's files have changed. It
    /// runs on the thread that notices, before any waiting request gets its ERR line. Set it before
    /// the first job.
    void on_fault(std::function<void(const Error&)> callback) { on_fault_ = std::move(callback); }
    EngineWorker(const EngineWorker&) = delete;
    EngineWorker& operator=(const EngineWorker&) = delete;
    ~EngineWorker() { stop(); }

    /// From now on answers every request with an ERR line about `error`, also those of the batch
    /// that runs now. Any thread.
    void refuse_all(const Error& error);

    /// Refuses further jobs, answers the waiting ones, then ends the thread and returns.
    void stop();

    /// Queues a job of the loop number `loop`, and hands it to job->receiver when it is answered.
    /// `may_refuse`: if the queue is full, returns false instead. Also returns false once the
    /// worker is stopped. Any thread.
    bool submit(std::shared_ptr<Job> job, std::size_t loop, bool may_refuse);

    /// Asks the engine the known query (KnownAnswer) ahead of all waiting jobs. Calls `done` on the
    /// worker thread with whether the answer is right; a wrong one is a fault. Once the worker is
    /// stopped, returns false and never calls `done`. Any thread.
    bool probe(std::function<void(bool right)> done);

    /// Drops the orders of rows that are kept for RANK, since a reload has replaced lists. Any
    /// thread.
    void forget_ranks();

    /// Whether the model's files still have their sizes; if not, the worker answers only ERR from
    /// now on. Call it before an answer that was read from the files is sent. Any thread.
    bool files_are_unchanged();
    /// Why requests are refused; nothing while all is well. Any thread.
    std::optional<Error> fault() const;

    const kernels::Engine& engine() const { return *engine_; }
    /// Whether a thread that waits for a job or an answer should poll for a moment before it
    /// sleeps: the engine answers sooner than a thread wakes up, and there are enough processors.
    bool should_spin() const { return should_spin_; }
    const WorkerCounts& counts() const { return counts_; }
    /// Counts a request about the model that a loop has answered itself. Any thread.
    void count_look_up() { counts_.look_ups.fetch_add(1, std::memory_order_relaxed); }
    /// Number of jobs in the queue. Any thread.
    std::size_t waiting() const { return arrivals_->jobs.load(std::memory_order_relaxed); }

  private:
    using JobPointer = std::shared_ptr<Job>;

    /// Jobs of one loop that the worker has not taken yet.
    struct alignas(64) Inbox {
        std::mutex mutex;
        std::vector<JobPointer> jobs;
        bool closed = false;
    };

    /// What every loop writes with each job, kept apart from the worker's own data.
    struct Arrivals {
        explicit Arrivals(std::size_t number) : inboxes(number) {}
        std::vector<Inbox> inboxes;  // one for each loop, the last for probes
        // Of the jobs in the inboxes and in `queue_`.
        std::atomic<std::size_t> jobs = 0;
        std::atomic<std::size_t> bytes = 0;
        // What the worker sleeps on: counts the jobs that came, and the call of stop.
        std::atomic<std::uint32_t> count = 0;
        std::atomic<bool> stopped = false;
    };

    /// A query of a batch for all rows in the order of their scores, in place of a RANK, and the
    /// jobs that ask for ranks in it.
    struct Ordering {
        std::string key;           // RankCache::key_of
        std::size_t place = 0;     // of the query, whose job is the first that asked
        kernels::Hit target = {};  // of that job
        std::vector<std::pair<JobPointer, kernels::Hit>> others{};
    };

    /// The jobs of one call of Engine::run, and its predicted cost.
    struct Batch {
        std::vector<JobPointer> jobs;
        std::vector<kernels::Query> queries;  // of `jobs`
        std::size_t vectors = 0;              // query vectors over all rows, which share a pass
        double other_ms = 0;                  // passes over a part of the rows, other work
        double hits_ms = 0;                   // finding the hits, within the passes
        std::vector<Ordering> orderings;
        bool is_mixed = false;  // FairQueue::is_mixed held when jobs were taken from it
    };

    /// A batch that the engine has answered, unless it failed. Its jobs do not have the answers
    /// yet.
    struct Computed {
        Batch batch;
        std::vector<kernels::Answer> answers;
        Clock::time_point at;
    };

    void loop();
    /// Waits until a job waits in an inbox or in `queue_`; false once the worker is stopped and has
    /// no job left.
    bool wait_for_jobs();
    /// What one batch of `vectors` is expected to save, where `batch` would take some of them and
    /// another the rest.
    double gain_ms(const Batch& batch, std::size_t vectors) const;
    /// Whether `next` will wait for the jobs of `computed_` to be followed by others.
    bool will_gather(const Batch& next) const;
    /// Waits for such jobs and takes them into `batch`.
    void gather(Batch& batch);
    /// Moves the jobs of all inboxes to `queue_`.
    void empty_inboxes();
    /// Takes jobs from `queue_` into `batch`, up to the budget. Hands over those that it answers.
    void fill(Batch& batch);
    bool is_full(const Batch& batch) const;
    /// Answers the job at once, or moves it into `batch`.
    void prepare(JobPointer job, Clock::time_point now, Batch& batch);
    void add_query(JobPointer job, kernels::Query query, Batch& batch);
    /// Answers a RANK from an order of rows or lets it wait for one that the batch will make, and
    /// returns true. Otherwise `query` is what the engine has to answer for it: the rank, or, where
    /// ranks in one order are asked for repeatedly, the order.
    bool take_rank(JobPointer& job, kernels::Query& query, Batch& batch);
    /// Drops the kept orders if forget_ranks was called.
    void drop_forgotten();
    /// Gives the jobs of an ordering their ranks, and keeps the order.
    void finish_ordering(Ordering& ordering, kernels::Answer& answer);
    /// Runs the engine, fills the next batch meanwhile, and returns it. The answers come to
    /// `computed_`.
    Batch run_engine(Batch batch);
    /// Gives the jobs of `computed_` their answers, and hands them over. `next`: the batch that
    /// will follow, if it has jobs already.
    void finish_computed(const Batch* next = nullptr);
    void finish(Job& job, kernels::Answer& answer);
    void learn(const Batch& batch, std::span<const kernels::Answer> answers, double ms);
    void count_batch(const Batch& batch);
    void count_pass(const kernels::Certificate& certificate);
    /// Reports a failure of the engine or the model, and refuses all requests from now on.
    void stop_answering(const Error& error);
    static void parse_line(Job& job);
    void make_reply(Job& job);
    /// Makes the query of a job's request; the job is one of Kind::query then.
    void make_query(Job& job);
    /// Adds an answered job to those that `hand_over` gives to their receivers.
    void answered(JobPointer job, Clock::time_point computed = Clock::now());
    void hand_over();
    double budget_ms(const Batch& batch) const;

    std::function<void(const Error&)> on_fault_;
    mutable std::mutex fault_mutex_;
    std::optional<Error> fault_;
    std::atomic<bool> has_fault_ = false;  // fault_ is set
    const std::string name_;
    const std::shared_ptr<const format::Model> model_;
    const KnownAnswer known_;
    const std::unique_ptr<kernels::Engine> engine_;
    const Settings& settings_;
    const bool scores_are_usual_;  // of questions for near words
    const bool should_spin_;
    const std::unique_ptr<Arrivals> arrivals_;
    CostModel costs_;
    RankCache ranks_;
    std::atomic<bool> forgets_ranks_ = false;  // before the next one
    WorkerCounts counts_;
    FairQueue<JobPointer> queue_;
    std::vector<JobPointer> taken_;  // scratch of empty_inboxes
    Computed computed_;
    Gathering gathering_;
    double overlap_ms_ = 0;             // of the last run, that this thread had other work
    std::vector<JobPointer> answered_;  // not handed over yet
    std::thread thread_;
};

}  // namespace gloved::daemon
