#include "kernels/cuda/cuda_engine.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cuda/code_pass.cuh"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/engine_plan.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/shard_buffers.hpp"
#include "kernels/cuda/upload.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {

namespace {

using Clock = std::chrono::steady_clock;

/// Fewest queries of a pass of many, unless up to scan_capacity_ queries share a scan of the plane
/// and more of them pass over code tiles.
constexpr std::size_t kMinBatch = 4;
/// Fewest queries of a run for which those of a range of rows share the pass of the others. A pass
/// of their own reads these rows alone.
constexpr std::size_t kMinBatchOfRanges = 16;
/// Threads that write the queries' vectors for the device. For shorter vectors than the first, no
/// batch takes one thread longer to write than several to be woken. A batch of vectors of the
/// second dim is divided, see pass_queries.
constexpr unsigned kWriters = 8;
constexpr std::size_t kMinWritersDim = 256;
constexpr std::size_t kMinDividedDim = 1024;
/// Queries of a panel of a pass over code tiles.
constexpr std::size_t kPanelQueries = std::size_t{CodeGrid::kWarpgroups} * kCodeBlockQueries;
/// Fewest bytes of vectors on a device for which the plane is faster for one query. A pass over the
/// plane takes longer to begin and to end than one over vectors (docs/performance-history.md).
constexpr std::size_t kMinPlaneBytes = std::size_t{128} << 20;

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// A query of a run, with its k limited to the model's rows.
struct Task {
    const Query* query = nullptr;
    std::span<const Row> excluded;  // the query's, or those of `sorted`
    std::vector<Row> sorted;
    std::size_t k = 0;

    Task(const Query& of, std::size_t rows)
        : query(&of), excluded(of.excluded), k(std::min(of.k, rows)) {}
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
};

PassQuery pass_query(const Task& task, double error) {
    return {&task.cosine()->vector, task.query, task.excluded, task.k, error};
}

class CudaEngine final : public Engine {
  public:
    /// Allocates and fills the shards of the plan.
    static Result<std::unique_ptr<Engine>> create(const format::Model& model,
                                                  const EngineOptions& options, EnginePlan plan);

    EngineKind kind() const override { return EngineKind::cuda; }
    std::string description() const override { return description_; }
    std::optional<GpuFacts> gpu_facts() const override { return facts_; }

    Result<std::vector<Answer>> run(std::span<const Query> queries) override {
        if (broken_) return Error{ErrorCode::device, "a CUDA call has failed before"};
        std::vector<Answer> answers(queries.size());
        const Status done = answer(queries, answers);
        meanwhile_ = nullptr;
        if (!done) {
            broken_ = true;
            return done.error();
        }
        return answers;
    }
    void during_next_run(const std::function<void()>& work) override { meanwhile_ = work; }

  private:
    CudaEngine(const format::Model& model, const EngineOptions& options, EnginePlan plan)
        : model_(model), plan_(std::move(plan)) {
        if (model.dim() >= kMinWritersDim) {
            const unsigned threads = options.threads == 0 ? usable_processors() : options.threads;
            writers_.emplace(std::min(threads, kWriters));
        }
        prefers_plane_ = !plan_.residency.vectors || options.planes_always ||
                         model.vectors().size_bytes() / plan_.parts.size() >= kMinPlaneBytes;
    }

    Status lock_vectors();
    Status allocate(const EngineOptions& options);
    Status create_shards(const EngineOptions& options);
    Status fill(const planes::Plane* plane, bool pin);
    /// Sets what description() and facts() return, and logs how long loading took.
    void describe(const EngineOptions& options);

    Status answer(std::span<const Query> queries, std::vector<Answer>& answers);
    /// Answers tasks[which[i]] over the plane, alone or with a few, or alone in float32. Appends
    /// those that overflow to `overflowed`, and those for which there are neither a plane nor
    /// vectors to `unanswered`.
    Status run_alone(std::span<Task> tasks, std::span<const std::size_t> which,
                     std::vector<Answer>& answers, std::vector<std::size_t>& overflowed,
                     std::vector<std::size_t>& unanswered);
    /// Answers tasks[which[i]], one in float32 or several by one scan of the plane; appends those
    /// that overflow to `overflowed`.
    Status run_bounded(std::span<const Task> tasks, std::span<const std::size_t> which,
                       Estimate estimate, std::vector<Answer>& answers,
                       std::vector<std::size_t>& overflowed);
    /// The passes of many queries.
    enum class Together { tiles, plane, few_rows };
    /// Does the same for tasks[which[i]] by passes of up to `max_queries`.
    Status run_together(std::span<const Task> tasks, std::span<const std::size_t> which,
                        Together way, std::size_t max_queries, std::vector<Answer>& answers,
                        std::vector<std::size_t>& overflowed);
    Status start_together(std::span<const Task> tasks, std::span<const std::size_t> which,
                          Together way, std::size_t slot);
    /// A pass that was started.
    struct Started {
        Pass pass;
        bool many;  ///< not one of run_bounded
        std::size_t slot;
    };
    /// Waits for a pass and takes its answers.
    Status take_answers(std::span<const Task> tasks, std::span<const std::size_t> which,
                        Started started, std::vector<Answer>& answers,
                        std::vector<std::size_t>& overflowed);
    /// Sets survivors and read_bytes from pass, scanned and rescored. `many`: the pass was of many
    /// queries. Those over the plane read int8 codes where there are any.
    void set_read_bytes(bool many, Certificate& certificate) const;
    /// Maximum number of queries of a pass of many; 0: there is no such pass.
    std::size_t batch_capacity() const {
        return code_capacity_ > 0 ? code_capacity_ : plane_capacity_;
    }
    /// Maximum number of queries of each such pass in a run of that many. One pass over long
    /// vectors would begin when all are written; of two, the second's are written during the first.
    std::size_t pass_queries(std::size_t queries) const {
        const bool two = model_.dim() >= kMinDividedDim && code_capacity_ > 0 &&
                         queries > 3 * kPanelQueries && queries <= code_capacity_;
        return two ? 2 * kPanelQueries : batch_capacity();
    }
    /// Fewest queries of such a pass. Where the device holds nothing else, one.
    std::size_t min_batch() const {
        if (!holds_vectors() && !plan_.residency.plane) return 1;
        const bool shares = prefers_plane_ && code_capacity_ > 0 && scan_capacity_ > 1;
        return shares ? scan_capacity_ + 1 : kMinBatch;
    }
    /// Whether a pass of many can answer the task in a run of that many.
    bool batch_serves(const Task& task, std::size_t queries) const {
        const bool takes_range =
            code_capacity_ > 0 && (queries >= kMinBatchOfRanges || min_batch() == 1);
        return batch_capacity() > 0 && (!task.query->filter.rows || takes_range) &&
               task.k <= kMaxBatchHits && task.k_plus_excluded() <= kMaxBatchKPlusExcluded;
    }
    /// Whether the filter leaves so few rows that all of them are scored.
    bool few_rows_serve(const Task& task) const {
        constexpr std::size_t kFew = 8;  // of the model's rows, one in so many at most
        return serves_few_rows_ && task.k <= kMaxBatchHits &&
               task.k_plus_excluded() <= kMaxBatchKPlusExcluded &&
               rows_left(task) <= std::min<std::size_t>(kMaxFewRows, model_.rows() / kFew);
    }
    std::size_t rows_left(const Task& task) const {
        return std::min<std::size_t>(range_of(task).size(), task.query->filter.rank_below);
    }
    bool plane_serves(const Task& task) const {
        return prefers_plane_ && std::ranges::all_of(shards_, [&](const auto& shard) {
                   return shard->plane_serves(task.k_plus_excluded());
               });
    }
    bool holds_vectors() const { return plan_.residency.vectors; }
    Status run_scored(const Task& task, Answer& answer);
    Status score_parts(const Task& task, RowRange range);
    /// The hit before which a CountBefore counts; nothing for another kind of query.
    std::optional<Hit> target_of(const Task& task) const;
    Status select_on_device(const Task& task, Answer& answer, bool& overflow);
    Status select_on_host(const Task& task, RowRange range, Answer& answer);
    Status wait_all();
    /// What during_next_run asked for.
    void work_meanwhile() {
        if (const auto work = std::exchange(meanwhile_, nullptr)) work();
    }
    /// Merges the hits of query `at` of a slot's last pass from all shards.
    void merge(std::size_t at, std::size_t slot, std::size_t k, Answer& answer) const;
    Status add_device_ms(std::size_t slot, Certificate& certificate) const;
    RowRange range_of(const Task& task) const {
        return task.query->filter.rows.value_or(RowRange{0, model_.rows()});
    }

    /// What loading took, beside the driver's start and the contexts.
    struct LoadTimes {
        double plane_ms = 0;
        double allocate_ms = 0;
        double prepare_ms = 0;
        UploadFacts upload;
    };

    const format::Model& model_;
    EnginePlan plan_;
    LoadTimes load_;
    std::optional<ThreadPool> writers_;  // of the shards
    Registration registration_;          // of the vectors, where devices read them in place
    std::vector<std::unique_ptr<Shard>> shards_;
    std::size_t scan_capacity_ = 1;
    std::size_t plane_capacity_ = 0;
    std::size_t code_capacity_ = 0;
    bool prefers_plane_ = false;
    bool holds_int8_codes_ = false;
    bool serves_few_rows_ = false;
    std::string description_;
    GpuFacts facts_;
    bool broken_ = false;
    std::function<void()> meanwhile_;  // during_next_run
};

/// Answers each query by the fastest pass that can, and by the next where that overflows: by the
/// few rows that its filter leaves; with others over code tiles or the plane; alone or with a few
/// over the plane, or in float32; canonical scores of all rows.
Status CudaEngine::answer(std::span<const Query> queries, std::vector<Answer>& answers) {
    std::vector<Task> tasks;
    tasks.reserve(queries.size());
    std::vector<std::size_t> few;
    std::vector<std::size_t> together;
    std::vector<std::size_t> alone;
    std::vector<std::size_t> scored;
    for (std::size_t i = 0; i < queries.size(); ++i) {
        assert(queries[i].k > 0);
        Task& task = tasks.emplace_back(queries[i], model_.rows());
        if (code_capacity_ == 0 || task.k_plus_excluded() > kMaxBatchKPlusExcluded)
            task.sort_excluded();
        if (task.cosine() == nullptr || !task.fits_device()) {
            scored.push_back(i);
        } else if (few_rows_serve(task)) {
            task.sort_excluded();
            few.push_back(i);
        } else {
            (batch_serves(task, queries.size()) ? together : alone).push_back(i);
        }
    }
    Status done = run_together(tasks, few, Together::few_rows, code_capacity_, answers, alone);
    if (!done) return done;

    while (!together.empty() && together.size() % batch_capacity() > 0 &&
           together.size() % batch_capacity() < min_batch()) {
        alone.push_back(together.back());
        together.pop_back();
    }
    const bool by_tiles = code_capacity_ > 0;
    std::vector<std::size_t> overflowed;
    done = run_together(tasks, together, by_tiles ? Together::tiles : Together::plane,
                        pass_queries(together.size()), answers, overflowed);
    if (!done) return done;
    bool most_room = by_tiles && together.size() <= kMaxRoomyCodePass;
    if (by_tiles && !most_room && overflowed.size() >= min_batch()) {
        most_room = true;
        const std::vector<std::size_t> again = std::exchange(overflowed, {});
        done = run_together(tasks, again, Together::tiles, kMaxRoomyCodePass, answers, overflowed);
        if (!done) return done;
    }
    std::vector<bool> had_most_room(queries.size());
    for (const std::size_t i : overflowed) had_most_room[i] = most_room;
    alone.insert(alone.end(), overflowed.begin(), overflowed.end());

    overflowed.clear();
    if (done = run_alone(tasks, alone, answers, overflowed, scored); !done) return done;
    std::vector<std::size_t> with_room;
    for (const std::size_t i : overflowed) {
        const bool try_tiles =
            by_tiles && !had_most_room[i] && batch_serves(tasks[i], kMinBatchOfRanges);
        (try_tiles ? with_room : scored).push_back(i);
    }
    done = run_together(tasks, with_room, Together::tiles, kMaxRoomyCodePass, answers, scored);
    if (!done) return done;
    for (const std::size_t i : scored) {
        tasks[i].sort_excluded();
        if (done = run_scored(tasks[i], answers[i]); !done) return done;
    }
    return {};
}

Status CudaEngine::run_alone(std::span<Task> tasks, std::span<const std::size_t> which,
                             std::vector<Answer>& answers, std::vector<std::size_t>& overflowed,
                             std::vector<std::size_t>& unanswered) {
    std::vector<std::size_t> sharing;
    for (const std::size_t& i : which) {
        Task& task = tasks[i];
        task.sort_excluded();
        const bool by_plane = plane_serves(task);
        if (by_plane && !task.query->filter.rows) {
            sharing.push_back(i);
        } else if (by_plane || holds_vectors()) {
            // A scan for one reads the rows of its range alone.
            Status done =
                run_bounded(tasks, std::span(&i, 1), by_plane ? Estimate::plane : Estimate::float32,
                            answers, overflowed);
            if (!done) return done;
        } else {
            unanswered.push_back(i);
        }
    }
    for (std::span<const std::size_t> left = sharing; !left.empty();) {
        const auto next = left.first(std::min(left.size(), scan_capacity_));
        left = left.subspan(next.size());
        Status done = run_bounded(tasks, next, Estimate::plane, answers, overflowed);
        if (!done) return done;
    }
    return {};
}

Status CudaEngine::run_bounded(std::span<const Task> tasks, std::span<const std::size_t> which,
                               Estimate estimate, std::vector<Answer>& answers,
                               std::vector<std::size_t>& overflowed) {
    const bool by_plane = estimate == Estimate::plane;
    // A plane's bounds are each row's own.
    const double error = by_plane ? 0 : device_error_bound(model_.dim());
    std::vector<PassQuery> pass;
    for (const std::size_t i : which) pass.push_back(pass_query(tasks[i], error));
    for (const auto& shard : shards_) {
        if (Status done = shard->start_bounded(pass, estimate); !done) return done;
    }
    return take_answers(tasks, which, {by_plane ? Pass::plane : Pass::float32, false, 0}, answers,
                        overflowed);
}

/// While the devices work through a pass over code tiles, the host takes the answers of the one
/// before and prepares the one after.
Status CudaEngine::run_together(std::span<const Task> tasks, std::span<const std::size_t> which,
                                Together way, std::size_t max_queries, std::vector<Answer>& answers,
                                std::vector<std::size_t>& overflowed) {
    const Pass pass = way == Together::tiles   ? Pass::int8
                      : way == Together::plane ? Pass::plane
                                               : Pass::float64;
    const std::size_t slots = way == Together::plane ? 1 : kSlots;
    std::span<const std::size_t> running;  // in the slot before `slot`
    std::size_t slot = 0;
    const auto take_running = [&]() -> Status {
        if (running.empty()) return {};
        const std::size_t of = (slot + slots - 1) % slots;
        return take_answers(tasks, std::exchange(running, {}), {pass, true, of}, answers,
                            overflowed);
    };
    while (!which.empty()) {
        if (slots == 1) {
            if (Status done = take_running(); !done) return done;
        }
        const auto next = which.first(std::min(max_queries, which.size()));
        which = which.subspan(next.size());
        if (Status done = start_together(tasks, next, way, slot); !done) return done;
        if (Status done = take_running(); !done) return done;
        running = next;
        slot = (slot + 1) % slots;
    }
    return take_running();
}

Status CudaEngine::start_together(std::span<const Task> tasks, std::span<const std::size_t> which,
                                  Together way, std::size_t slot) {
    std::vector<PassQuery> pass;
    pass.reserve(which.size());
    for (const std::size_t i : which) pass.push_back(pass_query(tasks[i], 0));
    for (const auto& shard : shards_) {
        Status done = way == Together::tiles   ? shard->start_code_pass(pass, slot)
                      : way == Together::plane ? shard->start_plane_pass(pass)
                                               : shard->start_few_rows(pass, slot);
        if (!done) return done;
    }
    return {};
}

Status CudaEngine::take_answers(std::span<const Task> tasks, std::span<const std::size_t> which,
                                Started started, std::vector<Answer>& answers,
                                std::vector<std::size_t>& overflowed) {
    const auto [pass, many, slot] = started;
    work_meanwhile();
    for (const auto& shard : shards_) {
        const bool in_slot = pass == Pass::int8 || pass == Pass::float64;
        if (Status done = in_slot ? shard->wait(slot) : shard->wait(); !done) return done;
    }
    Certificate certificate;
    if (Status done = add_device_ms(slot, certificate); !done) return done;
    certificate.pass = pass;
    const bool by_codes = pass == Pass::plane || pass == Pass::int8;
    for (std::size_t at = 0; at < which.size(); ++at) {
        const bool overflow = std::ranges::any_of(
            shards_, [&, on = slot](const auto& shard) { return shard->answer(at, on).overflow; });
        Answer& answer = answers[which[at]];
        if (overflow) {
            overflowed.push_back(which[at]);
            if (by_codes) answer.certificate.plane_overflowed = true;
            continue;
        }
        certificate.plane_overflowed = answer.certificate.plane_overflowed && pass != Pass::int8;
        answer.certificate = certificate;
        const Task& task = tasks[which[at]];
        answer.certificate.scanned = range_of(task).size();
        merge(at, slot, task.k, answer);
        // Of few rows, each shard looks at as many as all have together.
        if (pass == Pass::float64) answer.certificate.scanned = answer.certificate.rescored;
        set_read_bytes(many, answer.certificate);
    }
    return {};
}

/// Scores every row of the range canonically. The device selects the best where its lists suffice,
/// otherwise the host.
Status CudaEngine::run_scored(const Task& task, Answer& answer) {
    const RowRange range = range_of(task);
    if (Status done = score_parts(task, range); !done) return done;
    answer.certificate.pass = Pass::float64;
    answer.certificate.scanned = range.size();
    answer.certificate.rescored = range.size();
    set_read_bytes(false, answer.certificate);
    bool overflow = true;
    if (task.fits_device()) {
        overflow = false;
        if (Status done = select_on_device(task, answer, overflow); !done) return done;
    }
    if (overflow) {
        if (Status done = select_on_host(task, range, answer); !done) return done;
    }
    if (Status done = add_device_ms(0, answer.certificate); !done) return done;
    answer.certificate.rejected_below = kNone;
    return {};
}

Status CudaEngine::score_parts(const Task& task, RowRange range) {
    const auto score = [&](std::span<const QueryVector> vectors, ScorePart part) -> Status {
        for (const auto& shard : shards_) {
            std::vector<PassQuery> pass;
            bool first = true;
            for (const QueryVector& vector : vectors) {
                pass.push_back({&vector, nullptr, {}, 0, 0});
                if (pass.size() < Shard::max_vectors() && &vector != &vectors.back()) continue;
                if (Status done = shard->start_score(pass, part, first, range); !done) return done;
                first = false;
                pass.clear();
            }
            // An empty product is 1.
            if (vectors.empty()) {
                if (Status done = shard->start_score({}, part, true, range); !done) return done;
            }
        }
        return {};
    };
    const QueryVector* any = nullptr;
    const auto* product = std::get_if<CosMul>(&task.query->kind);
    if (product != nullptr) {
        assert(!product->positives.empty() || !product->negatives.empty());
        if (Status done = score(product->positives, ScorePart::multiply); !done) return done;
        if (Status done = score(product->negatives, ScorePart::divide_by); !done) return done;
        any =
            product->positives.empty() ? &product->negatives.front() : &product->positives.front();
    } else {
        const auto* count = std::get_if<CountBefore>(&task.query->kind);
        any = count != nullptr ? &count->vector : &task.cosine()->vector;
        if (Status done = score(std::span(any, 1), ScorePart::cosine); !done) return done;
    }
    // The host removes excluded rows where the device's list cannot hold them.
    const std::span<const Row> excluded =
        task.fits_device() ? task.excluded : std::span<const Row>();
    for (const auto& shard : shards_) {
        Status started =
            shard->start_finish({any, task.query, excluded, task.k, 0}, product != nullptr);
        if (!started) return started;
    }
    return {};
}

std::optional<Hit> CudaEngine::target_of(const Task& task) const {
    const auto* count = std::get_if<CountBefore>(&task.query->kind);
    if (count == nullptr) return std::nullopt;
    return Hit{count->row, canonical_score(count->vector.values.data(), count->vector.norm,
                                           model_.vector(count->row).data(),
                                           model_.norms()[count->row], model_.dim())};
}

Status CudaEngine::select_on_device(const Task& task, Answer& answer, bool& overflow) {
    const std::optional<Hit> target = target_of(task);
    for (const auto& shard : shards_) {
        if (Status done = target ? shard->start_count(*target) : shard->start_select(); !done)
            return done;
    }
    if (Status done = wait_all(); !done) return done;
    if (target) {
        for (const auto& shard : shards_) answer.count += shard->answer(0).facts.found;
        return {};
    }
    for (const auto& shard : shards_) overflow = overflow || shard->answer(0).overflow;
    if (overflow) return {};
    const Certificate kept = answer.certificate;
    merge(0, 0, task.k, answer);
    answer.certificate = kept;
    return {};
}

/// Selects on the host, for large k and for more ties than the device's lists hold.
Status CudaEngine::select_on_host(const Task& task, RowRange range, Answer& answer) {
    for (const auto& shard : shards_) {
        if (Status done = shard->start_copy_scores(range); !done) return done;
    }
    if (Status done = wait_all(); !done) return done;
    std::vector<Hit> hits;
    for (const auto& shard : shards_) {
        const auto scores = shard->scores(range);
        std::size_t row = shard->rows().first + shard->local(range).first;
        for (const double score : scores) {
            // NaN: rank, range or minimum score rule the row out.
            if (!std::isnan(score) && !task.excludes(row))
                hits.push_back({static_cast<Row>(row), score});
            ++row;
        }
    }
    if (const std::optional<Hit> target = target_of(task)) {
        answer.count = static_cast<std::uint64_t>(std::ranges::count_if(hits, [&](const Hit& hit) {
            return hit.row != target->row && comes_before(hit, *target);
        }));
        return {};
    }
    const auto wanted = static_cast<std::ptrdiff_t>(std::min(task.k, hits.size()));
    std::nth_element(hits.begin(), hits.begin() + std::max<std::ptrdiff_t>(wanted - 1, 0),
                     hits.end(), comes_before);
    hits.resize(static_cast<std::size_t>(wanted));
    std::ranges::sort(hits, comes_before);
    answer.hits = std::move(hits);
    return {};
}

Status CudaEngine::wait_all() {
    work_meanwhile();
    for (const auto& shard : shards_) {
        if (Status done = shard->wait(); !done) return done;
    }
    return {};
}

void CudaEngine::merge(std::size_t at, std::size_t slot, std::size_t k, Answer& answer) const {
    answer.certificate.rejected_below = kNone;
    answer.hits.reserve(k * shards_.size());
    for (const auto& shard : shards_) {
        const ShardAnswer part = shard->answer(at, slot);
        for (const Found& found : part.hits) {
            answer.hits.push_back({static_cast<Row>(shard->rows().first + found.row), found.score});
        }
        answer.certificate.rescored += part.facts.rescored;
        answer.certificate.survivors += part.facts.survivors;
        answer.certificate.rejected_below =
            std::max(answer.certificate.rejected_below, part.facts.floor);
    }
    if (shards_.size() > 1) std::ranges::sort(answer.hits, comes_before);
    if (answer.hits.size() > k) answer.hits.resize(k);
}

void CudaEngine::set_read_bytes(bool many, Certificate& certificate) const {
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
    if (holds_int8_codes_ && (many || !holds_vectors()))
        certificate.read_bytes += certificate.survivors * model_.dim();
}

Status CudaEngine::add_device_ms(std::size_t slot, Certificate& certificate) const {
    for (const auto& shard : shards_) {
        const auto ms = shard->device_ms(slot);
        if (!ms) return ms.error();
        certificate.device_ms = std::max(certificate.device_ms, *ms);
    }
    return {};
}

Result<std::unique_ptr<Engine>> CudaEngine::create(const format::Model& model,
                                                   const EngineOptions& options, EnginePlan plan) {
    std::unique_ptr<CudaEngine> engine(new CudaEngine(model, options, std::move(plan)));
    if (Status done = engine->lock_vectors(); !done) return done.error();
    std::optional<planes::Plane> plane;
    if (engine->plan_.residency.plane) {
        const auto building = Clock::now();
        ThreadPool pool(options.threads);
        plane.emplace(model, pool);
        engine->load_.plane_ms = ms_since(building);
    }
    if (Status done = engine->allocate(options); !done) return done.error();
    if (engine->holds_vectors()) {
        const auto uploaded = upload_vectors(model, engine->shards_, options.pin, options.log);
        if (!uploaded) return uploaded.error();
        engine->load_.upload = *uploaded;
    }
    const bool pin = options.pin && engine->holds_vectors();
    if (Status done = engine->fill(plane ? &*plane : nullptr, pin); !done) return done.error();
    engine->describe(options);
    return std::unique_ptr<Engine>(std::move(engine));
}

/// Page-locks the vectors where devices read them in place.
Status CudaEngine::lock_vectors() {
    if (holds_vectors()) return {};
    auto locked = Registration::create(std::as_bytes(model_.vectors()), true);
    if (!locked) {
        return error_with(
            ErrorCode::unavailable,
            "the model does not fit on the device, and its vectors cannot be page-locked in host "
            "memory ({}); raise the limit on locked memory, spread the model over several devices "
            "with --device, or use --engine cpu",
            locked.error().message);
    }
    registration_ = *std::move(locked);
    return {};
}

/// Creates the shards, without int8 codes where the host has no page-locked memory for them.
Status CudaEngine::allocate(const EngineOptions& options) {
    const auto begun = Clock::now();
    Residency& residency = plan_.residency;
    Status created = create_shards(options);
    if (!created && !residency.vectors && residency.int8_codes) {
        if (options.log) {
            options.log(
                fmt::format("no page-locked memory for int8 codes ({}): more vectors are read, and "
                            "answers take longer",
                            created.error().message));
        }
        residency.int8_codes = false;
        created = create_shards(options);
    }
    if (!created) return created;
    scan_capacity_ = kMaxScanQueries;
    plane_capacity_ = kMaxPlanePass;
    code_capacity_ = kMaxCodePass;
    holds_int8_codes_ = serves_few_rows_ = true;
    for (const auto& shard : shards_) {
        scan_capacity_ = std::min(scan_capacity_, shard->scan_capacity());
        plane_capacity_ = std::min(plane_capacity_, shard->plane_capacity());
        code_capacity_ = std::min(code_capacity_, shard->code_capacity());
        holds_int8_codes_ = holds_int8_codes_ && shard->holds_int8_codes();
        serves_few_rows_ = serves_few_rows_ && shard->serves_few_rows();
    }
    load_.allocate_ms = ms_since(begun);
    return {};
}

Status CudaEngine::create_shards(const EngineOptions& options) {
    shards_.clear();
    for (const auto& part : plan_.parts) {
        auto shard = Shard::create(model_, part.rows, part.device, plan_.residency,
                                   options.time_device, writers_ ? &*writers_ : nullptr);
        if (!shard) return shard.error();
        shards_.push_back(*std::move(shard));
    }
    return {};
}

/// Fills the shards with all but the vectors that upload_vectors copies.
Status CudaEngine::fill(const planes::Plane* plane, bool pin) {
    const auto begun = Clock::now();
    for (const auto& shard : shards_) {
        const float* vectors = nullptr;
        if (!holds_vectors()) {
            if (Status used = use_device(shard->device()); !used) return used;
            const auto there = Registration::device_address(std::as_bytes(model_.vectors()).data());
            if (!there) return there.error();
            vectors = reinterpret_cast<const float*>(*there);
        }
        if (Status done = shard->fill(model_, vectors); !done) return done;
        if (plane == nullptr) continue;
        if (Status done = shard->fill_plane(*plane, pin); !done) return done;
    }
    load_.prepare_ms = ms_since(begun);
    return {};
}

void CudaEngine::describe(const EngineOptions& options) {
    for (const auto& part : plan_.parts) {
        description_ += fmt::format("{}{} (device {})", description_.empty() ? "" : " + ",
                                    part.device.name, part.device.device);
    }
    std::size_t bytes = 0;
    std::size_t host_bytes = holds_vectors() ? 0 : model_.vectors().size_bytes();
    for (const auto& shard : shards_) {
        bytes += shard->device_bytes();
        host_bytes += shard->host_int8_bytes();
    }
    const UploadFacts& upload = load_.upload;
    if (options.log) {
        const double gb =
            holds_vectors() ? static_cast<double>(model_.vectors().size_bytes()) / 1e9 : 0;
        options.log(fmt::format(
            "uploaded {:.3f} GB in {:.0f} ms ({:.1f} GB/s, {}): driver {:.0f} ms, context {:.0f}, "
            "allocation {:.0f}, pinning {:.0f} of the upload, plane {:.0f}, norms, ranks and the "
            "plane's copy {:.0f}; {} MB of device memory in use",
            gb, upload.total_ms, gb / std::max(upload.total_ms, 1e-3) * 1000,
            upload.pinned ? "pinned" : "pageable", driver_ms(), plan_.context_ms, load_.allocate_ms,
            upload.pin_ms, load_.plane_ms, load_.prepare_ms, bytes / 1000000));
    }
    facts_ = {
        .memory_bytes = bytes,
        .host_bytes = host_bytes,
        .shards = shards_.size(),
        .plane_pass_queries = plane_capacity_,
        .int8_pass_queries = code_capacity_,
        .holds_vectors = holds_vectors(),
        .holds_plane = plan_.residency.plane,
        .upload_pinned = upload.pinned,
        .driver_ms = driver_ms(),
        .context_ms = plan_.context_ms,
        .pin_ms = upload.pin_ms,
        .upload_ms = upload.total_ms,
        .plane_ms = load_.plane_ms,
        .prepare_ms = load_.allocate_ms + load_.prepare_ms,
    };
}

}  // namespace

Result<std::string> why_unavailable() {
    int count = 0;
    const cudaError_t code = count_devices(count);
    if (code == cudaSuccess) return std::string(count > 0 ? "" : "the NVIDIA driver shows no GPU");
    const Status failed = check(code, "cudaGetDeviceCount");
    switch (code) {
        case cudaErrorNoDevice:
            return std::string("the NVIDIA driver shows no GPU");
        case cudaErrorInsufficientDriver:
        case cudaErrorStubLibrary:
            return std::string(
                "there is no NVIDIA driver here, or it is older than this build's CUDA");
        default:
            return failed.error();
    }
}

std::size_t device_count() {
    int count = 0;
    return count_devices(count) == cudaSuccess ? static_cast<std::size_t>(count) : 0;
}

Result<std::unique_ptr<Engine>> make_cuda_engine(const format::Model& model,
                                                 const EngineOptions& options) {
    auto plan = plan_engine(model, options);
    if (!plan) return plan.error();
    return CudaEngine::create(model, options, *std::move(plan));
}

}  // namespace gloved::kernels::cuda
