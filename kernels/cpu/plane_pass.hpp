// The cpu engine's pass over a plane: answers cosine queries, reading only the vectors of rows that
// the plane cannot reject.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cpu/candidates.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/cpu/scan.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {

/// Reads a model's plane and then the vectors of survivors.
///
/// A row that passes the plane is not read at once. Its cutoff came from the rows so far, and the
/// final one rejects most of them. Only rows whose estimate beats the threshold are read at once,
/// since they raise it; others are deferred and compared with later cutoffs first. The order of
/// reading affects speed alone.
class PlanePass {
  public:
    /// Takes the model's plane or builds one. Model, kernels and pool must outlive this. Throws
    /// std::bad_alloc.
    PlanePass(const format::Model& model, const ScanKernels& kernels, ThreadPool& pool);

    const planes::Plane& plane() const { return plane_; }
    /// The instruction set, for the log.
    std::string_view kernel_name() const { return plane_kernel_.name; }

    /// Answers queries[i], a Cosine without a range of its own, over `range` in answers[i]. Throws
    /// std::bad_alloc. One thread at a time.
    void run(std::span<const Query* const> queries, RowRange range,
             std::span<Answer* const> answers);

  private:
    class BatchQuery;
    struct QueryProgress;
    struct Worker;
    /// A deque, because a BatchQuery cannot move.
    using BatchQueries = std::deque<BatchQuery>;

    void filter(BatchQueries& batch_queries, const std::vector<QueryBlock>& blocks, Worker& worker,
                RowRange range) const;
    void read_or_defer(BatchQuery& batch_query, QueryProgress& progress,
                       const PassedRow& row) const;
    void prune_deferred(BatchQuery& batch_query, QueryProgress& progress) const;
    void read_vectors(BatchQuery& batch_query, QueryProgress& progress,
                      std::span<const PassedRow> rows) const;
    void score_uncovered(BatchQueries& batch_queries, Worker& worker, RowRange range) const;
    void offer(BatchQuery& batch_query, QueryProgress& progress, const Candidate& candidate) const;
    void read_deferred(BatchQueries& batch_queries, std::vector<Worker>& workers);
    double canonical(const QueryVector& vector, std::size_t row) const;

    const format::Model& model_;
    const ScanKernels& kernels_;
    const PlaneKernel& plane_kernel_;
    ThreadPool& pool_;
    const planes::Plane plane_;
    const double bound_;
    const std::size_t tile_groups_;
};

}  // namespace gloved::kernels::cpu
