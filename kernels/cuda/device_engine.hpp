// DeviceEngine: answers queries over the rows that one GPU holds. A cuda engine has one for each of
// its GPUs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/engine_plan.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/shard_memory.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {

/// A query, and the rows in which a device looks for its hits, whatever rows its filter names.
struct QueryShare {
    const Query* query = nullptr;
    RowRange rows;             ///< of the model; not empty; the device holds all of them
    Answer* answer = nullptr;  ///< empty before the run
};

/// Answers queries over the rows of one shard, each by the fastest pass that can. One thread at a
/// time may use it. All errors are `device`; it cannot be used afterwards.
class DeviceEngine {
  public:
    /// Allocates the shard `planned`. Shard::fill, Shard::fill_plane and upload_vectors fill it.
    /// `model` must outlive the engine. `writers`: how many threads write long query vectors.
    static Result<std::unique_ptr<DeviceEngine>> create(const format::Model& model,
                                                        const EnginePlan::PlannedShard& planned,
                                                        const Residency& residency,
                                                        const EngineOptions& options,
                                                        unsigned writers);

    /// Answers a batch. Calls `meanwhile` at most once while the device works; it may be empty.
    Status run(std::span<const QueryShare> shares, const std::function<void()>& meanwhile = {});
    /// Starts what the next run() begins with, which must be of this share alone, so that several
    /// devices can work on one query. Does nothing where not one pass alone answers the query.
    Status start_lone(const QueryShare& share);

    Shard& shard() { return *shard_; }
    const Shard& shard() const { return *shard_; }

  private:
    struct Task;
    /// How queries are answered, in the order in which an engine tries.
    enum class Way {
        few_rows,       ///< canonical scores of the few rows that the filter leaves
        plane,          ///< over the plane, with others: plane_pass.cu
        tiles,          ///< over code tiles, with others
        tiles_again,    ///< with fewer others, so that each has more room
        alone,          ///< over the plane: plane_query.cu
        tiles_at_last,  ///< over code tiles, for those that have not had the most room there
        scores,         ///< canonical scores of all rows
    };
    static constexpr std::size_t kWays = 7;

    DeviceEngine(const format::Model& model, const Residency& residency,
                 std::unique_ptr<ThreadPool> writers, std::unique_ptr<Shard> shard);

    Status answer(std::span<const QueryShare> shares);
    /// The first way to answer a task of a run of that many queries.
    Way first_way(Task& task, std::size_t queries) const;
    /// The first way for a task that is not answered with others.
    Way lone_way(Task& task) const;
    /// The way, later than `way`, for a task that overflowed it.
    Way way_after(Way way, Task& task) const;
    /// Of so many queries that wait for a way, how many are answered alone instead.
    std::size_t too_few_for(Way way, std::size_t queries) const;
    /// Answers tasks[which[i]], and appends those that overflow to `overflowed`, as do run_alone
    /// and run_together.
    Status run_way(Way way, std::span<Task> tasks, std::span<const std::size_t> which,
                   std::vector<std::size_t>& overflowed);
    Status run_alone(std::span<Task> tasks, std::span<const std::size_t> which,
                     std::vector<std::size_t>& overflowed);
    /// By passes of up to `max_queries`.
    Status run_together(std::span<const Task> tasks, std::span<const std::size_t> which, Way way,
                        std::size_t max_queries, std::vector<std::size_t>& overflowed);
    Status start_together(std::span<const Task> tasks, std::span<const std::size_t> which, Way way,
                          std::size_t slot);
    /// Waits for a pass and takes its answers.
    Status take_answers(std::span<const Task> tasks, std::span<const std::size_t> which, Way way,
                        std::size_t slot, std::vector<std::size_t>& overflowed);
    /// Sets survivors and read_bytes from pass, scanned and rescored.
    void set_read_bytes(Certificate& certificate) const;
    std::size_t code_capacity() const { return shard_->code_capacity(); }
    /// Maximum number of queries of each pass over code tiles in a run of that many.
    std::size_t pass_queries(std::size_t queries) const;
    /// Fewest queries of such a pass. Where the device holds nothing else, one.
    std::size_t min_tiles_batch() const;
    /// Whether a pass over code tiles, or over the plane, can answer the task in a run of that
    /// many.
    bool tiles_serve(const Task& task, std::size_t queries) const;
    bool plane_pass_serves(const Task& task, std::size_t queries) const;
    /// Whether the filter leaves so few rows that all of them are scored.
    bool few_rows_serve(const Task& task) const;
    /// The number of rows that the filter leaves, at most.
    std::size_t rows_left(const Task& task) const;
    /// Whether no pass that rules rows out can answer the task.
    static bool needs_all_scores(const Task& task);
    bool is_whole(RowRange rows) const { return rows.size() == shard_->rows().size(); }
    /// Answers tasks[which[i]] by the canonical scores of all rows, several in a pass.
    Status run_scored(std::span<Task> tasks, std::span<const std::size_t> which);
    /// Answers tasks[which[i]] by one pass. Appends those whose ties overflow the device's lists to
    /// `overflowed`.
    Status run_score_pass(std::span<const Task> tasks, std::span<const std::size_t> which,
                          ScoreResult result, bool few, std::vector<std::size_t>& overflowed);
    /// Whether to list the rows that a count's filter leaves and score these alone.
    bool counts_few_rows(const Task& task) const;
    ScoreQuery score_query(const Task& task, ScoreResult result) const;
    /// The hit before which a CountBefore counts; nothing for another kind of query.
    std::optional<Hit> target_of(const Task& task) const;
    /// Answers a task from the scores of all rows.
    void select_on_host(const Task& task);
    Status wait();
    void work_meanwhile();
    /// Takes the hits of query `at` of a slot's last pass.
    void take_hits(std::size_t at, std::size_t slot, Answer& answer) const;

    const format::Model& model_;
    Residency residency_;
    std::unique_ptr<ThreadPool> writers_;  // of the shard; none where vectors are short
    std::unique_ptr<Shard> shard_;
    bool lone_started_ = false;        // by start_lone, for the run that follows
    std::function<void()> meanwhile_;  // of the run that is under way
};

}  // namespace gloved::kernels::cuda
