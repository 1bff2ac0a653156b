#include "kernels/cpu/plane_pass.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <variant>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/candidates.hpp"
#include "kernels/cpu/eligible.hpp"

namespace gloved::kernels::cpu {
namespace {

/// A tile should stay in the L2 cache, beside what is listed of it, while block after block of
/// lanes meets it.
constexpr std::size_t kTileBytes = std::size_t{80} * 1024;
/// What a thread takes at a time.
constexpr std::size_t kTilesOfRange = 4;
/// Waiting rows that are worth a look through them: at first, when any threshold is much better
/// than none, and at most.
constexpr std::size_t kFirstWaiting = 512;
constexpr std::size_t kMaxWaitingRows = 16384;
/// Vectors are asked for that many rows ahead of their use: they lie far apart.
constexpr std::size_t kRowsAhead = 4;
constexpr std::size_t kLineFloats = 16;
/// Rows of one query that are worth a second thread at the end.
constexpr std::size_t kReadGrain = 64;

constexpr double kNoThreshold = -std::numeric_limits<double>::infinity();

/// The comparison of the loops, for one row.
bool reaches(const Passed& row, const planes::PlaneCutoff& cutoff) {
    const auto projection = static_cast<float>(row.projection);
    const auto residual = static_cast<float>(row.residual);
    return !(static_cast<float>(row.sum) <
             projection * cutoff.of_projection + (cutoff.constant - residual * cutoff.of_residual));
}

/// The k largest lower bounds that any thread has found: k eligible rows reach the least of them.
class LargestLower {
  public:
    explicit LargestLower(std::size_t k) : k_(k) {}

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

/// One query on its way. Threads share it.
class PlanePass::Lane {
  public:
    Lane(const Query& query, std::size_t dim)
        : query_(query),
          eligible(query),
          digits(planes::make_plane_query(vector())),
          threshold(query.filter.min_score),
          lowers(query.k),
          scaled_(vector().values),
          dim_(dim),
          // Of 2 a sum: the direction's product with the code is that less 15 ΣQ, times the scale.
          per_unit_(digits.facts.scale / planes::unit_of(dim)) {
        const int exponent = scale_exponent(vector().norm);
        for (float& value : scaled_) value = std::ldexp(value, exponent);
        scaled_norm_ = canonical_norm(scaled_.data(), scaled_.size());
    }

    const Query& query() const { return query_; }
    const QueryVector& vector() const { return std::get<Cosine>(query_.kind).vector; }
    const float* scaled() const { return scaled_.data(); }
    double scaled_norm() const { return scaled_norm_; }

    planes::PlaneCutoff cutoff(double least) const {
        return planes::plane_cutoff(digits.facts, least, dim_);
    }
    planes::PlaneCutoff coarse_cutoff(double least) const {
        return planes::plane_cutoff(digits.of_highs, least, dim_);
    }

    /// What the row's score probably is: for the order of reading, and nothing else.
    double estimate(const Passed& row) const {
        const double p = row.projection;
        const double h = row.residual;
        return (2.0 * row.sum - planes::kTopLevel * digits.facts.sum) * per_unit_ * p /
               (p * p + h * h);
    }

  private:
    const Query& query_;

  public:
    const Eligible eligible;
    const planes::PlaneQuery digits;
    Threshold threshold;
    LargestLower lowers;

  private:
    std::vector<float> scaled_;  // by a power of two, as bounds.hpp asks
    double scaled_norm_ = 0;
    std::size_t dim_;
    double per_unit_;
};

/// What one thread keeps of a lane.
struct PlanePass::Waiting {
    std::vector<Passed> rows;  // let through by some cutoff and not read; their row numbers are the
                               // model's
    std::size_t settle_at = 0;
    CandidateList candidates;  // rows that have been read
    std::uint64_t survivors = 0;

    explicit Waiting(std::size_t k)
        : settle_at(std::clamp(2 * k, kFirstWaiting, kMaxWaitingRows)), candidates(k) {}
};

/// What one thread needs for a pass.
struct PlanePass::Worker {
    std::vector<Waiting> waiting;                     // one a lane
    std::vector<double> thresholds;                   // that the cutoffs were made for: one a lane
    std::vector<planes::PlaneCutoff> coarse_cutoffs;  // one a lane, those that fill blocks too
    std::vector<planes::PlaneCutoff> cutoffs;
    std::vector<Passed> passed;  // of a tile and a block
};

PlanePass::PlanePass(const format::Model& model, const ScanKernels& kernels, ThreadPool& pool)
    : model_(model),
      kernels_(kernels),
      plane_kernel_(plane_kernel_for(kernels.name)),
      pool_(pool),
      plane_(model, pool),
      bound_(score_error_bound(model.dim())),
      tile_groups_(std::max<std::size_t>(1, kTileBytes / plane_.shape().group_bytes())) {}

void PlanePass::run(std::span<const Query* const> queries, RowRange range,
                    std::span<Answer* const> answers) {
    Lanes lanes;
    for (const Query* query : queries) lanes.emplace_back(*query, model_.dim());
    const std::size_t width = lanes.size() == 1 ? 1 : plane_kernel_.width;
    std::vector<LaneBlock> blocks;
    std::vector<const planes::PlaneQuery*> of_block;
    for (const Lane& lane : lanes) {
        of_block.push_back(&lane.digits);
        if (of_block.size() < width && &lane != &lanes.back()) continue;
        blocks.emplace_back(of_block, width);
        of_block.clear();
    }
    std::vector<Worker> workers(pool_.size());
    for (Worker& worker : workers) {
        for (const Lane& lane : lanes) worker.waiting.emplace_back(lane.query().k);
        worker.thresholds.assign(lanes.size(), std::numeric_limits<double>::quiet_NaN());
        worker.coarse_cutoffs.assign(blocks.size() * width, kNothingPasses);
        worker.cutoffs.assign(blocks.size() * width, kNothingPasses);
        worker.passed.resize(tile_groups_ * planes::kGroupRows * width);
    }

    const std::size_t grain = tile_groups_ * planes::kGroupRows * kTilesOfRange;
    std::atomic<std::size_t> next = range.first;
    const auto work = [&](unsigned worker) {
        for (std::size_t begin;
             (begin = next.fetch_add(grain, std::memory_order_relaxed)) < range.last;) {
            const RowRange here{begin, std::min(begin + grain, range.last)};
            read_uncovered(lanes, workers[worker], here);
            sift(lanes, blocks, workers[worker], here);
        }
    };
    // Waking the other threads for a few rows would cost more than it saves.
    if (range.size() <= grain) {
        work(0);
    } else {
        pool_.run(work);
    }
    finish(lanes, workers);

    const planes::PlaneShape& shape = plane_.shape();
    const std::size_t groups = range.size() == 0 ? 0
                                                 : (range.last - 1) / planes::kGroupRows -
                                                       range.first / planes::kGroupRows + 1;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
        Lane& lane = lanes[l];
        Answer& answer = *answers[l];
        std::vector<Candidate> candidates;
        for (Worker& worker : workers) {
            answer.certificate.survivors += worker.waiting[l].survivors;
            worker.waiting[l].candidates.drain(candidates);
        }
        CandidateList::prune(candidates, lane.query().k, lane.threshold);
        answer.certificate.rescored = candidates.size();
        answer.hits = best_hits(candidates, lane.query(), pool_,
                                [&](Row row) { return canonical(lane.vector(), row); });
        answer.certificate.scanned = range.size();
        answer.certificate.read_bytes = groups * shape.group_bytes() +
                                        answer.certificate.survivors * model_.dim() * sizeof(float);
        answer.certificate.rejected_below = lane.threshold.get();
        answer.certificate.pass = "plane";
    }
}

void PlanePass::sift(Lanes& lanes, const std::vector<LaneBlock>& blocks, Worker& worker,
                     RowRange range) const {
    const std::size_t last_group = (range.last + planes::kGroupRows - 1) / planes::kGroupRows;
    for (std::size_t group = range.first / planes::kGroupRows; group < last_group;
         group += tile_groups_) {
        const std::size_t groups = std::min(tile_groups_, last_group - group);
        std::size_t first_lane = 0;
        for (const LaneBlock& block : blocks) {
            for (std::size_t l = first_lane; l < first_lane + block.used(); ++l) {
                // A threshold rises seldom, and a cutoff has a square root in it.
                const double threshold = lanes[l].threshold.get();
                if (threshold == worker.thresholds[l]) continue;
                worker.thresholds[l] = threshold;
                worker.coarse_cutoffs[l] = lanes[l].coarse_cutoff(threshold);
                worker.cutoffs[l] = lanes[l].cutoff(threshold);
            }
            const std::size_t count =
                plane_kernel_.sift(plane_.group(group), groups, plane_.shape().steps(),
                                   block.view(worker.coarse_cutoffs.data() + first_lane,
                                              worker.cutoffs.data() + first_lane),
                                   worker.passed.data());
            for (std::size_t p = 0; p < count; ++p) {
                Passed& passed = worker.passed[p];
                passed.row += static_cast<std::uint32_t>(group * planes::kGroupRows);
                // A range may begin and end within a group; rows that the plane does not cover have
                // been read.
                if (passed.row < range.first || passed.row >= range.last || passed.residual == 0)
                    continue;
                const std::size_t l = first_lane + passed.lane;
                take(lanes[l], worker.waiting[l], passed);
            }
            first_lane += block.used();
        }
    }
}

void PlanePass::take(Lane& lane, Waiting& waiting, const Passed& row) const {
    // By rank and name first: no vector is read of a row that cannot be in the answer.
    if (!lane.eligible(row.row, model_.ranks())) return;
    const double threshold = lane.threshold.get();
    if (threshold > kNoThreshold && lane.estimate(row) >= threshold)
        return read(lane, waiting, std::span(&row, 1));
    waiting.rows.push_back(row);
    if (waiting.rows.size() >= waiting.settle_at) settle(lane, waiting);
}

/// Makes room among the rows that wait.
void PlanePass::settle(Lane& lane, Waiting& waiting) const {
    const auto leave_out = [&] {
        const planes::PlaneCutoff cutoff = lane.cutoff(lane.threshold.get());
        std::erase_if(waiting.rows, [&](const Passed& row) { return !reaches(row, cutoff); });
    };
    leave_out();
    if (waiting.rows.size() <= waiting.settle_at / 2) return;
    if (lane.threshold.get() > kNoThreshold && waiting.settle_at < kMaxWaitingRows) {
        // They may well be left out unread by what is still to come.
        waiting.settle_at = std::min(2 * waiting.settle_at, kMaxWaitingRows);
        return;
    }
    // As many as give a threshold, where there is none, and at least so many that the next time is
    // not soon.
    const std::size_t count =
        std::min(waiting.rows.size(), std::max(lane.query().k, waiting.settle_at / 8));
    const auto end = waiting.rows.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(
        waiting.rows.begin(), end, waiting.rows.end(),
        [&](const Passed& a, const Passed& b) { return lane.estimate(a) > lane.estimate(b); });
    read(lane, waiting, std::span(waiting.rows).first(count));
    waiting.rows.erase(waiting.rows.begin(), end);
    leave_out();
}

/// Bounds the scores of rows by their vectors, of those that the threshold has not overtaken.
void PlanePass::read(Lane& lane, Waiting& waiting, std::span<const Passed> rows) const {
    const std::size_t dim = model_.dim();
    double threshold = lane.threshold.get();
    planes::PlaneCutoff cutoff = lane.cutoff(threshold);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i + kRowsAhead < rows.size()) {
            const float* const ahead = model_.vector(rows[i + kRowsAhead].row).data();
            for (std::size_t at = 0; at < dim; at += kLineFloats) __builtin_prefetch(ahead + at);
        }
        if (lane.threshold.get() != threshold) {
            threshold = lane.threshold.get();
            cutoff = lane.cutoff(threshold);
        }
        if (!reaches(rows[i], cutoff)) continue;
        const std::size_t row = rows[i].row;
        float dot = 0;
        kernels_.dots(lane.scaled(), model_.vector(row).data(), 1, dim, &dot);
        const double cosine = static_cast<double>(dot) / (lane.scaled_norm() * model_.norms()[row]);
        ++waiting.survivors;
        offer(lane, waiting, {rows[i].row, cosine - bound_, cosine + bound_});
    }
}

double PlanePass::canonical(const QueryVector& vector, std::size_t row) const {
    return canonical_score(vector.values.data(), vector.norm, model_.vector(row).data(),
                           model_.norms()[row], model_.dim());
}

/// Rows that the plane says nothing of are scored canonically, in every query.
void PlanePass::read_uncovered(Lanes& lanes, Worker& worker, RowRange range) const {
    const auto uncovered = plane_.uncovered();
    for (auto row = std::lower_bound(uncovered.begin(), uncovered.end(), range.first);
         row != uncovered.end() && *row < range.last; ++row) {
        for (std::size_t l = 0; l < lanes.size(); ++l) {
            if (!lanes[l].eligible(*row, model_.ranks())) continue;
            const double score = canonical(lanes[l].vector(), *row);
            ++worker.waiting[l].survivors;
            offer(lanes[l], worker.waiting[l], {*row, score, score});
        }
    }
}

void PlanePass::offer(Lane& lane, Waiting& waiting, const Candidate& candidate) const {
    if (!(candidate.upper >= lane.threshold.get())) return;
    waiting.candidates.offer(candidate, lane.threshold);
    lane.lowers.add(candidate.lower, lane.threshold);
}

/// Reads what still waits and may still belong to an answer: the most promising rows first, then
/// the others as they lie in memory.
void PlanePass::finish(Lanes& lanes, std::vector<Worker>& workers) {
    struct Left {
        std::vector<Passed> best;
        std::vector<Passed> others;
    };
    std::vector<Left> left(lanes.size());
    pool_.for_ranges(lanes.size(), 1, [&](std::size_t l, std::size_t) {
        const Lane& lane = lanes[l];
        const planes::PlaneCutoff cutoff = lane.cutoff(lane.threshold.get());
        std::vector<double> estimates;
        for (Worker& worker : workers) {
            std::vector<Passed>& rows = worker.waiting[l].rows;
            std::erase_if(rows, [&](const Passed& row) { return !reaches(row, cutoff); });
            for (const Passed& row : rows) estimates.push_back(lane.estimate(row));
        }
        if (estimates.empty()) return;
        const auto last = estimates.begin() + static_cast<std::ptrdiff_t>(
                                                  std::min(lane.query().k, estimates.size()) - 1);
        std::nth_element(estimates.begin(), last, estimates.end(), std::greater<>());
        for (Worker& worker : workers) {
            for (const Passed& row : worker.waiting[l].rows) {
                (lane.estimate(row) >= *last ? left[l].best : left[l].others).push_back(row);
            }
            worker.waiting[l].rows = {};
        }
    });
    struct Piece {
        std::size_t lane;
        std::span<const Passed> rows;
    };
    for (const auto part : {&Left::best, &Left::others}) {
        std::vector<Piece> pieces;
        for (std::size_t l = 0; l < lanes.size(); ++l) {
            const std::span<const Passed> rows = left[l].*part;
            for (std::size_t at = 0; at < rows.size(); at += kReadGrain) {
                pieces.push_back({l, rows.subspan(at, std::min(kReadGrain, rows.size() - at))});
            }
        }
        std::atomic<std::size_t> next = 0;
        const auto work = [&](unsigned worker) {
            for (std::size_t p;
                 (p = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
                const std::size_t l = pieces[p].lane;
                read(lanes[l], workers[worker].waiting[l], pieces[p].rows);
            }
        };
        // Waking the other threads costs more than it saves for a few.
        if (pieces.size() < pool_.size()) {
            work(0);
        } else {
            pool_.run(work);
        }
    }
}

}  // namespace gloved::kernels::cpu
