#include "kernels/cpu/canonical_scan.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "kernels/best_hits.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/eligible.hpp"
#include "kernels/prefetch.hpp"
#include "kernels/row_pairs.hpp"

namespace gloved::kernels::cpu {

/// Rows that are scored together.
struct ScanTile {
    const float* block = nullptr;   // (count, dim)
    const double* norms = nullptr;  // (count)
    std::size_t count = 0;
    std::size_t first = 0;             // row of the model
    std::span<const Row> chosen = {};  // in place of `count` neighbours from `first` on

    Row row(std::size_t r) const {
        return chosen.empty() ? static_cast<Row>(first + r) : chosen[r];
    }
    /// How many of the rows are before a row of the model.
    std::size_t before(Row row) const {
        if (!chosen.empty()) {
            const auto found = std::ranges::lower_bound(chosen, row);
            return static_cast<std::size_t>(found - chosen.begin());
        }
        return std::min<std::size_t>(count, std::max<std::size_t>(row, first) - first);
    }
    /// The place of a row of the model, if it is there.
    std::optional<std::size_t> find(Row sought) const {
        const std::size_t r = before(sought);
        return r < count && row(r) == sought ? std::optional(r) : std::nullopt;
    }
};

namespace {

/// Bytes of rows in a tile. They stay in the L2 cache while each group of queries is multiplied
/// with them.
constexpr std::size_t kTileBytes = std::size_t{64} * 1024;
/// Tiles that a thread claims at a time.
constexpr std::size_t kTilesPerClaim = 8;
/// Chosen rows that justify another thread.
constexpr std::size_t kChosenGrain = 512;
/// Chosen rows are far apart in memory: a row is prefetched while those before it are copied.
constexpr std::size_t kPrefetchRows = 8;

/// A query of the batch, and what is known of its answer. Shared by all threads.
struct BatchQuery {
    BestHits best;
    const Query& query;
    std::atomic<std::uint64_t> count = 0;     // of CountBefore
    Hit target;                               // of CountBefore: the hit to compare with
    std::vector<const QueryVector*> vectors;  // of CosMul: the positives, then the negatives
    const Eligible eligible;

    BatchQuery(const Query& of, const format::Model& model, bool passed)
        : best(of.k, of.filter.min_score), query(of), eligible(of, model, passed) {
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

/// Counts the tile's rows that come before the query's target.
void count_hits(BatchQuery& batch_query, std::span<const double> scores, const ScanTile& tile) {
    const Hit target = batch_query.target;
    const Eligible& eligible = batch_query.eligible;
    // As comes_before: rows before the target need its score, others the next higher one. NaN, of a
    // damaged target, stays. No row reaches it.
    const std::size_t tied = tile.before(target.row);
    const double min_score = batch_query.query.filter.min_score;
    const double reached = std::max(target.score, min_score);
    const double passed = std::max(std::nextafter(target.score, HUGE_VAL), min_score);
    const auto reaches = [&](std::size_t r) { return scores[r] >= (r < tied ? reached : passed); };
    std::uint64_t count = 0;
    if (eligible.takes_all_others()) {
        // Compilers make vectors of it; of a usual word's rows nobody can foretell which count.
        for (std::size_t r = 0; r < tied; ++r) count += scores[r] >= reached ? 1U : 0U;
        for (std::size_t r = tied; r < scores.size(); ++r) count += scores[r] >= passed ? 1U : 0U;
        const std::span<const Row> excluded = eligible.excluded();
        for (auto row = std::ranges::lower_bound(excluded, tile.row(0));
             row != excluded.end() && *row <= tile.row(tile.count - 1); ++row) {
            if (const auto r = tile.find(*row); r && reaches(*r)) --count;
        }
    } else {
        for (std::size_t r = 0; r < scores.size(); ++r) {
            if (reaches(r) && eligible(tile.row(r))) ++count;
        }
    }
    batch_query.count += count;
}

/// Adds the tile's rows that are among the best so far. `hits`: memory for them.
void take_hits(BatchQuery& batch_query, std::vector<Hit>& hits, std::span<const double> scores,
               const ScanTile& tile) {
    const double threshold = batch_query.best.threshold();
    hits.clear();
    for (std::size_t r = 0; r < scores.size(); ++r) {
        // False for NaN, of a damaged row.
        if (scores[r] >= threshold && batch_query.eligible(tile.row(r)))
            hits.push_back({tile.row(r), scores[r]});
    }
    if (!hits.empty()) batch_query.best.add(hits);
}

}  // namespace

/// The queries of a call, with their vectors in groups.
struct CanonicalScan::Batch {
    std::deque<BatchQuery> queries;  // a deque, because a BatchQuery cannot move
    std::vector<QueryGroup> groups;
    std::size_t vector_count = 0;

    /// `width`: most vectors of a group. `passed`: as for Eligible.
    Batch(std::span<const Query* const> asked, const format::Model& model, std::size_t width,
          bool passed) {
        std::vector<const QueryVector*> vectors;
        for (const Query* query : asked) {
            assert(query->k > 0);
            BatchQuery& batch_query = queries.emplace_back(*query, model, passed);
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
    std::vector<float> rows;  // copies of a tile's chosen rows, and their norms
    std::vector<double> norms;

    Worker(const Batch& batch, std::size_t tile_rows) : dots(batch.vector_count * tile_rows) {}
};

CanonicalScan::CanonicalScan(const format::Model& model, const DotKernel& kernel)
    : model_(model),
      kernel_(kernel),
      tile_rows_(std::max<std::size_t>(1, kTileBytes / (model.dim() * sizeof(float)))) {}

void CanonicalScan::run(std::span<const Query* const> queries, RowRange range,
                        std::span<Answer* const> answers, ThreadPool& pool) const {
    Batch batch(queries, model_, kernel_.width, false);
    std::vector<Worker> workers(pool.size(), Worker(batch, tile_rows_));
    const auto work = [&](unsigned worker, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; at += tile_rows_) {
            const std::size_t first = range.first + at;
            score(batch, workers[worker],
                  {model_.vector(static_cast<Row>(first)).data(), model_.norms().data() + first,
                   std::min(tile_rows_, end - at), first});
        }
    };
    pool.for_ranges(range.size(), tile_rows_ * kTilesPerClaim, work);
    for (std::size_t q = 0; q < batch.queries.size(); ++q)
        *answers[q] = answer_of(batch.queries[q], range.size(), model_.dim());
}

void CanonicalScan::run(std::span<const Query* const> queries, std::span<const Row> rows,
                        std::span<Answer* const> answers, ThreadPool& pool) const {
    Batch batch(queries, model_, kernel_.width, true);
    const std::size_t dim = model_.dim();
    const std::size_t tile_rows = std::min(tile_rows_, kChosenGrain);
    std::vector<Worker> workers(pool.size(), Worker(batch, tile_rows));
    pool.for_ranges(
        rows.size(), kChosenGrain, [&](unsigned number, std::size_t begin, std::size_t end) {
            Worker& worker = workers[number];
            worker.rows.resize(tile_rows * dim);
            worker.norms.resize(tile_rows);
            for (std::size_t at = begin; at < end; at += tile_rows) {
                const auto chosen = rows.subspan(at, std::min(tile_rows, end - at));
                for (std::size_t r = 0; r < chosen.size(); ++r) {
                    if (at + r + kPrefetchRows < rows.size())
                        prefetch(model_.vector(rows[at + r + kPrefetchRows]));
                    std::ranges::copy(model_.vector(chosen[r]), worker.rows.data() + r * dim);
                    worker.norms[r] = model_.norms()[chosen[r]];
                }
                score(batch, worker,
                      {worker.rows.data(), worker.norms.data(), chosen.size(), 0, chosen});
            }
        });
    for (std::size_t q = 0; q < batch.queries.size(); ++q) {
        const auto is_there = [&](Row row) { return std::ranges::binary_search(rows, row); };
        const auto excluded = std::ranges::count_if(batch.queries[q].eligible.excluded(), is_there);
        *answers[q] =
            answer_of(batch.queries[q], rows.size() - static_cast<std::size_t>(excluded), dim);
    }
}

/// Scores a tile's rows for all queries of the batch.
void CanonicalScan::score(Batch& batch, Worker& worker, const ScanTile& tile) const {
    double* dots = worker.dots.data();
    for (const QueryGroup& group : batch.groups) {
        kernel_.dots_of_block(group, tile.block, tile.count, model_.dim(), dots);
        dots += group.count * tile.count;
    }
    double* scores = worker.dots.data();
    for (BatchQuery& batch_query : batch.queries) {
        const std::vector<const QueryVector*>& vectors = batch_query.vectors;
        for (std::size_t v = 0; v < vectors.size(); ++v)
            kernel_.cosines(scores + v * tile.count, tile.norms, tile.count, vectors[v]->norm);
        if (const auto* product = std::get_if<CosMul>(&batch_query.query.kind))
            to_products(scores, tile.count, product->positives.size(), vectors.size());
        const std::span<const double> of_tile(scores, tile.count);
        if (std::holds_alternative<CountBefore>(batch_query.query.kind)) {
            count_hits(batch_query, of_tile, tile);
        } else {
            take_hits(batch_query, worker.hits, of_tile, tile);
        }
        scores += vectors.size() * tile.count;
    }
}

}  // namespace gloved::kernels::cpu
