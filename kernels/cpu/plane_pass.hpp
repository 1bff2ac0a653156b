// PlanePass: the cpu engine's pass over a plane. It answers cosine queries and reads only the
// vectors of survivors, the rows that the plane does not rule out.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/cpu/candidates.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/cpu/scan.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {

/// Reads a model's plane, and the vectors of survivors.
///
/// The cutoff rises during a pass, so most rows that survive early would not survive later.
/// Therefore a survivor's vector is read at once only if its estimated score is above the
/// threshold, since that raises the threshold. Other survivors are deferred and compared with later
/// cutoffs first. This order affects speed alone.
class PlanePass {
  public:
    /// Uses the model's stored plane or builds one on the threads of `pool`. `kernels` are the
    /// loops for reading vectors. Model and kernels must outlive the PlanePass. Throws
    /// std::bad_alloc.
    PlanePass(const format::Model& model, const ScanKernels& kernels, ThreadPool& pool);

    const planes::Plane& plane() const { return plane_; }
    /// The name of the plane loops' instruction set, for the log.
    std::string_view kernel_name() const { return plane_kernel_.name; }

    /// Answers queries[i] over the rows of `range` and stores the answer in answers[i], on the
    /// threads of `pool`. Each query is a Cosine; its own filter.rows is ignored. Throws
    /// std::bad_alloc. Several calls with different pools may run at the same time.
    void run(std::span<const Query* const> queries, RowRange range,
             std::span<Answer* const> answers, ThreadPool& pool) const;

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
    void read_deferred(BatchQueries& batch_queries, std::vector<Worker>& workers,
                       ThreadPool& pool) const;
    double canonical(const QueryVector& vector, std::size_t row) const;

    const format::Model& model_;
    const ScanKernels& kernels_;
    const PlaneKernel& plane_kernel_;
    const planes::Plane plane_;
    const double bound_;
    const std::size_t tile_groups_;
};

}  // namespace gloved::kernels::cpu
