// Cosine queries by a plane: most rows are left out unread, and of the others the most promising
// are read first.
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

/// The plane of a model and the way to its answers. A row that the plane lets through is not read
/// at once: the threshold that let it pass is of the rows so far, and the final one will leave most
/// of them out. What is read at once are rows whose estimate beats the threshold, since they raise
/// it; the others wait, and meet later cutoffs before they are read. The order in which rows are
/// read is a matter of speed alone.
class PlanePass {
  public:
    /// Makes the plane. Model, kernels and pool must outlive it. Throws std::bad_alloc.
    PlanePass(const format::Model& model, const ScanKernels& kernels, ThreadPool& pool);

    const planes::Plane& plane() const { return plane_; }
    /// The instruction set, for people.
    std::string_view kernel_name() const { return plane_kernel_.name; }

    /// answers[i] to queries[i], each a Cosine without a range of its own, over `range`. Throws
    /// std::bad_alloc. One thread at a time.
    void run(std::span<const Query* const> queries, RowRange range,
             std::span<Answer* const> answers);

  private:
    class Lane;
    struct Waiting;
    struct Worker;
    /// A deque: threads share lanes, which do not move.
    using Lanes = std::deque<Lane>;

    void sift(Lanes& lanes, const std::vector<LaneBlock>& blocks, Worker& worker,
              RowRange range) const;
    void take(Lane& lane, Waiting& waiting, const Passed& row) const;
    void settle(Lane& lane, Waiting& waiting) const;
    void read(Lane& lane, Waiting& waiting, std::span<const Passed> rows) const;
    void read_uncovered(Lanes& lanes, Worker& worker, RowRange range) const;
    void offer(Lane& lane, Waiting& waiting, const Candidate& candidate) const;
    void finish(Lanes& lanes, std::vector<Worker>& workers);
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
