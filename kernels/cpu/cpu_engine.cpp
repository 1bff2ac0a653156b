#include "kernels/cpu/cpu_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/candidates.hpp"
#include "kernels/cpu/eligible.hpp"
#include "kernels/cpu/plane_pass.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/cpu/scan.hpp"
#include "kernels/planes/fine_plane.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/row_pairs.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

/// Maximum number of query vectors per pass over memory. With more, the dot products of a tile do
/// not fit the L2 cache.
constexpr std::size_t kMaxVectorsPerPass = 256;
/// Up to this many query vectors are multiplied one by one: a packed group costs at least as much.
constexpr std::size_t kMaxUnpackedVectors = 4;
/// Bytes of rows in a tile. They should stay in the L2 cache while every group of query vectors is
/// multiplied with them.
constexpr std::size_t kTileBytes = std::size_t{64} * 1024;
/// Tiles that a thread claims at a time.
constexpr std::size_t kTilesPerClaim = 8;

/// For how long threads look for work before they sleep: longer than a pass takes between two of
/// its parts. To wake a thread takes as long as a tenth of a query of 341,479 × 100.
constexpr std::chrono::microseconds kPatience{20};

/// Plane passes with as many queries for every thread divide the queries between the threads, not
/// the rows.
constexpr std::size_t kMinShare = 16;
/// Queries of such a pass for each thread, at most.
constexpr std::size_t kMaxShare = 256;

/// Maximum k for a plane pass. Beyond, the k-th score is so low that the plane leaves many
/// survivors, and reading them here and there is slower than reading all vectors in order
/// (docs/performance-history.md).
constexpr std::size_t kMaxPlaneK = 2048;

/// A list with no more than one row in so many of the model is short enough to score each of its
/// rows: a pass reads all rows, but in order, and 13 % of the bytes of most.
constexpr std::size_t kListedShare = 64;

/// An interval that contains a canonical value.
struct Bounds {
    double lower = 0;
    double upper = 0;
};

/// A query vector, scaled by a power of two as bounds.hpp asks.
struct ScaledVector {
    std::vector<float> values;
    double norm = 0;        // of the scaled values
    std::size_t query = 0;  // index in Pass::queries
};

/// Consecutive query vectors that dots_packed takes together.
struct PackedGroup {
    std::size_t first_vector = 0;
    std::size_t width = 0;
    std::vector<float> packed;  // (dim, width)
};

/// A query of the batch and its state during a pass.
struct BatchQuery {
    const Query* query = nullptr;
    std::size_t first_vector = 0;  // index in Pass::vectors
    Eligible eligible;
    Hit target;  // CountBefore: the hit to compare with
    Threshold threshold;

    BatchQuery(const Query& of, const format::Model& model, const RowLists& lists)
        : query(&of), eligible(of, model, lists), threshold(of.filter.min_score) {}
    bool is_cosine() const { return std::holds_alternative<Cosine>(query->kind); }
};

void log_plane(const EngineOptions& options, const char* bits, std::size_t bytes, bool stored,
               double ms) {
    if (!options.log) return;
    options.log(fmt::format("{} plane: {:.1f} MB, {} in {:.0f} ms", bits,
                            static_cast<double>(bytes) / 1e6, stored ? "mapped" : "built", ms));
}

/// Whether reading the plane first can be faster. If ranks are limited, k says little about the
/// number of survivors.
bool suits_plane(const Query& query) {
    const bool all_ranks = query.filter.rank_below == std::numeric_limits<std::uint32_t>::max();
    return std::holds_alternative<Cosine>(query.kind) && (query.k <= kMaxPlaneK || !all_ranks);
}

class CpuEngine final : public Engine {
  public:
    CpuEngine(const format::Model& model, const ScanKernels& kernels, const EngineOptions& options)
        : model_(model),
          lists_(options.lists),
          kernels_(kernels),
          plane_kernel_(plane_kernel_for(kernels.name)),
          pool_(options.threads, kPatience),
          bound_(score_error_bound(model.dim())),
          // A multiple of 12 suits every register tile of the packed loops.
          tile_rows_(
              std::clamp<std::size_t>(kTileBytes / (model.dim() * sizeof(float)) / 12, 1, 40) *
              12) {
        if (!options.planes) return;
        for (unsigned thread = 0; thread < pool_.size(); ++thread) alone_.emplace_back(1U);
        const auto begin = std::chrono::steady_clock::now();
        plane_.emplace(model, pool_);
        plane_pass_.emplace(model, *lists_, kernels, view(*plane_, plane_kernel_.loop));
        log_plane(options, "4-bit", plane_->bytes().size(), plane_->stored(), ms_since(begin));
        if (!options.fine_plane || plane_kernel_.fine_loop.width == 0) return;
        const auto fine_begin = std::chrono::steady_clock::now();
        fine_plane_.emplace(model, pool_);
        fine_pass_.emplace(model, *lists_, kernels,
                           view(*fine_plane_, plane_->uncovered(), plane_kernel_.fine_loop));
        log_plane(options, "7-bit", fine_plane_->bytes().size(), false, ms_since(fine_begin));
    }

    EngineKind kind() const override { return EngineKind::cpu; }
    std::string description() const override {
        const char* const planes = !plane_       ? ""
                                   : fine_plane_ ? ", planes of 4 and 7 bits by "
                                                 : ", plane by ";
        return fmt::format("{}, {} thread{}{}{}", kernels_.name, pool_.size(),
                           pool_.size() == 1 ? "" : "s", planes, plane_ ? plane_kernel_.name : "");
    }
    Result<std::vector<Answer>> run(std::span<const Query> queries) override;

  private:
    struct Pass;
    struct Worker;

    std::optional<std::span<const Row>> listed_rows(const Query& query) const;
    Answer score_listed(const Query& query, std::span<const Row> rows);
    void run_plane(std::span<const Query> queries, std::span<const std::size_t> which,
                   RowRange range, std::vector<Answer>& answers);
    void run_pass(std::span<const Query> queries, std::span<const std::size_t> which,
                  RowRange range, std::vector<Answer>& answers);
    void prepare_vectors(Pass& pass) const;
    void scan(Pass& pass, Worker& worker, std::size_t begin, std::size_t end) const;
    void scan_tile(Pass& pass, Worker& worker, std::size_t first_row, std::size_t rows) const;
    void pick_candidates(Pass& pass, Worker& worker, std::size_t first_row, std::size_t rows) const;
    void bound_every_row(Pass& pass, Worker& worker, std::size_t q, std::size_t first_row,
                         std::size_t rows) const;
    void offer(Pass& pass, Worker& worker, std::size_t q, std::size_t row,
               const Bounds& bounds) const;
    Bounds estimate(const Pass& pass, const Worker& worker, const BatchQuery& batch_query,
                    std::size_t first_row, std::size_t r) const;
    double canonical(const Query& query, std::size_t row) const;
    double cosine(const QueryVector& vector, std::size_t row) const {
        return canonical_score(vector.values.data(), vector.norm, model_.vector(row).data(),
                               model_.norms()[row], model_.dim());
    }
    Answer finish(Pass& pass, std::size_t q, std::vector<Worker>& workers);

    const format::Model& model_;
    const std::shared_ptr<const RowLists> lists_;
    const ScanKernels& kernels_;
    const PlaneKernel& plane_kernel_;
    ThreadPool pool_;
    std::deque<ThreadPool> alone_;  // one for each thread of pool_, which is the only one in it
    std::optional<planes::Plane> plane_;
    std::optional<planes::FinePlane> fine_plane_;
    std::optional<PlanePass> plane_pass_;
    std::optional<PlanePass> fine_pass_;  // for batches that are divided between the threads
    const double bound_;
    const std::size_t tile_rows_;
};

/// Queries answered in one pass over memory.
struct CpuEngine::Pass {
    std::deque<BatchQuery> queries;  // a deque, because a BatchQuery cannot move
    std::vector<ScaledVector> vectors;
    std::vector<PackedGroup> groups;  // empty if vectors are multiplied one by one
    std::size_t padded_vectors = 0;   // sum of the groups' widths, or vectors.size()
};

/// One thread's state for a pass.
struct CpuEngine::Worker {
    std::vector<CandidateList> lists;  // one per query
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> rescored;
    std::vector<float> dots;   // of a tile: (rows, padded_vectors) if packed, else (vectors, rows)
    std::vector<float> norms;  // of a tile, NaN where the bound does not cover the row
    std::vector<float> cutoffs;  // one per vector and padding
    std::vector<Pick> picks;
    std::vector<std::size_t> uncovered;

    Worker(const Pass& pass, std::size_t tile_rows)
        : counts(pass.queries.size()),
          rescored(pass.queries.size()),
          dots(pass.padded_vectors * tile_rows),
          norms(tile_rows),
          cutoffs(pass.padded_vectors, kNever),
          picks(pass.padded_vectors * tile_rows) {
        for (const BatchQuery& batch_query : pass.queries) lists.emplace_back(batch_query.query->k);
    }
};

Result<std::vector<Answer>> CpuEngine::run(std::span<const Query> queries) {
    std::vector<Answer> answers(queries.size());
    // Queries with a plane pass are batched apart from those without.
    struct Batch {
        bool by_plane;
        std::size_t max_vectors;
        std::vector<std::size_t> queries{};
        std::size_t vectors = 0;
    };
    Batch plane{true, std::max(kMaxVectorsPerPass, pool_.size() * kMaxShare)};
    Batch vectors{false, kMaxVectorsPerPass};
    const auto run_over = [&](RowRange range, bool by_plane, std::span<const std::size_t> which) {
        by_plane ? run_plane(queries, which, range, answers)
                 : run_pass(queries, which, range, answers);
    };
    const auto flush = [&](Batch& batch) {
        if (!batch.queries.empty()) run_over({0, model_.rows()}, batch.by_plane, batch.queries);
        batch.queries.clear();
        batch.vectors = 0;
    };
    for (std::size_t i = 0; i < queries.size(); ++i) {
        if (const auto rows = listed_rows(queries[i])) {
            answers[i] = score_listed(queries[i], *rows);
            continue;
        }
        const bool by_plane = plane_ && suits_plane(queries[i]);
        if (const auto& rows = queries[i].filter.rows) {
            // Usually few rows: a pass over these alone.
            run_over(*rows, by_plane, std::span(&i, 1));
            continue;
        }
        Batch& batch = by_plane ? plane : vectors;
        if (batch.vectors + vectors_of(queries[i]) > batch.max_vectors) flush(batch);
        batch.queries.push_back(i);
        batch.vectors += vectors_of(queries[i]);
    }
    flush(plane);
    flush(vectors);
    return answers;
}

/// The rows of the shortest list that all eligible rows are in, within the query's range, if there
/// is one that is short enough.
std::optional<std::span<const Row>> CpuEngine::listed_rows(const Query& query) const {
    if (query.filter.within == 0) return std::nullopt;
    const std::size_t list = lists_->shortest(query.filter.within);
    const std::size_t most = std::min(kMaxShortList, model_.rows() / kListedShare + 1);
    if (lists_->count(list) > most) return std::nullopt;
    const std::span<const Row> rows = lists_->short_list(list);
    const RowRange range = query.filter.rows.value_or(RowRange{0, model_.rows()});
    const auto first = std::ranges::lower_bound(rows, range.first);
    return std::span(first, std::lower_bound(first, rows.end(), range.last));
}

/// Answers a query, of any kind, by the canonical scores of the eligible ones of `rows`.
Answer CpuEngine::score_listed(const Query& query, std::span<const Row> rows) {
    constexpr double kAny = std::numeric_limits<double>::infinity();
    const Eligible eligible(query, model_, *lists_);
    std::vector<Candidate> candidates;
    for (const Row row : rows) {
        if (eligible(row)) candidates.push_back({row, -kAny, kAny});
    }
    const auto* count = std::get_if<CountBefore>(&query.kind);
    Answer answer;
    answer.hits =
        best_hits(candidates, count == nullptr ? query.k : candidates.size(),
                  query.filter.min_score, pool_, [&](Row row) { return canonical(query, row); });
    if (count != nullptr) {
        const Hit target = counted_hit(model_, *count);
        answer.count =
            static_cast<std::uint64_t>(std::ranges::count_if(answer.hits, [&](const Hit& hit) {
                return hit.row != target.row && comes_before(hit, target);
            }));
        answer.hits.clear();
    }
    Certificate& certificate = answer.certificate;
    certificate.pass = kernels::Pass::float64;
    certificate.scanned = certificate.survivors = certificate.rescored = candidates.size();
    certificate.read_bytes = candidates.size() * model_.dim() * sizeof(float);
    return answer;
}

void CpuEngine::run_plane(std::span<const Query> queries, std::span<const std::size_t> which,
                          RowRange range, std::vector<Answer>& answers) {
    std::vector<const Query*> asked;
    std::vector<Answer*> answered;
    for (const std::size_t i : which) {
        asked.push_back(&queries[i]);
        answered.push_back(&answers[i]);
    }
    const std::size_t threads = pool_.size();
    if (asked.size() < threads * kMinShare) return plane_pass_->run(asked, range, answered, pool_);
    const PlanePass& pass = fine_pass_ ? *fine_pass_ : *plane_pass_;
    // Each thread raises its own thresholds, so that fewer rows survive, and takes no lock.
    pool_.run([&](unsigned thread) {
        const std::size_t first = asked.size() * thread / threads;
        const std::size_t count = asked.size() * (thread + 1) / threads - first;
        pass.run(std::span(asked).subspan(first, count), range,
                 std::span(answered).subspan(first, count), alone_[thread]);
    });
}

void CpuEngine::run_pass(std::span<const Query> queries, std::span<const std::size_t> which,
                         RowRange range, std::vector<Answer>& answers) {
    Pass pass;
    for (const std::size_t i : which) {
        assert(queries[i].k > 0);
        pass.queries.emplace_back(queries[i], model_, *lists_);
    }
    prepare_vectors(pass);
    std::vector<Worker> workers;
    for (unsigned w = 0; w < pool_.size(); ++w) workers.emplace_back(pass, tile_rows_);

    const std::size_t grain = tile_rows_ * kTilesPerClaim;
    std::atomic<std::size_t> next = range.first;
    const auto work = [&](unsigned worker) {
        for (std::size_t begin;
             (begin = next.fetch_add(grain, std::memory_order_relaxed)) < range.last;) {
            scan(pass, workers[worker], begin, std::min(begin + grain, range.last));
        }
    };
    // For a few rows, waking the other threads costs more than it saves.
    if (range.size() <= grain) {
        work(0);
    } else {
        pool_.run(work);
    }
    for (std::size_t q = 0; q < pass.queries.size(); ++q) {
        Answer& answer = answers[which[q]];
        answer = finish(pass, q, workers);
        answer.certificate.scanned = range.size();
        answer.certificate.survivors = range.size();
        answer.certificate.read_bytes = range.size() * model_.dim() * sizeof(float);
    }
}

void CpuEngine::prepare_vectors(Pass& pass) const {
    for (std::size_t q = 0; q < pass.queries.size(); ++q) {
        BatchQuery& batch_query = pass.queries[q];
        batch_query.first_vector = pass.vectors.size();
        const auto add = [&](const QueryVector& vector) {
            assert(vector.values.size() == model_.dim() && vector.norm > 0);
            ScaledVector scaled{vector.values, 0, q};
            const int exponent = scale_exponent(vector.norm);
            for (float& value : scaled.values) value = std::ldexp(value, exponent);
            scaled.norm = canonical_norm(scaled.values.data(), scaled.values.size());
            pass.vectors.push_back(std::move(scaled));
        };
        if (const auto* cosine = std::get_if<Cosine>(&batch_query.query->kind)) {
            add(cosine->vector);
        } else if (const auto* count = std::get_if<CountBefore>(&batch_query.query->kind)) {
            add(count->vector);
            batch_query.target = counted_hit(model_, *count);
        } else {
            const auto& product = std::get<CosMul>(batch_query.query->kind);
            for (const QueryVector& vector : product.positives) add(vector);
            for (const QueryVector& vector : product.negatives) add(vector);
        }
    }
    pass.padded_vectors = pass.vectors.size();
    if (pass.vectors.size() <= kMaxUnpackedVectors) return;

    pass.padded_vectors = 0;
    for (std::size_t first = 0; first < pass.vectors.size();) {
        const std::size_t left = pass.vectors.size() - first;
        const auto fits =
            std::ranges::find_if(kernels_.widths, [&](std::size_t width) { return width >= left; });
        PackedGroup group;
        group.first_vector = first;
        group.width = fits == kernels_.widths.end() ? kernels_.widths.back() : *fits;
        group.packed.assign(model_.dim() * group.width, 0.0F);
        for (std::size_t v = 0; v < std::min(left, group.width); ++v) {
            const auto& values = pass.vectors[first + v].values;
            for (std::size_t i = 0; i < values.size(); ++i)
                group.packed[i * group.width + v] = values[i];
        }
        first += group.width;
        pass.padded_vectors += group.width;
        pass.groups.push_back(std::move(group));
    }
}

void CpuEngine::scan(Pass& pass, Worker& worker, std::size_t begin, std::size_t end) const {
    for (std::size_t row = begin; row < end; row += tile_rows_)
        scan_tile(pass, worker, row, std::min(tile_rows_, end - row));
}

void CpuEngine::scan_tile(Pass& pass, Worker& worker, std::size_t first_row,
                          std::size_t rows) const {
    worker.uncovered.clear();
    for (std::size_t r = 0; r < rows; ++r) {
        const double norm = model_.norms()[first_row + r];
        worker.norms[r] =
            bound_covers(norm) ? static_cast<float>(norm) : std::numeric_limits<float>::quiet_NaN();
        if (!bound_covers(norm)) worker.uncovered.push_back(r);
    }
    const std::size_t dim = model_.dim();
    const float* block = model_.vectors().data() + first_row * dim;
    for (const PackedGroup& group : pass.groups) {
        kernels_.dots_packed(group.packed.data(), group.width, block, rows, dim,
                             worker.dots.data() + group.first_vector, pass.padded_vectors);
    }
    if (pass.groups.empty()) {
        for (std::size_t v = 0; v < pass.vectors.size(); ++v) {
            kernels_.dots(pass.vectors[v].values.data(), block, rows, dim,
                          worker.dots.data() + v * tile_rows_);
        }
    }
    pick_candidates(pass, worker, first_row, rows);
    for (std::size_t q = 0; q < pass.queries.size(); ++q) {
        if (!pass.queries[q].is_cosine()) bound_every_row(pass, worker, q, first_row, rows);
        for (const std::size_t r : worker.uncovered) {
            const double score = canonical(*pass.queries[q].query, first_row + r);
            offer(pass, worker, q, first_row + r, {score, score});
        }
    }
}

/// Cosine queries: compares every dot product with its query's cutoff in float32, and offers the
/// few rows that reach it.
void CpuEngine::pick_candidates(Pass& pass, Worker& worker, std::size_t first_row,
                                std::size_t rows) const {
    for (std::size_t v = 0; v < pass.vectors.size(); ++v) {
        const BatchQuery& batch_query = pass.queries[pass.vectors[v].query];
        if (batch_query.is_cosine())
            worker.cutoffs[v] =
                float_cutoff(batch_query.threshold.get(), bound_, pass.vectors[v].norm);
    }
    const auto take = [&](std::size_t count) {
        for (std::size_t p = 0; p < count; ++p) {
            const Pick pick = worker.picks[p];
            const std::size_t q = pass.vectors[pick.query].query;
            offer(pass, worker, q, first_row + pick.row,
                  estimate(pass, worker, pass.queries[q], first_row, pick.row));
        }
    };
    for (const PackedGroup& group : pass.groups) {
        take(kernels_.pick_packed(
            worker.dots.data() + group.first_vector, pass.padded_vectors, worker.norms.data(), rows,
            worker.cutoffs.data() + group.first_vector, group.width,
            static_cast<std::uint32_t>(group.first_vector), worker.picks.data()));
    }
    if (!pass.groups.empty()) return;
    for (std::size_t v = 0; v < pass.vectors.size(); ++v) {
        take(kernels_.pick_rows(worker.dots.data() + v * tile_rows_, worker.norms.data(), rows,
                                worker.cutoffs[v], static_cast<std::uint32_t>(v),
                                worker.picks.data()));
    }
}

/// Queries of other kinds, which have no single cutoff: offers every row that the float32 bound
/// covers.
void CpuEngine::bound_every_row(Pass& pass, Worker& worker, std::size_t q, std::size_t first_row,
                                std::size_t rows) const {
    for (std::size_t r = 0; r < rows; ++r) {
        if (std::isnan(worker.norms[r])) continue;
        offer(pass, worker, q, first_row + r,
              estimate(pass, worker, pass.queries[q], first_row, r));
    }
}

/// Bounds the canonical score of row `r` of the current tile by its dot products.
Bounds CpuEngine::estimate(const Pass& pass, const Worker& worker, const BatchQuery& batch_query,
                           std::size_t first_row, std::size_t r) const {
    const double row_norm = model_.norms()[first_row + r];
    const auto cosine_of = [&](std::size_t v) {
        const float dot = pass.groups.empty() ? worker.dots[v * tile_rows_ + r]
                                              : worker.dots[r * pass.padded_vectors + v];
        return static_cast<double>(dot) / (pass.vectors[v].norm * row_norm);
    };
    const auto* product = std::get_if<CosMul>(&batch_query.query->kind);
    if (product == nullptr) {
        const double cosine = cosine_of(batch_query.first_vector);
        return {cosine - bound_, cosine + bound_};
    }
    // Applies the canonical operations to both ends of each interval. Each operation is monotone in
    // each argument, and so is rounding: the ends bound the canonical result without a margin.
    Bounds above{1.0, 1.0};
    Bounds below{1.0, 1.0};
    std::size_t v = batch_query.first_vector;
    const auto multiply = [&](Bounds& into) {
        const double cosine = cosine_of(v++);
        into.lower *= cosmul_part(std::clamp(cosine - bound_, -1.0, 1.0));
        into.upper *= cosmul_part(std::clamp(cosine + bound_, -1.0, 1.0));
    };
    for (std::size_t i = 0; i < product->positives.size(); ++i) multiply(above);
    for (std::size_t i = 0; i < product->negatives.size(); ++i) multiply(below);
    return {cosmul_score(above.lower, below.upper), cosmul_score(above.upper, below.lower)};
}

/// Adds a row, whose canonical score is within `bounds`, to a query's candidates or count, unless
/// the threshold or the filter rejects it.
void CpuEngine::offer(Pass& pass, Worker& worker, std::size_t q, std::size_t row,
                      const Bounds& bounds) const {
    BatchQuery& batch_query = pass.queries[q];
    if (!(bounds.upper >= batch_query.threshold.get())) return;
    const Row at = static_cast<Row>(row);
    if (!batch_query.eligible(at)) return;
    if (!std::holds_alternative<CountBefore>(batch_query.query->kind)) {
        worker.lists[q].offer({at, bounds.lower, bounds.upper}, batch_query.threshold);
        return;
    }
    if (at == batch_query.target.row || bounds.upper < batch_query.target.score) return;
    if (bounds.lower > batch_query.target.score &&
        bounds.lower >= batch_query.query->filter.min_score) {
        ++worker.counts[q];
        return;
    }
    const Hit hit{at, canonical(*batch_query.query, row)};
    ++worker.rescored[q];
    if (hit.score >= batch_query.query->filter.min_score && comes_before(hit, batch_query.target))
        ++worker.counts[q];
}

/// The canonical score of one row.
double CpuEngine::canonical(const Query& query, std::size_t row) const {
    if (const auto* single = std::get_if<Cosine>(&query.kind)) return cosine(single->vector, row);
    if (const auto* count = std::get_if<CountBefore>(&query.kind))
        return cosine(count->vector, row);
    const auto& product = std::get<CosMul>(query.kind);
    double above = 1.0;
    double below = 1.0;
    for (const QueryVector& vector : product.positives) above *= cosmul_part(cosine(vector, row));
    for (const QueryVector& vector : product.negatives) below *= cosmul_part(cosine(vector, row));
    return cosmul_score(above, below);
}

/// Rescores all threads' candidates for a query and makes the answer.
Answer CpuEngine::finish(Pass& pass, std::size_t q, std::vector<Worker>& workers) {
    BatchQuery& batch_query = pass.queries[q];
    const Query& query = *batch_query.query;
    Answer answer;
    std::vector<Candidate> candidates;
    for (Worker& worker : workers) {
        answer.count += worker.counts[q];
        answer.certificate.rescored += worker.rescored[q];
        worker.lists[q].drain(candidates);
    }
    if (std::holds_alternative<CountBefore>(query.kind)) return answer;

    CandidateList::prune(candidates, query.k, batch_query.threshold);
    answer.hits = best_hits(candidates, query.k, query.filter.min_score, pool_,
                            [&](Row row) { return canonical(query, row); });
    answer.certificate.rescored += candidates.size();
    answer.certificate.rejected_below = batch_query.threshold.get();
    return answer;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_cpu_engine(const format::Model& model,
                                                const EngineOptions& options) {
    std::string names;
    for (const ScanKernels* kernels : all_scan_kernels()) {
        const bool supported = kernels->supported();
        if (supported && (options.simd.empty() || options.simd == kernels->name))
            return std::unique_ptr<Engine>(std::make_unique<CpuEngine>(model, *kernels, options));
        names += fmt::format("{}{}{}", names.empty() ? "" : ", ", kernels->name,
                             supported ? "" : " (not on this processor)");
    }
    return error_with(ErrorCode::unavailable, "no instruction set '{}': there are {}", options.simd,
                      names);
}

}  // namespace gloved::kernels::cpu
