// PlanePass: the cpu engine's pass over a plane. It answers cosine queries and reads only the
// vectors of survivors, the rows that the plane does not rule out.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/cpu/dots.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/fine_plane.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {

/// A plane as a pass sees it: groups of kGroupRows rows, and the loop over their codes.
struct PlaneView {
    std::span<const std::byte> bytes;
    std::size_t group_bytes = 0;
    std::size_t steps = 0;      ///< of a group
    std::size_t step_dims = 0;  ///< components of a step
    int top_level = 0;
    PlaneLoop loop;
    std::span<const Row> uncovered;  ///< see planes::uncovered_rows

    /// Whether sums bound scores closely enough to raise a threshold.
    bool fine() const { return top_level == planes::kFineTopLevel; }
    const std::byte* group(std::size_t number) const { return bytes.data() + number * group_bytes; }
};

PlaneView view(const planes::Plane& plane, const PlaneLoop& loop);
/// `uncovered`: those of the model's 4-bit plane.
PlaneView view(const planes::FinePlane& plane, std::span<const Row> uncovered,
               const PlaneLoop& loop);

/// Reads a plane, and computes the canonical scores of survivors from their vectors.
///
/// The cutoff rises during a pass, so most rows that survive early would not survive later.
/// Therefore survivors are deferred and compared with later cutoffs before their vectors are read.
/// Of a fine plane, their sums alone bound scores closely enough to raise the threshold. Of a 4-bit
/// plane, a survivor is scored early if its estimated score reaches the threshold, since that
/// raises it: its vector is prefetched, and read after the next tile. This order affects speed
/// alone.
class PlanePass {
  public:
    /// Model, kernel and plane must outlive the PlanePass.
    PlanePass(const format::Model& model, const DotKernel& kernel, const PlaneView& plane);

    /// Answers queries[i] over the rows of `range` and stores the answer in answers[i], on the
    /// threads of `pool`. Each query is a Cosine; its own filter.rows is ignored. Throws
    /// std::bad_alloc. Several calls with different pools may run at the same time.
    void run(std::span<const Query* const> queries, RowRange range,
             std::span<Answer* const> answers, ThreadPool& pool) const;

  private:
    struct BatchQuery;
    struct QueryProgress;
    struct Worker;
    /// A deque, because a BatchQuery cannot move.
    using BatchQueries = std::deque<BatchQuery>;

    void filter(BatchQueries& batch_queries, const std::vector<QueryBlock>& blocks, Worker& worker,
                RowRange range) const;
    void score_or_defer(BatchQuery& batch_query, Worker& worker, std::size_t q,
                        const PassedRow& row) const;
    void score_near(BatchQuery& batch_query, Worker& worker) const;
    void defer(BatchQuery& batch_query, Worker& worker, std::size_t q, const PassedRow& row) const;
    void score_rows(BatchQuery& batch_query, Worker& worker, std::size_t q,
                    std::span<const PassedRow> rows) const;
    void score(BatchQuery& batch_query, Worker& worker, std::size_t q,
               std::span<const Row> rows) const;
    void score_uncovered(BatchQueries& batch_queries, Worker& worker, RowRange range) const;
    void score_deferred(BatchQueries& batch_queries, std::vector<Worker>& workers,
                        ThreadPool& pool) const;

    const format::Model& model_;
    const DotKernel& kernel_;
    const PlaneView plane_;
    const std::size_t tile_groups_;
};

}  // namespace gloved::kernels::cpu
