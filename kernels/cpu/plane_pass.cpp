#include "kernels/cpu/plane_pass.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/format/model.hpp"
#include "kernels/best_hits.hpp"
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
/// Number of deferred rows that triggers pruning: at first, and at most.
constexpr std::size_t kFirstPruneAt = 64;
constexpr std::size_t kMaxPruneAt = 16384;
/// How many of more than half as many are scored then: enough that the next pruning is not soon.
constexpr std::ptrdiff_t kScoredOfMany = 2048;
/// Rows scored together.
constexpr std::size_t kMaxScored = 64;
/// Deferred rows of a query that a thread scores at a time: as many that justify another thread, up
/// to as many that threads are busy for about the same time.
constexpr std::size_t kMinScoreGrain = 16;
constexpr std::size_t kMaxScoreGrain = 256;

/// Compares one row with a cutoff as PlaneKernel::filter does.
bool reaches(const PassedRow& row, const planes::PlaneCutoff& cutoff) {
    const auto projection = static_cast<float>(row.projection);
    const auto residual = static_cast<float>(row.residual);
    return !(static_cast<float>(row.sum) <
             projection * cutoff.of_projection + (cutoff.constant - residual * cutoff.of_residual));
}

}  // namespace

/// A query of the batch, with its digits and the best hits so far. Shared by all threads.
struct PlanePass::BatchQuery {
    const QueryVector& vector;
    const Eligible eligible;
    const QueryGroup components;
    const planes::PlaneQuery digits;
    const planes::DigitFacts& facts;  // of the high bytes, which rows' sums are of
    const std::size_t dim;
    const int top_level;
    const double sum_scale;  // q·c = sum_scale · (2 Σ aQ − top level · ΣQ), in units of stored
                             // bounds
    BestHits best;
    // Rows with lower bounds on their scores, by sums of codes. Perhaps they are among the best
    // hits too: hence apart from them.
    BestHits bounded;

    BatchQuery(const Query& query, const format::Model& model, const PlaneView& plane)
        : vector(std::get<Cosine>(query.kind).vector),
          eligible(query, model),
          components(std::array{&vector}),
          digits(planes::make_plane_query(vector)),
          facts(digits.high_facts),
          dim(model.dim()),
          top_level(plane.top_level),
          sum_scale(facts.scale / planes::stored_step(dim, top_level)),
          best(query.k, query.filter.min_score),
          bounded(query.k, query.filter.min_score) {}

    planes::PlaneCutoff cutoff(double min_score) const {
        return planes::plane_cutoff(facts, min_score, dim, top_level);
    }

    /// Removes the rows that the plane rules out by now.
    void drop_rejected(std::vector<PassedRow>& rows) const {
        const planes::PlaneCutoff now = cutoff(best.threshold());
        std::erase_if(rows, [&](const PassedRow& row) { return !reaches(row, now); });
    }

    double lower_bound(const PassedRow& row) const {
        return planes::plane_lower(facts, row.sum, row.projection, row.residual, dim, top_level);
    }

    /// Estimates a row's score. Decides the order of reading and nothing else.
    double estimate(const PassedRow& row) const {
        const double p = row.projection;
        const double h = row.residual;
        return (2.0 * row.sum - top_level * facts.sum) * sum_scale * p / (p * p + h * h);
    }
};

/// One thread's state for a query.
struct PlanePass::QueryProgress {
    std::vector<PassedRow> deferred;  // passed, not scored yet; with the model's row numbers
    std::size_t prune_at = kFirstPruneAt;
    std::uint64_t survivors = 0;  // rows that were scored
};

/// One thread's state for a pass.
struct PlanePass::Worker {
    std::vector<QueryProgress> progress;       // one per query
    std::vector<double> thresholds;            // of `cutoffs`; one per query
    std::vector<planes::PlaneCutoff> cutoffs;  // one per query and padding
    std::vector<PassedRow> passed;             // by a tile and a block
    // Of a single query, the rows that are likely to raise its threshold: in this tile, still being
    // prefetched, and in the one before.
    std::vector<PassedRow> near;
    std::vector<PassedRow> near_before;
    std::size_t filtered_groups = 0;
    std::vector<const float*> vectors;  // of rows that are being scored
    std::vector<double> dots;
};

PlaneView view(const planes::Plane& plane, const PlaneLoop& loop) {
    return {.bytes = plane.bytes(),
            .group_bytes = plane.shape().group_bytes(),
            .steps = plane.shape().steps(),
            .step_dims = planes::kStepDims,
            .top_level = planes::kTopLevel,
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
            .loop = loop,
            .uncovered = uncovered};
}

PlanePass::PlanePass(const format::Model& model, const DotKernel& kernel, const PlaneView& plane)
    : model_(model),
      kernel_(kernel),
      plane_(plane),
      tile_groups_(std::max<std::size_t>(1, kTileBytes / plane.group_bytes)) {}

void PlanePass::run(std::span<const Query* const> queries, RowRange range,
                    std::span<Answer* const> answers, ThreadPool& pool) const {
    BatchQueries batch_queries;
    for (const Query* query : queries) batch_queries.emplace_back(*query, model_, plane_);
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
        worker.progress.resize(batch_queries.size());
        worker.vectors.resize(kMaxScored);
        worker.dots.resize(kMaxScored);
        worker.thresholds.assign(batch_queries.size(), std::numeric_limits<double>::quiet_NaN());
        worker.cutoffs.assign(blocks.size() * width, kNothingPasses);
        // No block is wider than the first.
        worker.passed.resize(tile_groups_ * planes::kGroupRows * blocks[0].width);
    }

    const std::size_t grain = tile_groups_ * planes::kGroupRows * kTilesPerClaim;
    pool.for_ranges(range.size(), grain, [&](unsigned worker, std::size_t begin, std::size_t end) {
        const RowRange here{range.first + begin, range.first + end};
        score_uncovered(batch_queries, workers[worker], here);
        filter(batch_queries, blocks, workers[worker], here);
    });
    score_deferred(batch_queries, workers, pool);

    const std::size_t groups = range.size() == 0 ? 0
                                                 : (range.last - 1) / planes::kGroupRows -
                                                       range.first / planes::kGroupRows + 1;
    for (std::size_t q = 0; q < batch_queries.size(); ++q) {
        BatchQuery& batch_query = batch_queries[q];
        Answer& answer = *answers[q];
        for (const Worker& worker : workers)
            answer.certificate.survivors += worker.progress[q].survivors;
        answer.certificate.rescored = answer.certificate.survivors;
        answer.hits = batch_query.best.take();
        answer.certificate.scanned = range.size();
        answer.certificate.read_bytes = groups * plane_.group_bytes +
                                        answer.certificate.survivors * model_.dim() * sizeof(float);
        answer.certificate.rejected_below = batch_query.best.threshold();
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
            for (std::size_t q = first_query; q < first_query + block.used; ++q) {
                // A threshold rises rarely, and a cutoff costs a square root.
                const double threshold = batch_queries[q].best.threshold();
                if (threshold == worker.thresholds[q]) continue;
                worker.thresholds[q] = threshold;
                worker.cutoffs[q] = batch_queries[q].cutoff(threshold);
            }
            const std::size_t count = plane_.loop.filter(block.width)(
                plane_.group(group), groups, plane_.steps, block.digits.data(),
                worker.cutoffs.data() + first_query, worker.passed.data());
            for (std::size_t p = 0; p < count; ++p) {
                PassedRow& passed = worker.passed[p];
                passed.row += static_cast<std::uint32_t>(group * planes::kGroupRows);
                // A range may begin and end within a group. Uncovered rows (residual 0) are scored
                // by score_uncovered.
                if (passed.row < range.first || passed.row >= range.last || passed.residual == 0)
                    continue;
                const std::size_t q = first_query + passed.query;
                score_or_defer(batch_queries[q], worker, q, passed);
            }
            first_query += block.used;
        }
        score_near(batch_queries[0], worker);
    }
}

/// Scores the rows that were near in the tile before this one, and still are.
void PlanePass::score_near(BatchQuery& batch_query, Worker& worker) const {
    for (const PassedRow& row : worker.near_before) {
        if (batch_query.estimate(row) >= batch_query.best.threshold()) {
            score(batch_query, worker, 0, std::span(&row.row, 1));
        } else {
            defer(batch_query, worker, 0, row);
        }
    }
    worker.near_before.clear();
    worker.near_before.swap(worker.near);
}

void PlanePass::score_or_defer(BatchQuery& batch_query, Worker& worker, std::size_t q,
                               const PassedRow& row) const {
    // Checked first, so that no vector of an ineligible row is read.
    if (!batch_query.eligible(row.row)) return;
    if (plane_.fine()) {
        const Hit bounded{row.row, batch_query.lower_bound(row)};
        if (bounded.score > batch_query.best.threshold()) {
            batch_query.bounded.add(std::span(&bounded, 1));
            batch_query.best.raise(batch_query.bounded.threshold());
        }
    } else if (batch_query.estimate(row) >= batch_query.best.threshold()) {
        // The rows of many queries would not stay in the cache.
        if (worker.progress.size() > 1)
            return score_rows(batch_query, worker, q, std::span(&row, 1));
        prefetch(model_.vector(row.row));
        worker.near.push_back(row);
        return;
    }
    defer(batch_query, worker, q, row);
}

/// Leaves a row for later. Shortens a long list of such rows: drops what the threshold rejects by
/// now, and if too many are left to wait for a higher one, scores the best, which raise it.
void PlanePass::defer(BatchQuery& batch_query, Worker& worker, std::size_t q,
                      const PassedRow& row) const {
    QueryProgress& progress = worker.progress[q];
    std::vector<PassedRow>& rows = progress.deferred;
    rows.push_back(row);
    if (rows.size() < progress.prune_at) return;
    batch_query.drop_rejected(rows);
    if (rows.size() > kMaxPruneAt / 2) {
        const auto end = rows.begin() + kScoredOfMany;
        std::ranges::nth_element(rows, end, [&](const PassedRow& a, const PassedRow& b) {
            return batch_query.estimate(a) > batch_query.estimate(b);
        });
        score_rows(batch_query, worker, q, std::span(rows.begin(), end));
        rows.erase(rows.begin(), end);
        batch_query.drop_rejected(rows);
    }
    progress.prune_at = std::clamp(4 * rows.size(), kFirstPruneAt, kMaxPruneAt);
}

/// Scores those of `rows` that still reach the threshold.
void PlanePass::score_rows(BatchQuery& batch_query, Worker& worker, std::size_t q,
                           std::span<const PassedRow> rows) const {
    for (std::size_t first = 0; first < rows.size(); first += kMaxScored) {
        const planes::PlaneCutoff cutoff = batch_query.cutoff(batch_query.best.threshold());
        Row reaching[kMaxScored];
        std::size_t count = 0;
        for (const PassedRow& row : rows.subspan(first, std::min(kMaxScored, rows.size() - first)))
            if (reaches(row, cutoff)) reaching[count++] = row.row;
        score(batch_query, worker, q, std::span(reaching).first(count));
    }
}

/// Scores at most kMaxScored rows.
void PlanePass::score(BatchQuery& batch_query, Worker& worker, std::size_t q,
                      std::span<const Row> rows) const {
    for (std::size_t i = 0; i < rows.size(); ++i) worker.vectors[i] = model_.vector(rows[i]).data();
    kernel_.dots_of_rows(batch_query.components, worker.vectors.data(), rows.size(), model_.dim(),
                         worker.dots.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double norm = model_.norms()[rows[i]];
        const Hit hit{rows[i], score_from_dot(worker.dots[i], batch_query.vector.norm, norm)};
        if (hit.score >= batch_query.best.threshold()) batch_query.best.add(std::span(&hit, 1));
    }
    worker.progress[q].survivors += rows.size();
}

/// Scores the rows that the plane does not cover, for every query.
void PlanePass::score_uncovered(BatchQueries& batch_queries, Worker& worker, RowRange range) const {
    const auto uncovered = plane_.uncovered;
    for (auto row = std::lower_bound(uncovered.begin(), uncovered.end(), range.first);
         row != uncovered.end() && *row < range.last; ++row) {
        for (std::size_t q = 0; q < batch_queries.size(); ++q) {
            if (batch_queries[q].eligible(*row))
                score(batch_queries[q], worker, q, std::span(&*row, 1));
        }
    }
}

/// Scores the deferred rows that still reach the threshold: of each query, first those whose
/// estimates reach it, since they raise it.
void PlanePass::score_deferred(BatchQueries& batch_queries, std::vector<Worker>& workers,
                               ThreadPool& pool) const {
    std::vector<std::vector<PassedRow>> rows(batch_queries.size());
    pool.for_ranges(batch_queries.size(), 1, [&](std::size_t q, std::size_t) {
        const BatchQuery& batch_query = batch_queries[q];
        const auto take = [&](const std::vector<PassedRow>& some) {
            rows[q].insert(rows[q].end(), some.begin(), some.end());
        };
        for (const Worker& worker : workers) {
            take(worker.progress[q].deferred);
            // Those of the last two tiles; there are none but of a single query.
            take(worker.near_before);
            take(worker.near);
        }
        batch_query.drop_rejected(rows[q]);
        std::partition(rows[q].begin(), rows[q].end(), [&](const PassedRow& row) {
            return batch_query.estimate(row) >= batch_query.best.threshold();
        });
    });
    struct Piece {
        std::size_t query;
        std::span<const PassedRow> rows;
    };
    std::vector<Piece> pieces;
    for (std::size_t q = 0; q < batch_queries.size(); ++q) {
        const std::size_t share = (rows[q].size() + pool.size() - 1) / pool.size();
        const std::size_t grain = std::clamp(share, kMinScoreGrain, kMaxScoreGrain);
        for (std::size_t at = 0; at < rows[q].size(); at += grain) {
            pieces.push_back(
                {q, std::span(rows[q]).subspan(at, std::min(grain, rows[q].size() - at))});
        }
    }
    // For a few pieces, waking the other threads costs more than it saves.
    const std::size_t pieces_at_once = pieces.size() < pool.size() ? pool.size() : 1;
    pool.for_ranges(
        pieces.size(), pieces_at_once, [&](unsigned worker, std::size_t begin, std::size_t end) {
            for (const Piece& piece : std::span(pieces).subspan(begin, end - begin)) {
                score_rows(batch_queries[piece.query], workers[worker], piece.query, piece.rows);
            }
        });
}

}  // namespace gloved::kernels::cpu
