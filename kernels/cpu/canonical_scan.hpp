// CanonicalScan: the cpu engine's pass that scores every row, for queries of all kinds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/cpu/dots.hpp"
#include "kernels/engine.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {

struct ScanTile;

/// Computes canonical scores of rows. A row that was read is multiplied with the vectors of all
/// queries. Several calls with different pools may run at the same time.
class CanonicalScan {
  public:
    /// Maximum number of query vectors of a call that pays: with more, a tile's products leave the
    /// cache.
    static constexpr std::size_t kMaxVectors = 64;

    /// All must outlive it.
    CanonicalScan(const format::Model& model, const DotKernel& kernel);

    /// Answers queries[i] over the rows of `range` and stores the answer in answers[i]. The
    /// queries' own filter.rows are ignored. Throws std::bad_alloc.
    void run(std::span<const Query* const> queries, RowRange range,
             std::span<Answer* const> answers, ThreadPool& pool) const;

    /// Does the same over `rows`, in ascending order, which are all that meet the filter of each of
    /// the queries. Throws std::bad_alloc.
    void run(std::span<const Query* const> queries, std::span<const Row> rows,
             std::span<Answer* const> answers, ThreadPool& pool) const;

  private:
    struct Batch;
    struct Worker;

    void score(Batch& batch, Worker& worker, const ScanTile& tile) const;

    const format::Model& model_;
    const DotKernel& kernel_;
    const std::size_t tile_rows_;
};

}  // namespace gloved::kernels::cpu
