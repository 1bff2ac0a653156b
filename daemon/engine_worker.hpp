// The thread of an engine: takes requests from a queue and answers them in batches.
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

/// When a request reached each stage.
struct Times {
    Clock::time_point arrived;   ///< read from its connection
    Clock::time_point taken;     ///< taken from the queue by the worker thread
    Clock::time_point computed;  ///< answered by the worker thread
};

/// A request on its way to an engine.
struct Job {
    std::uint64_t connection = 0;
    wire::Request request;
    std::string line;  ///< if not empty, `request` is parsed from it when its turn comes
    wire::Form form = wire::Form::text;  ///< of the answer
    bool is_probe = false;  ///< asks the known query instead of `request`; the reply is empty
    bool is_continuation = false;  ///< asks for the next piece of `begun` instead of `request`
    Reply begun;
    Times times;
    /// True when the connection is closed.
    std::shared_ptr<const std::atomic<bool>> abandoned;
    /// Takes the answer, on the worker thread.
    std::function<void(Reply, const Times&)> done;
};

/// Lower limit of a batch's budget: where one query takes microseconds, a batch takes several times
/// that, and is still far cheaper than its queries one by one.
inline constexpr double kMinBudgetMs = 1;
/// Classes of batch sizes: 1, 2, 3–4, 5–8, … 129–256.
inline constexpr std::size_t kBatchSizes = 9;

/// Counters that any thread may read.
struct WorkerCounts {
    std::atomic<std::uint64_t> queries = 0;
    std::atomic<std::uint64_t> scanned = 0;  ///< queries that were part of a batch
    std::atomic<std::uint64_t> batches = 0;
    std::atomic<std::uint64_t> largest_batch = 0;
    std::array<std::atomic<std::uint64_t>, kBatchSizes> batches_of{};              ///< by size
    std::array<std::atomic<std::uint64_t>, kernels::kPasses.size()> answers_by{};  ///< by Pass
    /// Answers for which the plane left more than a tenth of the rows, or overflowed.
    std::atomic<std::uint64_t> plane_unselective = 0;
    std::atomic<std::uint64_t> single_us = 0;  ///< predicted for one query
};

/// Answers jobs in batches: takes waiting jobs round-robin by connection, until their predicted
/// cost passes the budget, and has the engine answer them in one run. A query never waits for
/// others.
class EngineWorker {
  public:
    /// `name` is the model's, for status lines. `settings` outlives it.
    EngineWorker(std::string name, std::shared_ptr<const format::Model> model,
                 std::unique_ptr<kernels::Engine> engine, const Settings& settings);
    /// Sets a callback for a failed engine and for files that have changed. It runs on the thread
    /// that notices, before any waiting request gets its ERR line. Set it before the first job.
    void on_fault(std::function<void(const Error&)> callback) { on_fault_ = std::move(callback); }
    EngineWorker(const EngineWorker&) = delete;
    EngineWorker& operator=(const EngineWorker&) = delete;
    ~EngineWorker() { stop(); }

    /// From now on answers every request with an ERR line about `error`, the batch that runs too.
    /// Any thread.
    void refuse_all(const Error& error);

    /// Answers the waiting jobs, then ends the thread. Refuses further jobs.
    void stop();

    /// Queues a job that holds about `bytes` of memory. False, and `job` stays unchanged, when the
    /// queue is full. Any thread.
    bool submit(Job&& job, std::size_t bytes) {
        const std::uint64_t connection = job.connection;
        const bool is_continuation = job.is_continuation;
        return queue_.push(connection, std::move(job), bytes, is_continuation);
    }

    /// Asks the known query ahead of all waiting jobs, and calls `done` on the worker thread with
    /// whether the answer is right. A wrong answer is a fault. False, and `done` is never called,
    /// once the worker is stopped.
    bool probe(std::function<void(bool right)> done);

    /// Checks that the model's files have their size still; if not, stops answering. Call it before
    /// an answer that was read from them is sent. Any thread.
    bool files_are_unchanged();

    const kernels::Engine& engine() const { return *engine_; }
    /// Whether threads should poll for a moment before they sleep: a GPU answers sooner than they
    /// wake up, and there are processors to spare.
    bool should_spin() const { return should_spin_; }
    const WorkerCounts& counts() const { return counts_; }
    std::size_t waiting() const { return queue_.size(); }

  private:
    struct Scan {
        Job job;
        kernels::Query query;
    };

    /// Jobs of one run of the engine.
    struct Batch {
        std::vector<Scan> scans;
        std::size_t vectors = 0;  // of queries over all rows, which share a pass
        double other_ms = 0;      // predicted for word look-ups and for passes over some rows
        double hits_ms = 0;       // predicted for hits, within the passes
    };

    void loop();
    /// Answers the job at once, or moves it into `batch`.
    void prepare(Job& job, Batch& batch);
    void run_engine(Batch& batch);
    /// After a failure of the engine or the model: reports it, and refuses everything.
    void stop_answering(const Error& error);
    /// Why requests are refused; nothing while all is well.
    std::optional<Error> fault() const;
    void count_pass(const kernels::Certificate& certificate);
    /// The fields of an OK's status line; the engine's name only where it ran.
    std::vector<wire::StatusField> status_fields(const Job& job, bool by_engine) const;
    void answer_without_engine(Job& job);
    void fail(Job& job, const Error& error);
    void deliver(Job& job, Reply reply);
    double budget_ms() const {
        return settings_.batch_ms > 0 ? settings_.batch_ms
                                      : std::max(2 * costs_.single_ms(), kMinBudgetMs);
    }

    std::function<void(const Error&)> on_fault_;
    mutable std::mutex fault_mutex_;
    std::optional<Error> fault_;
    std::atomic<bool> has_fault_ = false;  // fault_ is set
    const std::string name_;
    const std::shared_ptr<const format::Model> model_;
    const KnownAnswer known_;
    const std::unique_ptr<kernels::Engine> engine_;
    const Settings& settings_;
    const bool should_spin_;
    CostModel costs_;
    WorkerCounts counts_;
    FairQueue<Job> queue_;
    std::thread thread_;
};

}  // namespace gloved::daemon
