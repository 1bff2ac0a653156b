// One model, its engine, and the thread that runs it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/format/model.hpp"
#include "common/wire/request.hpp"
#include "daemon/cost_model.hpp"
#include "daemon/fair_queue.hpp"
#include "daemon/known_answer.hpp"
#include "daemon/reply.hpp"
#include "daemon/resolve.hpp"
#include "daemon/settings.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// When a request reached each stage on its way.
struct Times {
    Clock::time_point arrived;   ///< read from its connection
    Clock::time_point taken;     ///< from the queue, by the worker thread
    Clock::time_point computed;  ///< and its answer made
};

/// A request that waits for its answer.
struct Job {
    std::uint64_t connection = 0;
    wire::Request request;
    std::string line;  ///< where it is not empty, `request` is parsed from it when its turn comes
    wire::Form form = wire::Form::text;  ///< of the answer
    bool is_probe = false;  ///< asks for the known answer; `request` is empty then, and so is the
                            ///< reply
    bool goes_on = false;   ///< asks for the next piece of `begun`; `request` is empty then
    Reply begun;
    Times times;
    /// True when nobody waits any more.
    std::shared_ptr<const std::atomic<bool>> abandoned;
    /// Takes the answer, on the worker thread.
    std::function<void(Reply, const Times&)> done;
};

/// Where a single query takes microseconds, a batch of many takes several times that and still a
/// fraction of theirs.
inline constexpr double kMinBudgetMs = 1;
/// How many sizes of batches are told apart: 1, 2, 3–4, 5–8, … 129–256.
inline constexpr std::size_t kBatchSizes = 9;

/// Counters that any thread may read.
struct WorkerCounts {
    std::atomic<std::uint64_t> queries = 0;
    std::atomic<std::uint64_t> scanned = 0;  ///< queries that were part of a batch
    std::atomic<std::uint64_t> batches = 0;
    std::atomic<std::uint64_t> largest_batch = 0;
    std::array<std::atomic<std::uint64_t>, kBatchSizes> batches_of{};              ///< by size
    std::array<std::atomic<std::uint64_t>, kernels::kPasses.size()> answers_by{};  ///< by Pass
    /// Answers for which a plane ruled out too little: more than a tenth of the rows were left, or
    /// it was given up for another pass.
    std::atomic<std::uint64_t> plane_unselective = 0;
    std::atomic<std::uint64_t> single_us = 0;  ///< predicted for one query
};

/// Answers jobs in batches: those that wait together are scanned together, taken round-robin by
/// connection until the batch's predicted cost passes the budget. A lone query never waits for
/// company.
class EngineWorker {
  public:
    /// `name` is the model's, for status lines. `settings` outlives it.
    EngineWorker(std::string name, std::shared_ptr<const format::Model> model,
                 std::unique_ptr<kernels::Engine> engine, const Settings& settings);
    /// `report_fault` is called when the engine is lost or the model's files are not what they
    /// were, on the thread that finds it out: before what is in flight or waits gets its ERR line,
    /// and nothing is answered any more. To be set before the first job.
    void on_fault(std::function<void(const Error&)> report_fault) {
        report_fault_ = std::move(report_fault);
    }
    EngineWorker(const EngineWorker&) = delete;
    EngineWorker& operator=(const EngineWorker&) = delete;
    ~EngineWorker() { stop(); }

    /// From now on every request gets an ERR line that tells of `error`, another engine's loss. Any
    /// thread; a batch that is being scanned is refused when it is done.
    void refuse(const Error& error);

    /// Answers what waits, then ends the thread. Further jobs are refused.
    void stop();

    /// Queues a job that holds about `bytes` of memory; false, and `job` is left alone, when the
    /// queue is full. Any thread.
    bool submit(Job&& job, std::size_t bytes) {
        const std::uint64_t connection = job.connection;
        const bool goes_on = job.goes_on;
        return queue_.push(connection, std::move(job), bytes, goes_on);
    }

    /// Asks for the known answer, before whatever waits; `done` is called on the worker thread,
    /// with whether it has come and is right. A wrong one is a lost engine. False, and never, when
    /// the thread is being ended.
    bool probe(std::function<void(bool right)> done);

    /// Gives up, and returns false, when the model's files have changed under what was just read
    /// from them: to be asked before an answer goes out. Any thread.
    bool files_are_whole();

    const kernels::Engine& engine() const { return *engine_; }
    /// Whether threads should wait for this engine without sleeping for a moment: it answers sooner
    /// than they wake up, its work is done elsewhere, and there are processors to spare.
    bool worth_spinning() const { return worth_spinning_; }
    const WorkerCounts& counts() const { return counts_; }
    std::size_t waiting() const { return queue_.size(); }

  private:
    struct Scan {
        Job job;
        kernels::Query query;
    };

    /// Jobs that are being scanned together.
    struct Batch {
        std::vector<Scan> scans;
        std::size_t vectors = 0;  // of queries over all rows: they share a pass
        double other_ms = 0;      // predicted for looking words up, and for passes over some rows
        double hits_ms = 0;       // predicted for many hits, within the passes
    };

    void loop();
    /// Answers the job at once, or moves it into `batch`.
    void prepare(Job& job, Batch& batch);
    void answer(Batch& batch);
    /// Nothing is answered any more: the engine, or the model, is not what it was.
    void give_up(const Error& error);
    /// Why nothing is answered any more; nothing while all is well.
    std::optional<Error> refusal() const;
    /// The status line's keys of an OK: the engine where one scanned, then what every answer from a
    /// model has.
    void count(const kernels::Certificate& certificate);
    std::vector<wire::StatusField> status_of(const Job& job, bool scanned) const;
    /// Answers with what an engine is not needed for.
    void answer_directly(Job& job);
    void fail(Job& job, const Error& error);
    void deliver(Job& job, Reply reply);
    double budget_ms() const {
        return settings_.batch_ms > 0 ? settings_.batch_ms
                                      : std::max(2 * costs_.single_ms(), kMinBudgetMs);
    }

    std::function<void(const Error&)> report_fault_;
    mutable std::mutex lost_mutex_;
    std::optional<Error> lost_;
    std::atomic<bool> is_lost_ = false;  // lost_ is there
    const std::string name_;
    const std::shared_ptr<const format::Model> model_;
    const KnownAnswer known_;
    const std::unique_ptr<kernels::Engine> engine_;
    const Settings& settings_;
    const bool worth_spinning_;
    CostModel costs_;
    WorkerCounts counts_;
    FairQueue<Job> queue_;
    std::thread thread_;
};

}  // namespace gloved::daemon
