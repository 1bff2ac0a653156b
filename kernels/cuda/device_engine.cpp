#include "kernels/cuda/device_engine.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/best_hits.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/row_pairs.hpp"

namespace gloved::kernels::cuda {

namespace {

/// Fewest queries of a pass over code tiles, where the device holds something else too.
constexpr std::size_t kMinTilesBatch = 3;
/// Where the device holds code tiles, they answer queries for more hits faster than the plane,
/// which lets too many rows through.
constexpr std::size_t kMaxPlaneHits = 32;
/// Fewest queries of a run for which those of a range of rows share the pass of the others. A pass
/// of their own reads these rows alone.
constexpr std::size_t kMinBatchOfRanges = 16;
/// For shorter vectors than the first dim, no batch takes one thread longer to write than several
/// to be woken. A batch of vectors of the second dim is divided, see pass_queries.
constexpr std::size_t kMinWritersDim = 256;
constexpr std::size_t kMinDividedDim = 1024;
/// Queries of a panel of a pass over code tiles.
constexpr std::size_t kPanelQueries = std::size_t{CodeGrid::kWarpgroups} * kCodeBlockQueries;
constexpr double kNone = -std::numeric_limits<double>::infinity();
/// Hits that are added to a list on the host together.
constexpr std::size_t kHostHits = 1024;
/// Few rows are one in so many of the device's, at most.
constexpr std::size_t kFewShare = 8;

/// The largest run of queries that a pass over the plane answers faster than one over code tiles,
/// by measurement (docs/performance-history.md): the more components, the more the rows cost that
/// come through, and the fewer of them a pass lists.
std::size_t max_plane_run(std::size_t rows, std::size_t dim) {
    constexpr std::size_t kManyRows = 1000000;
    if (dim <= 256 || (dim <= 320 && rows >= kManyRows)) return 16;
    return dim <= 512 ? 8 : 4;
}

}  // namespace

/// A share of a run, with its k limited to the device's rows.
struct DeviceEngine::Task {
    const Query* query = nullptr;
    RowRange rows;
    Answer* answer = nullptr;
    std::span<const Row> excluded;  // the query's, or those of `sorted`
    std::vector<Row> sorted;
    std::size_t k = 0;
    bool had_room = false;  // a pass over code tiles with the most room for it overflowed

    explicit Task(const QueryShare& of)
        : query(of.query),
          rows(of.rows),
          answer(of.answer),
          excluded(of.query->excluded),
          k(std::min(of.query->k, of.rows.size())) {}
    /// Sorts the excluded rows and drops repetitions, which every pass needs but that over code
    /// tiles. Sorting takes longer than that pass, where they are many.
    void sort_excluded() {
        const auto out_of_order = [](Row a, Row b) { return a >= b; };
        if (std::ranges::adjacent_find(excluded, out_of_order) == excluded.end()) return;
        sorted = query->excluded;
        std::ranges::sort(sorted);
        sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
        excluded = sorted;
    }
    Task(Task&&) = default;  // a copy's `excluded` would be that of the original
    const Cosine* cosine() const { return std::get_if<Cosine>(&query->kind); }
    std::size_t k_plus_excluded() const { return k + excluded.size(); }
    bool fits_device() const { return k <= kMaxHits && k_plus_excluded() <= kMaxKPlusExcluded; }
    bool excludes(std::size_t row) const {
        return std::ranges::binary_search(excluded, static_cast<Row>(row));
    }
    PassQuery pass_query() const { return {&cosine()->vector, query, rows, excluded, k}; }
    /// What a pass over all scores gives: all of them, for the host, where the device's lists are
    /// too short for the answer, or one launch does not take the query's vectors.
    ScoreResult score_result() const {
        if (excluded.size() > kMaxKPlusExcluded || vectors_of(*query) > kMaxScoreVectors)
            return ScoreResult::scores;
        if (std::holds_alternative<CountBefore>(query->kind)) return ScoreResult::counts;
        // With fewer units than that there is no floor, and every row is found.
        const bool has_floor = k_plus_excluded() <= rows.size() / kUnitRows;
        return fits_device() && (has_floor || rows.size() <= kFoundCapacity) ? ScoreResult::maxima
                                                                             : ScoreResult::scores;
    }
};

Result<std::unique_ptr<DeviceEngine>> DeviceEngine::create(const format::Model& model,
                                                           const EnginePlan::PlannedShard& planned,
                                                           const Residency& residency,
                                                           const EngineOptions& options,
                                                           unsigned writers) {
    auto pool = model.dim() < kMinWritersDim ? nullptr : std::make_unique<ThreadPool>(writers);
    auto shard = Shard::create(model, planned.rows, planned.device, residency, options.time_device,
                               pool.get());
    if (!shard) return shard.error();
    return std::unique_ptr<DeviceEngine>(
        new DeviceEngine(model, residency, std::move(pool), *std::move(shard)));
}

DeviceEngine::DeviceEngine(const format::Model& model, const Residency& residency,
                           std::unique_ptr<ThreadPool> writers, std::unique_ptr<Shard> shard)
    : model_(model),
      residency_(residency),
      writers_(std::move(writers)),
      shard_(std::move(shard)) {}

Status DeviceEngine::run(std::span<const QueryShare> shares,
                         const std::function<void()>& meanwhile) {
    meanwhile_ = meanwhile;
    Status done = answer(shares);
    meanwhile_ = nullptr;
    return done;
}

Status DeviceEngine::start_lone(const QueryShare& share) {
    Task task(share);
    if (needs_all_scores(task) || few_rows_serve(task) || min_tiles_batch() == 1) return {};
    if (lone_way(task) != Way::alone) return {};
    lone_started_ = true;
    return shard_->start_plane_query(task.pass_query());
}

void DeviceEngine::work_meanwhile() {
    if (const auto work = std::exchange(meanwhile_, nullptr)) work();
}

/// One pass over long vectors would begin when all are written; of two, the second's are written
/// during the first.
std::size_t DeviceEngine::pass_queries(std::size_t queries) const {
    const bool two = model_.dim() >= kMinDividedDim && code_capacity() > 0 &&
                     queries > 3 * kPanelQueries && queries <= code_capacity();
    return two ? 2 * kPanelQueries : code_capacity();
}

std::size_t DeviceEngine::min_tiles_batch() const {
    return residency_.vectors || residency_.plane ? kMinTilesBatch : 1;
}

bool DeviceEngine::tiles_serve(const Task& task, std::size_t queries) const {
    const bool takes_range = queries >= kMinBatchOfRanges || min_tiles_batch() == 1;
    return code_capacity() > 0 && (is_whole(task.rows) || takes_range) && task.k <= kMaxBatchHits &&
           task.k_plus_excluded() <= kMaxBatchKPlusExcluded;
}

bool DeviceEngine::plane_pass_serves(const Task& task, std::size_t queries) const {
    const std::size_t max_run = max_plane_run(shard_->rows().size(), model_.dim());
    const bool tiles_are_faster = tiles_serve(task, queries) && queries >= min_tiles_batch() &&
                                  (queries > max_run || task.k > kMaxPlaneHits);
    return shard_->plane_capacity() > 0 && queries > 1 && !tiles_are_faster &&
           is_whole(task.rows) && task.k <= kMaxBatchHits &&
           shard_->plane_pass_serves(task.k_plus_excluded());
}

bool DeviceEngine::few_rows_serve(const Task& task) const {
    return shard_->serves_few_rows() && task.k <= kMaxBatchHits &&
           task.k_plus_excluded() <= kMaxBatchKPlusExcluded &&
           rows_left(task) <= std::min<std::size_t>(kMaxFewRows, shard_->rows().size() / kFewShare);
}

std::size_t DeviceEngine::rows_left(const Task& task) const {
    const Filter& filter = task.query->filter;
    const std::size_t rows = std::min<std::size_t>(task.rows.size(), filter.rank_below);
    return std::min(rows, shard_->listed(filter.within).value_or(rows));
}

bool DeviceEngine::needs_all_scores(const Task& task) {
    return task.cosine() == nullptr || !task.fits_device();
}

DeviceEngine::Way DeviceEngine::first_way(Task& task, std::size_t queries) const {
    const bool plane = plane_pass_serves(task, queries);
    // Sorting takes longer than a pass over code tiles, which does without.
    const bool tiles =
        task.cosine() != nullptr && !plane && tiles_serve(task, queries) && !few_rows_serve(task);
    if (tiles) return Way::tiles;
    task.sort_excluded();
    if (needs_all_scores(task)) return Way::scores;
    if (few_rows_serve(task)) return Way::few_rows;
    return plane ? Way::plane : lone_way(task);
}

DeviceEngine::Way DeviceEngine::lone_way(Task& task) const {
    task.sort_excluded();
    return shard_->plane_serves(task.k_plus_excluded()) ? Way::alone : Way::scores;
}

DeviceEngine::Way DeviceEngine::way_after(Way way, Task& task) const {
    switch (way) {
        case Way::plane:
            return code_capacity() > 0 ? Way::tiles : lone_way(task);
        case Way::tiles:
            return task.had_room ? lone_way(task) : Way::tiles_again;
        case Way::alone:
            return !task.had_room && tiles_serve(task, kMinBatchOfRanges) ? Way::tiles_at_last
                                                                          : Way::scores;
        case Way::few_rows:
        case Way::tiles_again:
            return lone_way(task);
        case Way::tiles_at_last:
        case Way::scores:
            break;
    }
    return Way::scores;
}

std::size_t DeviceEngine::too_few_for(Way way, std::size_t queries) const {
    switch (way) {
        case Way::plane:
            return queries == 1 ? 1 : 0;
        case Way::tiles: {
            const std::size_t rest = code_capacity() > 0 ? queries % code_capacity() : 0;
            return rest < min_tiles_batch() ? rest : 0;
        }
        case Way::tiles_again:
            return queries < min_tiles_batch() ? queries : 0;
        default:
            return 0;
    }
}

/// Answers each query by the fastest way that can. What overflows a way waits for a later one.
Status DeviceEngine::answer(std::span<const QueryShare> shares) {
    std::vector<Task> tasks;
    tasks.reserve(shares.size());
    std::array<std::vector<std::size_t>, kWays> waiting;
    const auto wait_for = [&](Way way, std::size_t i) {
        waiting[static_cast<std::size_t>(way)].push_back(i);
    };
    for (std::size_t i = 0; i < shares.size(); ++i) {
        assert(shares[i].query->k > 0);
        wait_for(first_way(tasks.emplace_back(shares[i]), shares.size()), i);
    }
    for (std::size_t number = 0; number < kWays; ++number) {
        const auto way = static_cast<Way>(number);
        std::vector<std::size_t>& which = waiting[number];
        for (std::size_t left = too_few_for(way, which.size()); left > 0; --left) {
            wait_for(lone_way(tasks[which.back()]), which.back());
            which.pop_back();
        }
        std::vector<std::size_t> overflowed;
        if (Status done = run_way(way, tasks, which, overflowed); !done) return done;
        for (const std::size_t i : overflowed) wait_for(way_after(way, tasks[i]), i);
    }
    assert(!lone_started_);
    return {};
}

Status DeviceEngine::run_way(Way way, std::span<Task> tasks, std::span<const std::size_t> which,
                             std::vector<std::size_t>& overflowed) {
    switch (way) {
        case Way::few_rows:
            return run_together(tasks, which, way, code_capacity(), overflowed);
        case Way::plane:
            return run_together(tasks, which, way, shard_->plane_capacity(), overflowed);
        case Way::tiles:
        case Way::tiles_again:
        case Way::tiles_at_last:
            if (way != Way::tiles || which.size() <= kMaxRoomyCodePass) {
                for (const std::size_t i : which) tasks[i].had_room = true;
            }
            return run_together(tasks, which, way,
                                way == Way::tiles ? pass_queries(which.size()) : kMaxRoomyCodePass,
                                overflowed);
        case Way::alone:
            return run_alone(tasks, which, overflowed);
        case Way::scores:
            break;
    }
    return run_scored(tasks, which);
}

Status DeviceEngine::run_alone(std::span<Task> tasks, std::span<const std::size_t> which,
                               std::vector<std::size_t>& overflowed) {
    for (const std::size_t& i : which) {
        if (!std::exchange(lone_started_, false)) {
            Status started = shard_->start_plane_query(tasks[i].pass_query());
            if (!started) return started;
        }
        Status done = take_answers(tasks, std::span(&i, 1), Way::alone, 0, overflowed);
        if (!done) return done;
    }
    return {};
}

/// While the device works through a pass, the host takes the answers of the one before and prepares
/// the one after.
Status DeviceEngine::run_together(std::span<const Task> tasks, std::span<const std::size_t> which,
                                  Way way, std::size_t max_queries,
                                  std::vector<std::size_t>& overflowed) {
    std::span<const std::size_t> running;  // in the slot before `slot`
    std::size_t slot = 0;
    const auto take_running = [&]() -> Status {
        if (running.empty()) return {};
        const std::size_t before = (slot + kSlots - 1) % kSlots;
        return take_answers(tasks, std::exchange(running, {}), way, before, overflowed);
    };
    while (!which.empty()) {
        const auto next = which.first(std::min(max_queries, which.size()));
        which = which.subspan(next.size());
        if (Status done = start_together(tasks, next, way, slot); !done) return done;
        if (Status done = take_running(); !done) return done;
        running = next;
        slot = (slot + 1) % kSlots;
    }
    return take_running();
}

Status DeviceEngine::start_together(std::span<const Task> tasks, std::span<const std::size_t> which,
                                    Way way, std::size_t slot) {
    std::vector<PassQuery> pass;
    pass.reserve(which.size());
    for (const std::size_t i : which) pass.push_back(tasks[i].pass_query());
    if (way == Way::plane) return shard_->start_plane_pass(pass, slot);
    if (way == Way::few_rows) return shard_->start_few_rows(pass, slot);
    return shard_->start_code_pass(pass, slot);
}

Status DeviceEngine::take_answers(std::span<const Task> tasks, std::span<const std::size_t> which,
                                  Way way, std::size_t slot, std::vector<std::size_t>& overflowed) {
    const Pass pass = way == Way::few_rows                     ? Pass::float64
                      : way == Way::plane || way == Way::alone ? Pass::plane
                                                               : Pass::int8;
    work_meanwhile();
    for (const std::size_t i : which) tasks[i].answer->hits.reserve(tasks[i].k);
    if (Status done = way == Way::alone ? shard_->wait() : shard_->wait(slot); !done) return done;
    Certificate certificate;
    if (Status done = move_into(certificate.device_ms, shard_->device_ms(slot)); !done) return done;
    certificate.pass = pass;
    for (std::size_t at = 0; at < which.size(); ++at) {
        Answer& answer = *tasks[which[at]].answer;
        if (shard_->answer(at, slot).overflow) {
            overflowed.push_back(which[at]);
            if (pass != Pass::float64) answer.certificate.plane_overflowed = true;
            continue;
        }
        certificate.plane_overflowed = answer.certificate.plane_overflowed && pass != Pass::int8;
        answer.certificate = certificate;
        answer.certificate.scanned = tasks[which[at]].rows.size();
        take_hits(at, slot, answer);
        if (pass == Pass::float64) answer.certificate.scanned = answer.certificate.rescored;
        set_read_bytes(answer.certificate);
    }
    return {};
}

/// Queries of one result share a pass, as many as it takes. The device selects the best where its
/// lists suffice, otherwise the host.
Status DeviceEngine::run_scored(std::span<Task> tasks, std::span<const std::size_t> which) {
    std::vector<std::size_t> on_host;
    struct Kind {
        ScoreResult result;
        bool few;
    };
    for (const Kind kind : {Kind{ScoreResult::maxima, false}, Kind{ScoreResult::counts, true},
                            Kind{ScoreResult::counts, false}}) {
        std::vector<std::size_t> pass;
        std::size_t vectors = 0;
        const auto run = [&]() -> Status {
            vectors = 0;
            const auto now = std::exchange(pass, {});
            return now.empty() ? Status()
                               : run_score_pass(tasks, now, kind.result, kind.few, on_host);
        };
        for (const std::size_t i : which) {
            if (tasks[i].score_result() != kind.result || counts_few_rows(tasks[i]) != kind.few)
                continue;
            const std::size_t own = vectors_of(*tasks[i].query);
            if (pass.size() == kMaxScoredQueries || vectors + own > kMaxScoreVectors) {
                if (Status done = run(); !done) return done;
            }
            pass.push_back(i);
            vectors += own;
        }
        if (Status done = run(); !done) return done;
    }
    for (const std::size_t i : which) {
        if (tasks[i].score_result() == ScoreResult::scores) on_host.push_back(i);
    }
    for (const std::size_t& i : on_host) {
        std::vector<std::size_t> none;
        Status done = run_score_pass(tasks, std::span(&i, 1), ScoreResult::scores, false, none);
        if (!done) return done;
    }
    return {};
}

Status DeviceEngine::run_score_pass(std::span<const Task> tasks, std::span<const std::size_t> which,
                                    ScoreResult result, bool few,
                                    std::vector<std::size_t>& overflowed) {
    std::vector<ScoreQuery> queries;
    for (const std::size_t i : which) queries.push_back(score_query(tasks[i], result));
    if (Status done = shard_->start_score(queries, result, few); !done) return done;
    if (Status done = wait(); !done) return done;
    double device_ms = 0;
    if (Status done = move_into(device_ms, shard_->device_ms(0)); !done) return done;
    for (std::size_t at = 0; at < which.size(); ++at) {
        const Task& task = tasks[which[at]];
        Answer& answer = *task.answer;
        const ShardAnswer found = shard_->answer(at);
        if (result == ScoreResult::maxima && found.overflow) {
            overflowed.push_back(which[at]);
            continue;
        }
        if (result == ScoreResult::scores) {
            select_on_host(task);
        } else if (result == ScoreResult::counts) {
            answer.count = found.facts.found;
        } else {
            take_hits(at, 0, answer);
        }
        answer.certificate.pass = Pass::float64;
        answer.certificate.scanned = answer.certificate.rescored =
            few ? found.facts.rescored : task.rows.size();
        answer.certificate.rejected_below = kNone;
        answer.certificate.device_ms = device_ms;
        set_read_bytes(answer.certificate);
    }
    return {};
}

bool DeviceEngine::counts_few_rows(const Task& task) const {
    if (task.score_result() != ScoreResult::counts) return false;
    Filter filter = task.query->filter;
    filter.rows = std::nullopt;  // a pass reads no other units than those of task.rows
    return most_rows(filter, model_.rows()) <= task.rows.size() / kFewShare;
}

ScoreQuery DeviceEngine::score_query(const Task& task, ScoreResult result) const {
    ScoreQuery scored;
    if (const auto* product = std::get_if<CosMul>(&task.query->kind)) {
        for (const auto* some : {&product->positives, &product->negatives}) {
            for (const QueryVector& vector : *some) scored.vectors.push_back(&vector);
        }
        scored.positives = product->positives.size();
        scored.is_product = true;
    } else {
        const auto* count = std::get_if<CountBefore>(&task.query->kind);
        scored.vectors = {count != nullptr ? &count->vector : &task.cosine()->vector};
    }
    assert(!scored.vectors.empty());
    // Of the scores of all rows, the host leaves out the excluded ones.
    const std::span<const Row> excluded =
        result == ScoreResult::scores ? std::span<const Row>() : task.excluded;
    scored.query = {scored.vectors.front(), task.query, task.rows, excluded, task.k};
    if (result == ScoreResult::counts) scored.target = *target_of(task);
    return scored;
}

std::optional<Hit> DeviceEngine::target_of(const Task& task) const {
    const auto* count = std::get_if<CountBefore>(&task.query->kind);
    if (count == nullptr) return std::nullopt;
    return counted_hit(model_, *count);
}

/// Selects on the host, for large k and for more ties than the device's lists hold. A score is NaN
/// where rank, range or minimum score rule its row out.
void DeviceEngine::select_on_host(const Task& task) {
    const std::span<const double> scores = shard_->scores(task.rows);
    if (const std::optional<Hit> target = target_of(task)) {
        std::uint64_t& count = task.answer->count = 0;
        for (std::size_t i = 0; i < scores.size(); ++i) {
            const Hit hit{static_cast<Row>(task.rows.first + i), scores[i]};
            if (std::isnan(hit.score) || hit.row == target->row) continue;
            if (comes_before(hit, *target) && !task.excludes(hit.row)) ++count;
        }
        return;
    }
    // Once k rows are known, few of the others reach the threshold.
    BestHits best(task.k, kNone);
    std::vector<Hit> hits;
    hits.reserve(kHostHits);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (!(scores[i] >= best.threshold())) continue;
        const std::size_t row = task.rows.first + i;
        if (task.excludes(row)) continue;
        hits.push_back({static_cast<Row>(row), scores[i]});
        if (hits.size() < kHostHits) continue;
        best.add(hits);
        hits.clear();
    }
    best.add(hits);
    task.answer->hits = best.take();
}

Status DeviceEngine::wait() {
    work_meanwhile();
    return shard_->wait();
}

void DeviceEngine::take_hits(std::size_t at, std::size_t slot, Answer& answer) const {
    const ShardAnswer found = shard_->answer(at, slot);
    for (const Found& hit : found.hits) {
        answer.hits.push_back({static_cast<Row>(shard_->rows().first + hit.row), hit.score});
    }
    answer.certificate.rescored = found.facts.rescored;
    answer.certificate.survivors = found.facts.survivors;
    answer.certificate.rejected_below = found.facts.floor;
}

void DeviceEngine::set_read_bytes(Certificate& certificate) const {
    const std::size_t row_bytes = model_.dim() * sizeof(float);
    if (certificate.pass == Pass::int8) {
        certificate.read_bytes =
            certificate.scanned * model_.dim() + certificate.rescored * row_bytes;
        return;
    }
    if (certificate.pass != Pass::plane) {
        certificate.survivors = certificate.scanned;
        certificate.read_bytes = certificate.scanned * row_bytes;
        return;
    }
    certificate.read_bytes =
        planes::PlaneShape{static_cast<std::size_t>(certificate.scanned), model_.dim()}.bytes() +
        certificate.rescored * row_bytes;
    if (shard_->holds_int8_codes()) certificate.read_bytes += certificate.survivors * model_.dim();
}

}  // namespace gloved::kernels::cuda
