// EngineWorker: the thread that runs one engine. It takes requests from a queue and answers them in
// batches.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "daemon/cost_model.hpp"
#include "daemon/fair_queue.hpp"
#include "daemon/known_answer.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// When a request reached each stage.
struct Times {
    Clock::time_point arrived;   ///< read from its connection
    Clock::time_point taken;     ///< taken from the queue by the worker thread
    Clock::time_point computed;  ///< answered by the worker thread
};

/// A request on its way to an engine, and what to do with the reply.
struct Job {
    std::uint64_t connection = 0;  ///< number of the connection, for taking turns
    wire::Request request;
    std::string line;                    ///< if not empty, the worker parses `request` from it
    wire::Form form = wire::Form::text;  ///< of the reply
    bool is_probe = false;  ///< asks the known query (KnownAnswer) instead of `request`; the reply
                            ///< is empty
    bool is_continuation = false;  ///< asks for the next piece of `begun` instead of `request`
    Reply begun;
    Times times;
    /// True once the connection is closed and nobody wants the reply.
    std::shared_ptr<const std::atomic<bool>> abandoned;
    /// Called with the reply, on the worker thread.
    std::function<void(Reply, const Times&)> done;
};

/// Lower limit of a batch's budget, in milliseconds. Where one query takes microseconds, a batch
/// takes several times as long, and is still far cheaper than its queries one by one.
inline constexpr double kMinBudgetMs = 1;
/// Classes of batch sizes: 1, 2, 3–4, 5–8, … 129–256.
inline constexpr std::size_t kBatchSizes = 9;

/// What a worker has done since the start; any thread may read.
struct WorkerCounts {
    std::atomic<std::uint64_t> queries = 0;  ///< requests answered, by the engine or without it
    std::atomic<std::uint64_t> scanned = 0;  ///< of them, those that the engine answered in batches
    std::atomic<std::uint64_t> batches = 0;
    std::atomic<std::uint64_t> largest_batch = 0;
    std::array<std::atomic<std::uint64_t>, kBatchSizes> batches_of{};  ///< by class of size
    std::array<std::atomic<std::uint64_t>, kernels::kPasses.size()> answers_by{};  ///< by Pass
    /// Answers for which the plane ruled out less than nine tenths of the rows, or for which a list
    /// of survivors overflowed.
    std::atomic<std::uint64_t> plane_unselective = 0;
    std::atomic<std::uint64_t> single_us = 0;  ///< predicted for one query
};

/// Answers jobs in batches. Takes waiting jobs from the connections in turn, until their predicted
/// cost (CostModel) passes the budget, and calls Engine::run once for all of them. Never waits for
/// further jobs to fill a batch.
class EngineWorker {
  public:
    /// `name` is the model's, for status lines. `settings` must outlive the worker.
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

    /// Queues a job that holds about `bytes` of memory. If the queue is full or the worker is
    /// stopped, returns false and leaves `job` unchanged. Any thread.
    bool submit(Job&& job, std::size_t bytes) {
        const std::uint64_t connection = job.connection;
        const bool is_continuation = job.is_continuation;
        return queue_.push(connection, std::move(job), bytes, is_continuation);
    }

    /// Asks the engine the known query (KnownAnswer) ahead of all waiting jobs. Calls `done` on the
    /// worker thread with whether the answer is right; a wrong one is a fault. Once the worker is
    /// stopped, returns false and never calls `done`. Any thread.
    bool probe(std::function<void(bool right)> done);

    /// Whether the model's files still have their sizes; if not, the worker answers only ERR from
    /// now on. Call it before an answer that was read from the files is sent. Any thread.
    bool files_are_unchanged();

    const kernels::Engine& engine() const { return *engine_; }
    /// Whether a thread that waits for a job or an answer should poll for a moment before it
    /// sleeps: the engine answers sooner than a thread wakes up, and there are enough processors.
    bool should_spin() const { return should_spin_; }
    const WorkerCounts& counts() const { return counts_; }
    /// Number of jobs in the queue. Any thread.
    std::size_t waiting() const { return queue_.size(); }

  private:
    /// A job that needs the engine, and its query.
    struct Scan {
        Job job;
        kernels::Query query;
    };

    /// The jobs of one call of Engine::run, and its predicted cost.
    struct Batch {
        std::vector<Scan> scans;
        std::size_t vectors = 0;  // query vectors over all rows, which share a pass
        double other_ms = 0;      // word look-ups, and passes over a part of the rows
        double hits_ms = 0;       // finding the hits, within the passes
    };

    void loop();
    /// Answers the job at once, or moves it into `batch`.
    void prepare(Job& job, Batch& batch);
    void run_engine(Batch& batch);
    /// Reports a failure of the engine or the model, and refuses all requests from now on.
    void stop_answering(const Error& error);
    /// Why requests are refused; nothing while all is well.
    std::optional<Error> fault() const;
    void count_pass(const kernels::Certificate& certificate);
    /// The fields of an OK's status line. `by_engine`: whether the engine answered; only then they
    /// have its name.
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
