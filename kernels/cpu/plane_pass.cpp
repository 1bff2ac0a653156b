#include "kernels/cpu/plane_pass.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>

#include "common/format/model.hpp"
#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/eligible.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/prefetch.hpp"

namespace gloved::kernels::cpu {
namespace {

/// A tile and the rows listed from it should stay in the L2 cache while every block of queries is
/// compared with it.
constexpr std::size_t kTileBytes = std::size_t{80} * 1024;
/// Groups of a thread's first tile; others are at most as large as all before. Small, because all
/// rows pass while there is no threshold.
constexpr std::size_t kFirstTileGroups = 4;
/// Tiles that a thread claims at a time.
constexpr std::size_t kTilesPerClaim = 4;
/// Number of deferred rows that triggers pruning: at first, when any threshold is much better than
/// none, and at most.
constexpr std::size_t kFirstPruneAt = 64;
constexpr std::size_t kMaxPruneAt = 16384;
/// Vectors are prefetched as many rows ahead as have about these bytes, since they are far apart in
/// memory. More would not stay in the L1 cache.
constexpr std::size_t kPrefetchBytes = 9600;
/// Deferred rows of a query that a thread reads at a time: as many that justify another thread, up
/// to as many that threads are busy for about the same time.
constexpr std::size_t kMinReadGrain = 16;
constexpr std::size_t kMaxReadGrain = 256;

constexpr double kNoThreshold = -std::numeric_limits<double>::infinity();

/// Compares one row with a cutoff as PlaneKernel::filter does.
bool reaches(const PassedRow& row, const planes::PlaneCutoff& cutoff) {
    const auto projection = static_cast<float>(row.projection);
    const auto residual = static_cast<float>(row.residual);
    return !(static_cast<float>(row.sum) <
             projection * cutoff.of_projection + (cutoff.constant - residual * cutoff.of_residual));
}

/// The k largest lower bounds that any thread has found. The smallest of them is a threshold: k
/// eligible rows reach it.
class LargestLowerBounds {
  public:
    explicit LargestLowerBounds(std::size_t k) : k_(k) {}

    void add(double lower, Threshold& threshold) {
        if (lower <= threshold.get()) return;
        const std::lock_guard lock(mutex_);
        if (heap_.size() == k_) {
            if (lower <= heap_.front()) return;
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
            heap_.back() = lower;
        } else {
            heap_.push_back(lower);
        }
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
        if (heap_.size() == k_) threshold.raise(heap_.front());
    }

  private:
    std::size_t k_;
    std::mutex mutex_;
    std::vector<double> heap_;
};

}  // namespace

/// A query of the batch, with its digits and threshold. Shared by all threads.
class PlanePass::BatchQuery {
  public:
    BatchQuery(const Query& query, const format::Model& model, const RowLists& lists,
               const PlaneView& plane)
        : query_(query),
          eligible(query, model, lists),
          digits(planes::make_plane_query(vector())),
          threshold(query.filter.min_score),
          lower_bounds(query.k),
          sum_lower_bounds(query.k),
          scaled_(vector().values),
          facts_(plane.whole_digits ? digits.facts : digits.high_facts),
          dim_(model.dim()),
          top_level_(plane.top_level),
          // q·c = scale · (2 Σ aQ − top level · ΣQ)
          scale_in_units_(facts_.scale / planes::unit_of(dim_, top_level_)) {
        const int exponent = scale_exponent(vector().norm);
        for (float& value : scaled_) value = std::ldexp(value, exponent);
        scaled_norm_ = canonical_norm(scaled_.data(), scaled_.size());
    }

    const Query& query() const { return query_; }
    const QueryVector& vector() const { return std::get<Cosine>(query_.kind).vector; }
    const float* scaled() const { return scaled_.data(); }
    double scaled_norm() const { return scaled_norm_; }

    planes::PlaneCutoff cutoff(double min_score) const {
        return planes::plane_cutoff(facts_, min_score, dim_, top_level_);
    }
    planes::PlaneCutoff coarse_cutoff(double min_score) const {
        return planes::plane_cutoff(digits.high_facts, min_score, dim_, top_level_);
    }

    double lower_bound(const PassedRow& row) const {
        return planes::plane_lower(facts_, row.sum, row.projection, row.residual, dim_, top_level_);
    }

    /// Estimates a row's score. Decides the order of reading and nothing else.
    double estimate(const PassedRow& row) const {
        const double p = row.projection;
        const double h = row.residual;
        return (2.0 * row.sum - top_level_ * facts_.sum) * scale_in_units_ * p / (p * p + h * h);
    }

  private:
    const Query& query_;

  public:
    const Eligible eligible;
    const planes::PlaneQuery digits;
    Threshold threshold;
    LargestLowerBounds lower_bounds;      // of vectors that were read
    LargestLowerBounds sum_lower_bounds;  // of sums of codes, perhaps of the same rows

  private:
    std::vector<float> scaled_;  // by a power of two, as bounds.hpp asks
    double scaled_norm_ = 0;
    const planes::DigitFacts& facts_;  // of the digits that rows' sums are of
    std::size_t dim_;
    int top_level_;
    double scale_in_units_;
};

/// One thread's state for a query.
struct PlanePass::QueryProgress {
    std::vector<PassedRow> deferred;  // passed, not read yet; with the model's row numbers
    std::size_t prune_at = 0;
    CandidateList candidates;  // of rows that have been read
    std::uint64_t survivors = 0;

    explicit QueryProgress(std::size_t k)
        : prune_at(std::clamp(2 * k, kFirstPruneAt, kMaxPruneAt)), candidates(k) {}
};

/// One thread's state for a pass.
struct PlanePass::Worker {
    std::vector<QueryProgress> progress;              // one per query
    std::vector<double> thresholds;                   // of `cutoffs`; one per query
    std::vector<planes::PlaneCutoff> coarse_cutoffs;  // one per query and padding
    std::vector<planes::PlaneCutoff> cutoffs;
    std::vector<PassedRow> passed;  // by a tile and a block
    // Of a single query, the rows that are likely to raise its threshold: in this tile, still being
    // prefetched, and in the one before.
    std::vector<PassedRow> near;
    std::vector<PassedRow> near_before;
    std::size_t filtered_groups = 0;
};

PlaneView view(const planes::Plane& plane, const PlaneLoop& loop) {
    return {.bytes = plane.bytes(),
            .group_bytes = plane.shape().group_bytes(),
            .steps = plane.shape().steps(),
            .step_dims = planes::kStepDims,
            .top_level = planes::kTopLevel,
            .whole_digits = true,
            .loop = loop,
            .uncovered = plane.uncovered()};
}

PlaneView view(const planes::FinePlane& plane, std::span<const Row> uncovered,
               const PlaneLoop& loop) {
    return {.bytes = plane.bytes(),
            .group_bytes = plane.group_bytes(),
            .steps = plane.steps(),
            .step_dims = planes::kFineStepDims,
            .top_level = planes::kFineTopLevel,
            .whole_digits = false,
            .loop = loop,
            .uncovered = uncovered};
}

PlanePass::PlanePass(const format::Model& model, const RowLists& lists, const ScanKernels& kernels,
                     const PlaneView& plane)
    : model_(model),
      lists_(lists),
      kernels_(kernels),
      plane_(plane),
      bound_(score_error_bound(model.dim())),
      tile_groups_(std::max<std::size_t>(1, kTileBytes / plane.group_bytes)),
      prefetch_rows_(std::max<std::size_t>(1, kPrefetchBytes / (model.dim() * sizeof(float)))) {}

void PlanePass::run(std::span<const Query* const> queries, RowRange range,
                    std::span<Answer* const> answers, ThreadPool& pool) const {
    BatchQueries batch_queries;
    for (const Query* query : queries) batch_queries.emplace_back(*query, model_, lists_, plane_);
    const std::size_t width = plane_.loop.width;
    std::vector<QueryBlock> blocks;
    std::vector<const planes::PlaneQuery*> block_queries;
    for (const BatchQuery& batch_query : batch_queries) {
        block_queries.push_back(&batch_query.digits);
        if (block_queries.size() < width && &batch_query != &batch_queries.back()) continue;
        blocks.emplace_back(block_queries, plane_.step_dims);
        block_queries.clear();
    }
    std::vector<Worker> workers(pool.size());
    for (Worker& worker : workers) {
        for (const BatchQuery& batch_query : batch_queries)
            worker.progress.emplace_back(batch_query.query().k);
        worker.thresholds.assign(batch_queries.size(), std::numeric_limits<double>::quiet_NaN());
        worker.coarse_cutoffs.assign(blocks.size() * width, kNothingPasses);
        worker.cutoffs.assign(blocks.size() * width, kNothingPasses);
        // No block is wider than the first.
        worker.passed.resize(tile_groups_ * planes::kGroupRows * blocks[0].width());
    }

    const std::size_t grain = tile_groups_ * planes::kGroupRows * kTilesPerClaim;
    std::atomic<std::size_t> next = range.first;
    const auto work = [&](unsigned worker) {
        for (std::size_t begin;
             (begin = next.fetch_add(grain, std::memory_order_relaxed)) < range.last;) {
            const RowRange here{begin, std::min(begin + grain, range.last)};
            score_uncovered(batch_queries, workers[worker], here);
            filter(batch_queries, blocks, workers[worker], here);
        }
        // Those of the last two tiles.
        read_near(batch_queries[0], workers[worker]);
        read_near(batch_queries[0], workers[worker]);
    };
    // For a few rows, waking the other threads costs more than it saves.
    if (range.size() <= grain) {
        work(0);
    } else {
        pool.run(work);
    }
    read_deferred(batch_queries, workers, pool);

    const std::size_t groups = range.size() == 0 ? 0
                                                 : (range.last - 1) / planes::kGroupRows -
                                                       range.first / planes::kGroupRows + 1;
    for (std::size_t q = 0; q < batch_queries.size(); ++q) {
        BatchQuery& batch_query = batch_queries[q];
        Answer& answer = *answers[q];
        std::vector<Candidate> candidates;
        for (Worker& worker : workers) {
            answer.certificate.survivors += worker.progress[q].survivors;
            worker.progress[q].candidates.drain(candidates);
        }
        CandidateList::prune(candidates, batch_query.query().k, batch_query.threshold);
        answer.certificate.rescored = candidates.size();
        const Query& query = batch_query.query();
        answer.hits = best_hits(candidates, query.k, query.filter.min_score, pool,
                                [&](Row row) { return canonical(batch_query.vector(), row); });
        answer.certificate.scanned = range.size();
        answer.certificate.read_bytes = groups * plane_.group_bytes +
                                        answer.certificate.survivors * model_.dim() * sizeof(float);
        answer.certificate.rejected_below = batch_query.threshold.get();
        answer.certificate.pass = Pass::plane;
    }
}

void PlanePass::filter(BatchQueries& batch_queries, const std::vector<QueryBlock>& blocks,
                       Worker& worker, RowRange range) const {
    const std::size_t last_group = (range.last + planes::kGroupRows - 1) / planes::kGroupRows;
    std::size_t groups = 0;
    for (std::size_t group = range.first / planes::kGroupRows; group < last_group;
         group += groups) {
        groups = std::min(
            {tile_groups_, std::max(kFirstTileGroups, worker.filtered_groups), last_group - group});
        worker.filtered_groups += groups;
        std::size_t first_query = 0;
        for (const QueryBlock& block : blocks) {
            for (std::size_t q = first_query; q < first_query + block.used(); ++q) {
                // A threshold rises rarely, and a cutoff costs a square root.
                const double threshold = batch_queries[q].threshold.get();
                if (threshold == worker.thresholds[q]) continue;
                worker.thresholds[q] = threshold;
                if (plane_.whole_digits)
                    worker.coarse_cutoffs[q] = batch_queries[q].coarse_cutoff(threshold);
                worker.cutoffs[q] = batch_queries[q].cutoff(threshold);
            }
            const std::size_t count =
                plane_.loop.filter(plane_.group(group), groups, plane_.steps,
                                   block.view(worker.coarse_cutoffs.data() + first_query,
                                              worker.cutoffs.data() + first_query),
                                   worker.passed.data());
            for (std::size_t p = 0; p < count; ++p) {
                PassedRow& passed = worker.passed[p];
                passed.row += static_cast<std::uint32_t>(group * planes::kGroupRows);
                // A range may begin and end within a group. Uncovered rows (residual 0) are scored
                // by score_uncovered.
                if (passed.row < range.first || passed.row >= range.last || passed.residual == 0)
                    continue;
                const std::size_t q = first_query + passed.query;
                read_or_defer(batch_queries[q], worker, q, passed);
            }
            first_query += block.used();
        }
        read_near(batch_queries[0], worker);
    }
}

/// Reads the rows that were near in the tile before this one, and still are.
void PlanePass::read_near(BatchQuery& batch_query, Worker& worker) const {
    for (const PassedRow& row : worker.near_before) {
        if (batch_query.estimate(row) >= batch_query.threshold.get()) {
            read_vectors(batch_query, worker.progress[0], std::span(&row, 1));
        } else {
            defer(batch_query, worker.progress[0], row);
        }
    }
    worker.near_before.clear();
    worker.near_before.swap(worker.near);
}

void PlanePass::read_or_defer(BatchQuery& batch_query, Worker& worker, std::size_t q,
                              const PassedRow& row) const {
    // Checked first, so that no vector of an ineligible row is read.
    if (!batch_query.eligible(row.row)) return;
    if (plane_.whole_digits) {
        const double threshold = batch_query.threshold.get();
        if (threshold > kNoThreshold && batch_query.estimate(row) >= threshold) {
            // The rows of many queries would not stay in the cache.
            if (worker.progress.size() > 1)
                return read_vectors(batch_query, worker.progress[q], std::span(&row, 1));
            prefetch(model_.vector(row.row));
            worker.near.push_back(row);
            return;
        }
    } else {
        batch_query.sum_lower_bounds.add(batch_query.lower_bound(row), batch_query.threshold);
    }
    defer(batch_query, worker.progress[q], row);
}

void PlanePass::defer(BatchQuery& batch_query, QueryProgress& progress,
                      const PassedRow& row) const {
    progress.deferred.push_back(row);
    if (progress.deferred.size() >= progress.prune_at) prune_deferred(batch_query, progress);
}

/// Shortens a long list of deferred rows: drops what the threshold rejects by now, and reads some
/// if that is not enough.
void PlanePass::prune_deferred(BatchQuery& batch_query, QueryProgress& progress) const {
    const auto drop_rejected = [&] {
        const planes::PlaneCutoff cutoff = batch_query.cutoff(batch_query.threshold.get());
        std::erase_if(progress.deferred,
                      [&](const PassedRow& row) { return !reaches(row, cutoff); });
    };
    drop_rejected();
    if (progress.deferred.size() <= progress.prune_at / 2) return;
    if (batch_query.threshold.get() > kNoThreshold && progress.prune_at < kMaxPruneAt) {
        // A later threshold may reject them unread.
        progress.prune_at = std::min(2 * progress.prune_at, kMaxPruneAt);
        return;
    }
    // Enough to give a threshold, if there is none, and enough that the next pruning is not soon.
    const std::size_t count =
        std::min(progress.deferred.size(), std::max(batch_query.query().k, progress.prune_at / 8));
    const auto end = progress.deferred.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(progress.deferred.begin(), end, progress.deferred.end(),
                     [&](const PassedRow& a, const PassedRow& b) {
                         return batch_query.estimate(a) > batch_query.estimate(b);
                     });
    read_vectors(batch_query, progress, std::span(progress.deferred).first(count));
    progress.deferred.erase(progress.deferred.begin(), end);
    drop_rejected();
}

/// Reads the vectors of those `rows` that still reach the threshold, and bounds their scores.
void PlanePass::read_vectors(BatchQuery& batch_query, QueryProgress& progress,
                             std::span<const PassedRow> rows) const {
    const std::size_t dim = model_.dim();
    double threshold = batch_query.threshold.get();
    planes::PlaneCutoff cutoff = batch_query.cutoff(threshold);
    for (const PassedRow& row : rows.first(std::min(rows.size(), prefetch_rows_)))
        prefetch(model_.vector(row.row));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i + prefetch_rows_ < rows.size()) prefetch(model_.vector(rows[i + prefetch_rows_].row));
        if (batch_query.threshold.get() != threshold) {
            threshold = batch_query.threshold.get();
            cutoff = batch_query.cutoff(threshold);
        }
        if (!reaches(rows[i], cutoff)) continue;
        const std::size_t row = rows[i].row;
        float dot = 0;
        kernels_.dots(batch_query.scaled(), model_.vector(row).data(), 1, dim, &dot);
        const double cosine =
            static_cast<double>(dot) / (batch_query.scaled_norm() * model_.norms()[row]);
        ++progress.survivors;
        offer(batch_query, progress, {rows[i].row, cosine - bound_, cosine + bound_});
    }
}

double PlanePass::canonical(const QueryVector& vector, std::size_t row) const {
    return canonical_score(vector.values.data(), vector.norm, model_.vector(row).data(),
                           model_.norms()[row], model_.dim());
}

/// Computes the canonical scores, for every query, of the rows that the plane does not cover.
void PlanePass::score_uncovered(BatchQueries& batch_queries, Worker& worker, RowRange range) const {
    const auto uncovered = plane_.uncovered;
    for (auto row = std::lower_bound(uncovered.begin(), uncovered.end(), range.first);
         row != uncovered.end() && *row < range.last; ++row) {
        for (std::size_t q = 0; q < batch_queries.size(); ++q) {
            if (!batch_queries[q].eligible(*row)) continue;
            const double score = canonical(batch_queries[q].vector(), *row);
            ++worker.progress[q].survivors;
            offer(batch_queries[q], worker.progress[q], {*row, score, score});
        }
    }
}

void PlanePass::offer(BatchQuery& batch_query, QueryProgress& progress,
                      const Candidate& candidate) const {
    if (!(candidate.upper >= batch_query.threshold.get())) return;
    progress.candidates.offer(candidate, batch_query.threshold);
    batch_query.lower_bounds.add(candidate.lower, batch_query.threshold);
}

/// Reads the deferred rows that still reach the threshold: per query the k with the best estimates,
/// then the others in memory order.
void PlanePass::read_deferred(BatchQueries& batch_queries, std::vector<Worker>& workers,
                              ThreadPool& pool) const {
    struct Remaining {
        std::vector<PassedRow> best;
        std::vector<PassedRow> others;
    };
    std::vector<Remaining> remaining(batch_queries.size());
    pool.for_ranges(batch_queries.size(), 1, [&](std::size_t q, std::size_t) {
        const BatchQuery& batch_query = batch_queries[q];
        const planes::PlaneCutoff cutoff = batch_query.cutoff(batch_query.threshold.get());
        std::vector<double> estimates;
        for (Worker& worker : workers) {
            std::vector<PassedRow>& rows = worker.progress[q].deferred;
            std::erase_if(rows, [&](const PassedRow& row) { return !reaches(row, cutoff); });
            for (const PassedRow& row : rows) estimates.push_back(batch_query.estimate(row));
        }
        if (estimates.empty()) return;
        const auto last =
            estimates.begin() +
            static_cast<std::ptrdiff_t>(std::min(batch_query.query().k, estimates.size()) - 1);
        std::nth_element(estimates.begin(), last, estimates.end(), std::greater<>());
        for (Worker& worker : workers) {
            for (const PassedRow& row : worker.progress[q].deferred) {
                (batch_query.estimate(row) >= *last ? remaining[q].best : remaining[q].others)
                    .push_back(row);
            }
            worker.progress[q].deferred = {};
        }
    });
    struct Piece {
        std::size_t query;
        std::span<const PassedRow> rows;
    };
    for (const auto list : {&Remaining::best, &Remaining::others}) {
        std::vector<Piece> pieces;
        for (std::size_t q = 0; q < batch_queries.size(); ++q) {
            const std::span<const PassedRow> rows = remaining[q].*list;
            const std::size_t share = (rows.size() + pool.size() - 1) / pool.size();
            const std::size_t grain = std::clamp(share, kMinReadGrain, kMaxReadGrain);
            for (std::size_t at = 0; at < rows.size(); at += grain)
                pieces.push_back({q, rows.subspan(at, std::min(grain, rows.size() - at))});
        }
        std::atomic<std::size_t> next = 0;
        const auto work = [&](unsigned worker) {
            for (std::size_t p;
                 (p = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
                const std::size_t q = pieces[p].query;
                read_vectors(batch_queries[q], workers[worker].progress[q], pieces[p].rows);
            }
        };
        // For a few pieces, waking the other threads costs more than it saves.
        if (pieces.size() < pool.size()) {
            work(0);
        } else {
            pool.run(work);
        }
    }
}

}  // namespace gloved::kernels::cpu
