#include "kernels/cpu/canonical_scan.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iterator>
#include <variant>

#include "kernels/canonical.hpp"
#include "kernels/cpu/best_hits.hpp"
#include "kernels/cpu/eligible.hpp"
#include "kernels/prefetch.hpp"
#include "kernels/row_pairs.hpp"

namespace gloved::kernels::cpu {
namespace {

/// Bytes of rows in a tile. They stay in the L2 cache while each group of queries is multiplied
/// with them.
constexpr std::size_t kTileBytes = std::size_t{64} * 1024;
/// Tiles that a thread claims at a time.
constexpr std::size_t kTilesPerClaim = 8;
/// Listed rows that justify another thread.
constexpr std::size_t kListedGrain = 512;
/// Listed rows are far apart in memory: a row is prefetched while those before it are scored.
constexpr std::size_t kPrefetchRows = 4;

/// A query of the batch, and what is known of its answer. Shared by all threads.
struct BatchQuery {
    BestHits best;
    const Query& query;
    std::atomic<std::uint64_t> count = 0;     // of CountBefore
    Hit target;                               // of CountBefore: the hit to compare with
    std::vector<const QueryVector*> vectors;  // of CosMul: the positives, then the negatives
    const Eligible eligible;

    BatchQuery(const Query& of, const format::Model& model, const RowLists& lists)
        : best(of.k, of.filter.min_score), query(of), eligible(of, model, lists) {
        if (const auto* cosine = std::get_if<Cosine>(&of.kind)) {
            vectors = {&cosine->vector};
        } else if (const auto* counting = std::get_if<CountBefore>(&of.kind)) {
            vectors = {&counting->vector};
            target = counted_hit(model, *counting);
        } else {
            const auto& product = std::get<CosMul>(of.kind);
            for (const QueryVector& vector : product.positives) vectors.push_back(&vector);
            for (const QueryVector& vector : product.negatives) vectors.push_back(&vector);
        }
    }
};

/// Turns cosines of rows with the vectors of a 3CosMul query, (vectors, rows), into scores, which
/// take the place of those with the first.
void to_products(double* cosines, std::size_t rows, std::size_t positives, std::size_t vectors) {
    for (std::size_t r = 0; r < rows; ++r) {
        double above = 1.0;
        double below = 1.0;
        for (std::size_t v = 0; v < vectors; ++v)
            (v < positives ? above : below) *= cosmul_part(cosines[v * rows + r]);
        cosines[r] = cosmul_score(above, below);
    }
}

/// The answer when `rows` rows have been scored.
Answer answer_of(BatchQuery& batch_query, std::size_t rows, std::size_t dim) {
    Answer answer;
    answer.hits = batch_query.best.take();
    answer.count = batch_query.count;
    Certificate& certificate = answer.certificate;
    certificate.pass = Pass::float64;
    certificate.scanned = certificate.survivors = certificate.rescored = rows;
    certificate.read_bytes = rows * dim * sizeof(float);
    return answer;
}

/// Counts those of the rows from `first_row` on that come before the query's target.
void count_hits(BatchQuery& batch_query, std::size_t first_row, std::span<const double> scores) {
    const Hit target = batch_query.target;
    const auto count_rows = [&](std::size_t begin, std::size_t end, double reached) {
        // NaN, of a damaged target, stays. No row reaches it.
        const double least = std::max(reached, batch_query.query.filter.min_score);
        std::uint64_t count = 0;
        if (batch_query.eligible.takes_all()) {
            // Compilers make vectors of it; of a usual word's rows nobody can foretell which count.
            for (std::size_t r = begin; r < end; ++r) count += scores[r] >= least ? 1U : 0U;
        } else {
            for (std::size_t r = begin; r < end; ++r) {
                const bool reaches = scores[r] >= least;
                if (reaches && batch_query.eligible(static_cast<Row>(first_row + r))) ++count;
            }
        }
        return count;
    };
    // As comes_before: rows before the target need its score, others the next higher one.
    const std::size_t tied = std::min<std::size_t>(
        scores.size(), std::max<std::size_t>(target.row, first_row) - first_row);
    batch_query.count += count_rows(0, tied, target.score) +
                         count_rows(tied, scores.size(), std::nextafter(target.score, HUGE_VAL));
}

/// Adds those of the rows from `first_row` on that are among the best so far. `hits`: memory for
/// them.
void take_hits(BatchQuery& batch_query, std::vector<Hit>& hits, std::size_t first_row,
               std::span<const double> scores) {
    const double threshold = batch_query.best.threshold();
    hits.clear();
    for (std::size_t r = 0; r < scores.size(); ++r) {
        const Hit hit{static_cast<Row>(first_row + r), scores[r]};
        // False for NaN, of a damaged row.
        if (hit.score >= threshold && batch_query.eligible(hit.row)) hits.push_back(hit);
    }
    if (!hits.empty()) batch_query.best.add(hits);
}

}  // namespace

/// The queries of a call, with their vectors in groups.
struct CanonicalScan::Batch {
    std::deque<BatchQuery> queries;  // a deque, because a BatchQuery cannot move
    std::vector<QueryGroup> groups;
    std::size_t vector_count = 0;

    /// `width`: most vectors of a group.
    Batch(std::span<const Query* const> asked, const format::Model& model, const RowLists& lists,
          std::size_t width) {
        std::vector<const QueryVector*> vectors;
        for (const Query* query : asked) {
            assert(query->k > 0);
            BatchQuery& batch_query = queries.emplace_back(*query, model, lists);
            for (const QueryVector* vector : batch_query.vectors) {
                assert(vector->values.size() == model.dim() && vector->norm > 0);
                vectors.push_back(vector);
            }
        }
        for (std::size_t at = 0; at < vectors.size(); at += width) {
            groups.emplace_back(
                std::span(vectors).subspan(at, std::min(width, vectors.size() - at)));
        }
        vector_count = vectors.size();
    }
};

/// One thread's memory.
struct CanonicalScan::Worker {
    std::vector<double> dots;  // (vectors, rows of a tile), then cosines, then scores
    std::vector<Hit> hits;

    Worker(const Batch& batch, std::size_t tile_rows) : dots(batch.vector_count * tile_rows) {}
};

CanonicalScan::CanonicalScan(const format::Model& model, const RowLists& lists,
                             const DotKernel& kernel)
    : model_(model),
      lists_(lists),
      kernel_(kernel),
      tile_rows_(std::max<std::size_t>(1, kTileBytes / (model.dim() * sizeof(float)))) {}

void CanonicalScan::run(std::span<const Query* const> queries, RowRange range,
                        std::span<Answer* const> answers, ThreadPool& pool) const {
    Batch batch(queries, model_, lists_, kernel_.width);
    std::vector<Worker> workers(pool.size(), Worker(batch, tile_rows_));
    const auto work = [&](unsigned worker, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; at += tile_rows_)
            score(batch, workers[worker], range.first + at, std::min(tile_rows_, end - at));
    };
    pool.for_ranges(range.size(), tile_rows_ * kTilesPerClaim, work);
    for (std::size_t q = 0; q < batch.queries.size(); ++q)
        *answers[q] = answer_of(batch.queries[q], range.size(), model_.dim());
}

Answer CanonicalScan::run(const Query& query, std::span<const Row> rows, ThreadPool& pool) const {
    const Query* const queries[] = {&query};
    Batch batch(queries, model_, lists_, kernel_.width);
    std::vector<Row> eligible;
    std::ranges::copy_if(rows, std::back_inserter(eligible), batch.queries[0].eligible);
    pool.for_ranges(eligible.size(), kListedGrain, [&](std::size_t begin, std::size_t end) {
        Worker worker(batch, 1);
        for (std::size_t i = begin; i < end; ++i) {
            if (i + kPrefetchRows < end) prefetch(model_.vector(eligible[i + kPrefetchRows]));
            score(batch, worker, eligible[i], 1);
        }
    });
    return answer_of(batch.queries[0], eligible.size(), model_.dim());
}

/// Scores `rows` rows from `first_row` on for all queries of the batch.
void CanonicalScan::score(Batch& batch, Worker& worker, std::size_t first_row,
                          std::size_t rows) const {
    const float* const block = model_.vector(static_cast<Row>(first_row)).data();
    double* dots = worker.dots.data();
    for (const QueryGroup& group : batch.groups) {
        kernel_.dots_of_block(group, block, rows, model_.dim(), dots);
        dots += group.count * rows;
    }
    const double* const norms = model_.norms().data() + first_row;
    double* scores = worker.dots.data();
    for (BatchQuery& batch_query : batch.queries) {
        const std::vector<const QueryVector*>& vectors = batch_query.vectors;
        for (std::size_t v = 0; v < vectors.size(); ++v)
            kernel_.cosines(scores + v * rows, norms, rows, vectors[v]->norm);
        if (const auto* product = std::get_if<CosMul>(&batch_query.query.kind))
            to_products(scores, rows, product->positives.size(), vectors.size());
        if (std::holds_alternative<CountBefore>(batch_query.query.kind)) {
            count_hits(batch_query, first_row, std::span(scores, rows));
        } else {
            take_hits(batch_query, worker.hits, first_row, std::span(scores, rows));
        }
        scores += vectors.size() * rows;
    }
}

}  // namespace gloved::kernels::cpu
