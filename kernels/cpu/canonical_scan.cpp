#include "kernels/cpu/canonical_scan.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
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
    const Query& query;
    const Eligible eligible;
    std::vector<const QueryVector*> vectors;  // of CosMul: the positives, then the negatives
    std::size_t first_vector = 0;             // index among all vectors of the batch
    Hit target;                               // of CountBefore: the hit to compare with
    BestHits best;
    std::atomic<std::uint64_t> count = 0;  // of CountBefore

    BatchQuery(const Query& of, const format::Model& model, const RowLists& lists)
        : query(of), eligible(of, model, lists), best(of.k, of.filter.min_score) {
        if (const auto* cosine = std::get_if<Cosine>(&of.kind)) {
            vectors = {&cosine->vector};
        } else if (const auto* counting = std::get_if<CountBefore>(&of.kind)) {
            vectors = {&counting->vector};
            target = counted_hit(model, *counting);
            best.raise(target.score);
        } else {
            const auto& product = std::get<CosMul>(of.kind);
            for (const QueryVector& vector : product.positives) vectors.push_back(&vector);
            for (const QueryVector& vector : product.negatives) vectors.push_back(&vector);
        }
    }
};

/// The dot products of a query vector with the rows of a tile.
struct Dots {
    const double* first = nullptr;
    std::size_t stride = 0;  // from row to row
    double operator[](std::size_t row) const { return first[row * stride]; }
};

/// The canonical score of row `r` of a tile, with this norm, from its dot products with the query's
/// vectors.
double score_of(const BatchQuery& batch_query, const Dots* dots, std::size_t r, double row_norm) {
    const auto cosine = [&](std::size_t v) {
        return score_from_dot(dots[v][r], batch_query.vectors[v]->norm, row_norm);
    };
    const auto* product = std::get_if<CosMul>(&batch_query.query.kind);
    if (product == nullptr) return cosine(0);
    double above = 1.0;
    double below = 1.0;
    const std::size_t positives = product->positives.size();
    for (std::size_t v = 0; v < batch_query.vectors.size(); ++v)
        (v < positives ? above : below) *= cosmul_part(cosine(v));
    return cosmul_score(above, below);
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
            batch_query.first_vector = vectors.size();
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
    std::vector<double> products;  // of a tile: for each group, shape (rows, count)
    std::vector<Dots> dots;        // one per vector: where its products are
    std::vector<Hit> hits;

    Worker(const Batch& batch, std::size_t tile_rows)
        : products(batch.vector_count * tile_rows), dots(batch.vector_count) {}
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
    const std::size_t grain = tile_rows_ * kTilesPerClaim;
    std::atomic<std::size_t> next = range.first;
    const auto work = [&](unsigned worker) {
        for (std::size_t begin;
             (begin = next.fetch_add(grain, std::memory_order_relaxed)) < range.last;) {
            const std::size_t end = std::min(begin + grain, range.last);
            for (std::size_t row = begin; row < end; row += tile_rows_)
                score(batch, workers[worker], row, std::min(tile_rows_, end - row));
        }
    };
    // For a few rows, waking the other threads costs more than it saves.
    if (range.size() <= grain) {
        work(0);
    } else {
        pool.run(work);
    }
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
    double* products = worker.products.data();
    Dots* dots = worker.dots.data();
    for (const QueryGroup& group : batch.groups) {
        kernel_.dots_of_block(group, block, rows, model_.dim(), products);
        for (std::size_t q = 0; q < group.count; ++q) *dots++ = {products + q, group.count};
        products += rows * group.count;
    }
    const double* const norms = model_.norms().data() + first_row;
    for (BatchQuery& batch_query : batch.queries) {
        const bool counts = std::holds_alternative<CountBefore>(batch_query.query.kind);
        const double threshold = batch_query.best.threshold();
        worker.hits.clear();
        for (std::size_t r = 0; r < rows; ++r) {
            const Hit hit{
                static_cast<Row>(first_row + r),
                score_of(batch_query, worker.dots.data() + batch_query.first_vector, r, norms[r])};
            // Negated so that NaN, of a damaged row, is left out.
            if (!(hit.score >= threshold) || !batch_query.eligible(hit.row)) continue;
            if (counts &&
                (hit.row == batch_query.target.row || !comes_before(hit, batch_query.target)))
                continue;
            worker.hits.push_back(hit);
        }
        if (counts) {
            batch_query.count += worker.hits.size();
        } else if (!worker.hits.empty()) {
            batch_query.best.add(worker.hits);
        }
    }
}

}  // namespace gloved::kernels::cpu
