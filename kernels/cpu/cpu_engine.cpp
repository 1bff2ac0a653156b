#include "kernels/cpu/cpu_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/candidates.hpp"
#include "kernels/cpu/eligible.hpp"
#include "kernels/cpu/plane_pass.hpp"
#include "kernels/cpu/scan.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

/// Vectors that one pass over memory carries at most. More would push the dot products of a tile
/// out of the L2 cache.
constexpr std::size_t kMaxLanesOfPass = 256;
/// Up to here each vector is multiplied on its own: a packed group costs at least as much as these
/// together.
constexpr std::size_t kMaxUnpackedLanes = 4;
/// Rows of a tile: its vectors should stay in the L2 cache while group after group of queries meets
/// them.
constexpr std::size_t kTileBytes = std::size_t{64} * 1024;
/// What a thread takes at a time.
constexpr std::size_t kTilesOfRange = 8;

/// Words of an answer that the plane is read for. The k-th score of more is so low that the plane
/// leaves a good part of all rows, which are then read here and there: dearer than all of them in
/// order (docs/performance.md).
constexpr std::size_t kMaxPlaneK = 2048;

/// An interval that holds a canonical value.
struct Bounds {
    double lower = 0;
    double upper = 0;
};

/// One vector of a pass, scaled by a power of two as bounds.hpp asks.
struct Lane {
    const QueryVector* original = nullptr;
    std::vector<float> scaled;
    double scaled_norm = 0;
    std::size_t query = 0;  // position in the pass
};

/// Neighbouring lanes that go through dots_packed together.
struct Group {
    std::size_t first_lane = 0;
    std::size_t width = 0;
    std::vector<float> packed;  // (dim, width)
};

/// What a query needs while rows stream by.
struct Task {
    const Query* query = nullptr;
    std::size_t first_lane = 0;
    Eligible eligible;
    Hit target;  // CountBefore: the row to be compared with
    Threshold threshold;

    explicit Task(const Query& of) : query(&of), eligible(of), threshold(of.filter.min_score) {}
    bool is_cosine() const { return std::holds_alternative<Cosine>(query->kind); }
};

/// Whether reading the plane first can pay. Where ranks are limited, k says little about how many
/// rows it leaves.
bool suits_plane(const Query& query) {
    const bool all_ranks = query.filter.rank_below == std::numeric_limits<std::uint32_t>::max();
    return std::holds_alternative<Cosine>(query.kind) && (query.k <= kMaxPlaneK || !all_ranks);
}

class CpuEngine final : public Engine {
  public:
    CpuEngine(const format::Model& model, const ScanKernels& kernels, const EngineOptions& options)
        : model_(model),
          kernels_(kernels),
          pool_(options.threads),
          bound_(score_error_bound(model.dim())),
          // A multiple of 12 suits every register tile of the packed loops.
          tile_rows_(
              std::clamp<std::size_t>(kTileBytes / (model.dim() * sizeof(float)) / 12, 1, 40) *
              12) {
        if (!options.planes) return;
        const auto begin = std::chrono::steady_clock::now();
        plane_.emplace(model, kernels, pool_);
        if (!options.log) return;
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        options.log(fmt::format("plane of 4 bits a component: {:.1f} MB, {} in {:.0f} ms",
                                static_cast<double>(plane_->plane().shape().bytes()) / 1e6,
                                plane_->plane().stored() ? "stored, taken" : "built",
                                took.count()));
    }

    std::string name() const override { return "cpu"; }
    std::string description() const override {
        return fmt::format("{}, {} thread{}{}", kernels_.name, pool_.size(),
                           pool_.size() == 1 ? "" : "s",
                           plane_ ? fmt::format(", plane by {}", plane_->kernel_name()) : "");
    }
    Result<std::vector<Answer>> run(std::span<const Query> queries) override;

  private:
    struct Pass;
    struct Worker;

    void run_plane(std::span<const Query> queries, std::span<const std::size_t> which,
                   RowRange range, std::vector<Answer>& answers);
    void run_pass(std::span<const Query> queries, std::span<const std::size_t> which,
                  RowRange range, std::vector<Answer>& answers);
    void lay_out_lanes(Pass& pass) const;
    void scan(Pass& pass, Worker& worker, std::size_t begin, std::size_t end) const;
    void scan_tile(Pass& pass, Worker& worker, std::size_t first_row, std::size_t rows) const;
    void pick_candidates(Pass& pass, Worker& worker, std::size_t first_row, std::size_t rows) const;
    void bound_every_row(Pass& pass, Worker& worker, std::size_t task, std::size_t first_row,
                         std::size_t rows) const;
    void offer(Pass& pass, Worker& worker, std::size_t task, std::size_t row,
               const Bounds& bounds) const;
    Bounds estimate(const Pass& pass, const Worker& worker, const Task& task, std::size_t first_row,
                    std::size_t r) const;
    double canonical(const Query& query, std::size_t row) const;
    double cosine(const QueryVector& vector, std::size_t row) const {
        return canonical_score(vector.values.data(), vector.norm, model_.vector(row).data(),
                               model_.norms()[row], model_.dim());
    }
    Answer finish(Pass& pass, std::size_t task, std::vector<Worker>& workers);

    const format::Model& model_;
    const ScanKernels& kernels_;
    ThreadPool pool_;
    std::optional<PlanePass> plane_;
    const double bound_;
    const std::size_t tile_rows_;
};

/// Some queries on their way through memory together.
struct CpuEngine::Pass {
    std::deque<Task> tasks;  // a deque: a Task holds an atomic and cannot move
    std::vector<Lane> lanes;
    std::vector<Group> groups;     // empty: lanes go one by one
    std::size_t padded_lanes = 0;  // sum of the groups' widths, or the number of lanes
};

/// What one thread needs for a pass.
struct CpuEngine::Worker {
    std::vector<CandidateList> lists;  // one a task
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> rescored;
    std::vector<float> dots;   // of a tile: (lanes, rows) where lanes go one by one, (rows, padded
                               // lanes) where packed
    std::vector<float> norms;  // of a tile, NaN where the bound does not cover the row
    std::vector<float> cutoffs;  // one a padded lane
    std::vector<Pick> picks;
    std::vector<std::size_t> uncovered;

    Worker(const Pass& pass, std::size_t tile_rows)
        : counts(pass.tasks.size()),
          rescored(pass.tasks.size()),
          dots(pass.padded_lanes * tile_rows),
          norms(tile_rows),
          cutoffs(pass.padded_lanes, kNever),
          picks(pass.padded_lanes * tile_rows) {
        for (const Task& task : pass.tasks) lists.emplace_back(task.query->k);
    }
};

Result<std::vector<Answer>> CpuEngine::run(std::span<const Query> queries) {
    std::vector<Answer> answers(queries.size());
    /// Queries of one pass over memory: those that the plane serves, and others.
    struct Together {
        bool by_plane;
        std::vector<std::size_t> queries{};
        std::size_t lanes = 0;
    };
    Together plane{true};
    Together vectors{false};
    const auto run_over = [&](RowRange range, bool by_plane, std::span<const std::size_t> which) {
        by_plane ? run_plane(queries, which, range, answers)
                 : run_pass(queries, which, range, answers);
    };
    const auto flush = [&](Together& together) {
        if (!together.queries.empty())
            run_over({0, model_.rows()}, together.by_plane, together.queries);
        together = {together.by_plane};
    };
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const bool by_plane = plane_ && suits_plane(queries[i]);
        if (const auto& rows = queries[i].filter.rows) {
            // Few rows as a rule: a pass of its own over just these.
            run_over(*rows, by_plane, std::span(&i, 1));
            continue;
        }
        Together& together = by_plane ? plane : vectors;
        if (together.lanes + vectors_of(queries[i]) > kMaxLanesOfPass) flush(together);
        together.queries.push_back(i);
        together.lanes += vectors_of(queries[i]);
    }
    flush(plane);
    flush(vectors);
    return answers;
}

void CpuEngine::run_plane(std::span<const Query> queries, std::span<const std::size_t> which,
                          RowRange range, std::vector<Answer>& answers) {
    std::vector<const Query*> asked;
    std::vector<Answer*> answered;
    for (const std::size_t i : which) {
        asked.push_back(&queries[i]);
        answered.push_back(&answers[i]);
    }
    plane_->run(asked, range, answered);
}

void CpuEngine::run_pass(std::span<const Query> queries, std::span<const std::size_t> which,
                         RowRange range, std::vector<Answer>& answers) {
    Pass pass;
    for (const std::size_t i : which) {
        assert(queries[i].k > 0);
        pass.tasks.emplace_back(queries[i]);
    }
    lay_out_lanes(pass);
    std::vector<Worker> workers;
    for (unsigned w = 0; w < pool_.size(); ++w) workers.emplace_back(pass, tile_rows_);

    const std::size_t grain = tile_rows_ * kTilesOfRange;
    std::atomic<std::size_t> next = range.first;
    const auto work = [&](unsigned worker) {
        for (std::size_t begin;
             (begin = next.fetch_add(grain, std::memory_order_relaxed)) < range.last;) {
            scan(pass, workers[worker], begin, std::min(begin + grain, range.last));
        }
    };
    // Waking the other threads for a few rows would cost more than it saves.
    if (range.size() <= grain) {
        work(0);
    } else {
        pool_.run(work);
    }
    for (std::size_t task = 0; task < pass.tasks.size(); ++task) {
        Answer& answer = answers[which[task]];
        answer = finish(pass, task, workers);
        answer.certificate.scanned = range.size();
        answer.certificate.survivors = range.size();
        answer.certificate.read_bytes = range.size() * model_.dim() * sizeof(float);
    }
}

void CpuEngine::lay_out_lanes(Pass& pass) const {
    for (std::size_t t = 0; t < pass.tasks.size(); ++t) {
        Task& task = pass.tasks[t];
        task.first_lane = pass.lanes.size();
        const auto add = [&](const QueryVector& vector) {
            assert(vector.values.size() == model_.dim() && vector.norm > 0);
            Lane lane{&vector, vector.values, 0, t};
            const int exponent = scale_exponent(vector.norm);
            for (float& value : lane.scaled) value = std::ldexp(value, exponent);
            lane.scaled_norm = canonical_norm(lane.scaled.data(), lane.scaled.size());
            pass.lanes.push_back(std::move(lane));
        };
        if (const auto* cosine = std::get_if<Cosine>(&task.query->kind)) {
            add(cosine->vector);
        } else if (const auto* count = std::get_if<CountBefore>(&task.query->kind)) {
            add(count->vector);
            task.target = {count->row, this->cosine(count->vector, count->row)};
        } else {
            const auto& product = std::get<CosMul>(task.query->kind);
            for (const QueryVector& vector : product.positives) add(vector);
            for (const QueryVector& vector : product.negatives) add(vector);
        }
    }
    pass.padded_lanes = pass.lanes.size();
    if (pass.lanes.size() <= kMaxUnpackedLanes) return;

    pass.padded_lanes = 0;
    for (std::size_t lane = 0; lane < pass.lanes.size();) {
        const std::size_t left = pass.lanes.size() - lane;
        const auto fits = std::find_if(kernels_.widths.begin(), kernels_.widths.end(),
                                       [&](std::size_t width) { return width >= left; });
        Group group;
        group.first_lane = lane;
        group.width = fits == kernels_.widths.end() ? kernels_.widths.back() : *fits;
        group.packed.assign(model_.dim() * group.width, 0.0F);
        for (std::size_t l = 0; l < std::min(left, group.width); ++l) {
            const auto& values = pass.lanes[lane + l].scaled;
            for (std::size_t i = 0; i < values.size(); ++i)
                group.packed[i * group.width + l] = values[i];
        }
        lane += group.width;
        pass.padded_lanes += group.width;
        pass.groups.push_back(std::move(group));
    }
}

void CpuEngine::scan(Pass& pass, Worker& worker, std::size_t begin, std::size_t end) const {
    for (std::size_t row = begin; row < end; row += tile_rows_) {
        scan_tile(pass, worker, row, std::min(tile_rows_, end - row));
    }
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
    for (const Group& group : pass.groups) {
        kernels_.dots_packed(group.packed.data(), group.width, block, rows, dim,
                             worker.dots.data() + group.first_lane, pass.padded_lanes);
    }
    if (pass.groups.empty()) {
        for (std::size_t lane = 0; lane < pass.lanes.size(); ++lane) {
            kernels_.dots(pass.lanes[lane].scaled.data(), block, rows, dim,
                          worker.dots.data() + lane * tile_rows_);
        }
    }
    pick_candidates(pass, worker, first_row, rows);
    for (std::size_t t = 0; t < pass.tasks.size(); ++t) {
        if (!pass.tasks[t].is_cosine()) bound_every_row(pass, worker, t, first_row, rows);
        for (const std::size_t r : worker.uncovered) {
            const double score = canonical(*pass.tasks[t].query, first_row + r);
            offer(pass, worker, t, first_row + r, {score, score});
        }
    }
}

/// Cosine queries: compares every dot product with the cutoff of its lane in float32, and looks
/// closer at the few that reach it.
void CpuEngine::pick_candidates(Pass& pass, Worker& worker, std::size_t first_row,
                                std::size_t rows) const {
    for (std::size_t lane = 0; lane < pass.lanes.size(); ++lane) {
        const Task& task = pass.tasks[pass.lanes[lane].query];
        if (task.is_cosine())
            worker.cutoffs[lane] =
                float_cutoff(task.threshold.get(), bound_, pass.lanes[lane].scaled_norm);
    }
    const auto take = [&](std::size_t count) {
        for (std::size_t p = 0; p < count; ++p) {
            const Pick pick = worker.picks[p];
            const std::size_t t = pass.lanes[pick.lane].query;
            offer(pass, worker, t, first_row + pick.row,
                  estimate(pass, worker, pass.tasks[t], first_row, pick.row));
        }
    };
    for (const Group& group : pass.groups) {
        take(kernels_.pick_packed(
            worker.dots.data() + group.first_lane, pass.padded_lanes, worker.norms.data(), rows,
            worker.cutoffs.data() + group.first_lane, group.width,
            static_cast<std::uint32_t>(group.first_lane), worker.picks.data()));
    }
    if (!pass.groups.empty()) return;
    for (std::size_t lane = 0; lane < pass.lanes.size(); ++lane) {
        take(kernels_.pick_rows(worker.dots.data() + lane * tile_rows_, worker.norms.data(), rows,
                                worker.cutoffs[lane], static_cast<std::uint32_t>(lane),
                                worker.picks.data()));
    }
}

/// The other kinds have no single cutoff: bounds for every row that the float32 bound covers.
void CpuEngine::bound_every_row(Pass& pass, Worker& worker, std::size_t task, std::size_t first_row,
                                std::size_t rows) const {
    for (std::size_t r = 0; r < rows; ++r) {
        if (std::isnan(worker.norms[r])) continue;
        offer(pass, worker, task, first_row + r,
              estimate(pass, worker, pass.tasks[task], first_row, r));
    }
}

/// Bounds of the canonical score of a row of the tile at hand, from its dot products.
Bounds CpuEngine::estimate(const Pass& pass, const Worker& worker, const Task& task,
                           std::size_t first_row, std::size_t r) const {
    const double row_norm = model_.norms()[first_row + r];
    const auto cosine_of = [&](std::size_t lane) {
        const float dot = pass.groups.empty() ? worker.dots[lane * tile_rows_ + r]
                                              : worker.dots[r * pass.padded_lanes + lane];
        return static_cast<double>(dot) / (pass.lanes[lane].scaled_norm * row_norm);
    };
    const auto* product = std::get_if<CosMul>(&task.query->kind);
    if (product == nullptr) {
        const double cosine = cosine_of(task.first_lane);
        return {cosine - bound_, cosine + bound_};
    }
    // The canonical operations on both ends of each interval: every one of them is monotone in each
    // of its arguments, and so is rounding, hence the ends bound the canonical result without a
    // margin of their own.
    Bounds above{1.0, 1.0};
    Bounds below{1.0, 1.0};
    std::size_t lane = task.first_lane;
    const auto multiply = [&](Bounds& into) {
        const double cosine = cosine_of(lane++);
        into.lower *= cosmul_part(std::clamp(cosine - bound_, -1.0, 1.0));
        into.upper *= cosmul_part(std::clamp(cosine + bound_, -1.0, 1.0));
    };
    for (std::size_t i = 0; i < product->positives.size(); ++i) multiply(above);
    for (std::size_t i = 0; i < product->negatives.size(); ++i) multiply(below);
    return {cosmul_score(above.lower, below.upper), cosmul_score(above.upper, below.lower)};
}

/// A row whose canonical score lies within `bounds` joins the task's candidates, or its count.
void CpuEngine::offer(Pass& pass, Worker& worker, std::size_t task_index, std::size_t row,
                      const Bounds& bounds) const {
    Task& task = pass.tasks[task_index];
    if (!(bounds.upper >= task.threshold.get())) return;
    const Row at = static_cast<Row>(row);
    if (!task.eligible(at, model_.ranks())) return;
    if (!std::holds_alternative<CountBefore>(task.query->kind)) {
        worker.lists[task_index].offer({at, bounds.lower, bounds.upper}, task.threshold);
        return;
    }
    if (at == task.target.row || bounds.upper < task.target.score) return;
    if (bounds.lower > task.target.score && bounds.lower >= task.query->filter.min_score) {
        ++worker.counts[task_index];
        return;
    }
    const Hit hit{at, canonical(*task.query, row)};
    ++worker.rescored[task_index];
    if (hit.score >= task.query->filter.min_score && comes_before(hit, task.target))
        ++worker.counts[task_index];
}

/// The canonical score of one row: what decides.
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

/// Canonical scores for what all threads have kept of a task, and the answer from them.
Answer CpuEngine::finish(Pass& pass, std::size_t task_index, std::vector<Worker>& workers) {
    Task& task = pass.tasks[task_index];
    const Query& query = *task.query;
    Answer answer;
    std::vector<Candidate> candidates;
    for (Worker& worker : workers) {
        answer.count += worker.counts[task_index];
        answer.certificate.rescored += worker.rescored[task_index];
        worker.lists[task_index].drain(candidates);
    }
    if (std::holds_alternative<CountBefore>(query.kind)) return answer;

    CandidateList::prune(candidates, query.k, task.threshold);
    answer.hits =
        best_hits(candidates, query, pool_, [&](Row row) { return canonical(query, row); });
    answer.certificate.rescored += candidates.size();
    answer.certificate.rejected_below = task.threshold.get();
    return answer;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_cpu_engine(const format::Model& model,
                                                const EngineOptions& options) {
    std::string names;
    for (const ScanKernels* kernels : all_scan_kernels()) {
        const bool supported = kernels->supported();
        if (supported && (options.simd.empty() || options.simd == kernels->name)) {
            return std::unique_ptr<Engine>(std::make_unique<CpuEngine>(model, *kernels, options));
        }
        names += fmt::format("{}{}{}", names.empty() ? "" : ", ", kernels->name,
                             supported ? "" : " (not on this processor)");
    }
    return Error{ErrorCode::unavailable,
                 fmt::format("no instruction set '{}': there are {}", options.simd, names)};
}

}  // namespace gloved::kernels::cpu
