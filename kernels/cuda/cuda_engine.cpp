#include "kernels/cuda/cuda_engine.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/cuda/device_engine.hpp"
#include "kernels/cuda/engine_plan.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/cuda/shard_memory.hpp"
#include "kernels/cuda/upload.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {

namespace {

using Clock = std::chrono::steady_clock;

/// Maximum number of threads that write query vectors for a device.
constexpr unsigned kMaxWriters = 8;
/// How long a device's thread looks for its next run before it sleeps: longer than a client takes
/// between queries, or the daemon between batches. To wake the thread takes a third of a query.
constexpr std::chrono::microseconds kThreadPatience{500};
/// On how many devices one thread starts a query, one after the other, rather than wake the threads
/// of the others: a start takes 20 µs, and to wake a thread takes 50.
constexpr std::size_t kMaxStartsFromHere = 4;

/// Makes `answer`, which other devices gave for their parts of the rows, one for `part`'s too.
void merge(Answer& answer, Answer& part, std::size_t k) {
    std::vector<Hit> hits;
    hits.reserve(answer.hits.size() + part.hits.size());
    std::ranges::merge(answer.hits, part.hits, std::back_inserter(hits), comes_before);
    hits.resize(std::min(hits.size(), k));
    answer.hits = std::move(hits);
    answer.count += part.count;
    Certificate& all = answer.certificate;
    const Certificate& one = part.certificate;
    all.scanned += one.scanned;
    all.rescored += one.rescored;
    all.survivors += one.survivors;
    all.read_bytes += one.read_bytes;
    all.rejected_below = std::max(all.rejected_below, one.rejected_below);
    all.pass = std::max(all.pass, one.pass);  // the one that reads most
    all.plane_overflowed = all.plane_overflowed || one.plane_overflowed;
    all.device_ms = std::max(all.device_ms, one.device_ms);
}

/// Whether an answer takes the canonical score of every row.
bool scores_every_row(const Query& query) {
    return !std::holds_alternative<Cosine>(query.kind) || query.k > kMaxHits;
}

class CudaEngine final : public Engine {
  public:
    /// Allocates and fills the shards of the plan.
    static Result<std::unique_ptr<Engine>> create(const format::Model& model,
                                                  const EngineOptions& options, EnginePlan plan);

    EngineKind kind() const override { return EngineKind::cuda; }
    std::string description() const override { return description_; }
    std::optional<GpuFacts> gpu_facts() const override { return facts_; }

    Result<std::vector<Answer>> run(std::span<const Query> queries,
                                    const std::function<void()>& meanwhile) override {
        if (broken_) return Error{ErrorCode::device, "a CUDA call has failed before"};
        std::vector<Answer> answers(queries.size());
        meanwhile_ = meanwhile;
        const Status done = answer_all(queries, answers);
        meanwhile_ = nullptr;
        if (!done) {
            broken_ = true;
            return done.error();
        }
        return answers;
    }

  private:
    CudaEngine(const format::Model& model, EnginePlan plan)
        : model_(model), plan_(std::move(plan)), threads_(device_threads(), kThreadPatience) {}

    unsigned device_threads() const { return static_cast<unsigned>(plan_.shards.size()); }
    /// Calls work(i) for each device on its own thread. Returns the error that came first: others
    /// may follow from it.
    Status on_all(const std::function<Status(std::size_t)>& work);

    Status lock_vectors();
    Status allocate(const EngineOptions& options);
    Status create_devices(const EngineOptions& options);
    Status upload(const EngineOptions& options);
    Status fill(const planes::Plane* plane, bool pin);
    /// Sets what description() and facts() return, and logs how long loading took.
    void describe(const EngineOptions& options);

    /// Answers queries that may name lists of several RowLists.
    Status answer_all(std::span<const Query> queries, std::vector<Answer>& answers);
    /// Copies these lists to the devices, unless they are there.
    Status hold(const RowLists& lists);
    /// Answers queries that name no other lists than the devices hold.
    Status answer(std::span<const Query> queries, std::vector<Answer>& answers);
    /// Lets each device answer a part of the queries, but for those of which `by_rows` is true.
    Status answer_by_queries(std::span<const Query> queries, const std::vector<bool>& by_rows,
                             std::vector<Answer>& answers);
    /// Lets all devices answer queries[which[i]], each in a part of the rows.
    Status answer_by_rows(std::span<const Query> queries, std::span<const std::size_t> which,
                          std::vector<Answer>& answers);
    /// The rows in which a device looks for the hits of a query that all answer.
    RowRange rows_of(const Query& query, std::size_t device) const;
    /// Whether a query, of those of a run, is better answered by rows where each device has all.
    bool prefers_rows(const Query& query, std::size_t queries) const;
    RowRange range_of(const Query& query) const {
        return query.filter.rows.value_or(RowRange{0, model_.rows()});
    }
    /// Runs a device's shares. A run may come in two parts: what there is to do meanwhile is done
    /// once, during the first part of the device whose thread is the calling one.
    Status run_device(std::size_t device, std::span<const QueryShare> shares) {
        if (shares.empty()) return {};
        std::function<void()> meanwhile;
        if (device == 0) meanwhile = std::exchange(meanwhile_, nullptr);
        return devices_[device]->run(shares, meanwhile);
    }
    bool holds_vectors() const { return plan_.residency.vectors; }

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
    Registration registration_;  // of the vectors, where devices read them in place
    std::vector<std::unique_ptr<DeviceEngine>> devices_;  // as plan_.shards
    ThreadPool threads_;                                  // one for each device
    std::string description_;
    GpuFacts facts_;
    std::uint64_t held_lists_ = 0;  // RowLists::serial of those that the devices hold; 0: none
    bool broken_ = false;
    std::function<void()> meanwhile_;  // of the run that is under way, until it is called
};

Status CudaEngine::answer_all(std::span<const Query> queries, std::vector<Answer>& answers) {
    std::vector<const RowLists*> named;
    for (const Query& query : queries) {
        const RowLists* const lists = query.filter.names_lists() ? query.filter.lists : nullptr;
        if (lists != nullptr && std::ranges::find(named, lists) == named.end())
            named.push_back(lists);
    }
    if (named.empty()) return answer(queries, answers);
    if (named.size() == 1) {
        if (Status held = hold(*named[0]); !held) return held;
        return answer(queries, answers);
    }
    // Lists were replaced a moment ago. Queries that name none go with the first ones.
    for (const RowLists* lists : named) {
        std::vector<std::size_t> places;
        std::vector<Query> those;
        for (std::size_t i = 0; i < queries.size(); ++i) {
            const Filter& filter = queries[i].filter;
            if ((filter.names_lists() ? filter.lists : named[0]) != lists) continue;
            places.push_back(i);
            those.push_back(queries[i]);
        }
        if (Status held = hold(*lists); !held) return held;
        std::vector<Answer> theirs(those.size());
        if (Status done = answer(those, theirs); !done) return done;
        for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(theirs[i]);
    }
    return {};
}

Status CudaEngine::hold(const RowLists& lists) {
    assert(plan_.residency.lists);
    if (held_lists_ == lists.serial()) return {};
    Status done = on_all([&](std::size_t i) { return devices_[i]->shard().fill_lists(lists); });
    if (done) held_lists_ = lists.serial();
    return done;
}

Status CudaEngine::answer(std::span<const Query> queries, std::vector<Answer>& answers) {
    std::vector<std::size_t> by_rows;
    if (!plan_.replicas) {
        by_rows.resize(queries.size());
        std::iota(by_rows.begin(), by_rows.end(), std::size_t{0});
        return answer_by_rows(queries, by_rows, answers);
    }
    std::vector<bool> divided(queries.size());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        divided[i] = prefers_rows(queries[i], queries.size());
        if (divided[i]) by_rows.push_back(i);
    }
    if (by_rows.size() < queries.size()) {
        if (Status done = answer_by_queries(queries, divided, answers); !done) return done;
    }
    return by_rows.empty() ? Status() : answer_by_rows(queries, by_rows, answers);
}

Status CudaEngine::answer_by_queries(std::span<const Query> queries,
                                     const std::vector<bool>& by_rows,
                                     std::vector<Answer>& answers) {
    const std::size_t devices = std::min(devices_.size(), queries.size());
    const auto answer_part = [&](std::size_t device) -> Status {
        if (device >= devices) return {};
        const std::size_t first = queries.size() * device / devices;
        const std::size_t last = queries.size() * (device + 1) / devices;
        std::vector<QueryShare> shares;
        shares.reserve(last - first);
        for (std::size_t i = first; i < last; ++i) {
            const RowRange rows = range_of(queries[i]);
            __builtin_prefetch(queries[i].excluded.data());
            if (!by_rows[i] && rows.size() > 0) shares.push_back({&queries[i], rows, &answers[i]});
        }
        return run_device(device, shares);
    };
    return devices == 1 ? answer_part(0) : on_all(answer_part);
}

Status CudaEngine::answer_by_rows(std::span<const Query> queries,
                                  std::span<const std::size_t> which,
                                  std::vector<Answer>& answers) {
    std::vector<std::vector<Answer>> parts(devices_.size());
    std::vector<std::vector<QueryShare>> shares(devices_.size());
    const auto divide = [&](std::size_t device) {
        parts[device].resize(which.size());
        for (std::size_t i = 0; i < which.size(); ++i) {
            const Query& query = queries[which[i]];
            const RowRange rows = rows_of(query, device);
            if (rows.size() > 0) shares[device].push_back({&query, rows, &parts[device][i]});
        }
    };
    Status done;
    if (queries.size() == 1 && devices_.size() <= kMaxStartsFromHere && !threads_.awake()) {
        for (std::size_t device = 0; device < devices_.size(); ++device) {
            divide(device);
            if (shares[device].empty()) continue;
            if (done = devices_[device]->start_lone(shares[device][0]); !done) return done;
        }
        threads_.wake();  // for the next query
        for (std::size_t device = 0; device < devices_.size(); ++device) {
            if (done = run_device(device, shares[device]); !done) return done;
        }
    } else {
        done = on_all([&](std::size_t device) {
            divide(device);
            return run_device(device, shares[device]);
        });
        if (!done) return done;
    }

    std::vector<bool> answered(which.size());
    for (std::size_t device = 0; device < devices_.size(); ++device) {
        for (std::size_t i = 0; i < which.size(); ++i) {
            if (rows_of(queries[which[i]], device).size() == 0) continue;
            Answer& answer = answers[which[i]];
            Answer& part = parts[device][i];
            if (answered[i]) {
                merge(answer, part, queries[which[i]].k);
            } else {
                answer = std::move(part);
                answered[i] = true;
            }
        }
    }
    return {};
}

RowRange CudaEngine::rows_of(const Query& query, std::size_t device) const {
    const RowRange range = range_of(query);
    if (plan_.replicas) return part_of_rows(range, devices_.size(), device);
    const RowRange held = plan_.shards[device].rows;
    const std::size_t first = std::max(range.first, held.first);
    return {first, std::max(first, std::min(range.last, held.last))};
}

bool CudaEngine::prefers_rows(const Query& query, std::size_t queries) const {
    const std::size_t rows = most_rows(query.filter, model_.rows());
    return devices_.size() > 1 && rows > kMaxFewRows && (queries == 1 || scores_every_row(query));
}

Status CudaEngine::on_all(const std::function<Status(std::size_t)>& work) {
    std::mutex mutex;
    Status all_done;
    threads_.run([&](unsigned device) {
        Status done = work(device);
        const std::lock_guard lock(mutex);
        if (!done && all_done) all_done = std::move(done);
    });
    return all_done;
}

Result<std::unique_ptr<Engine>> CudaEngine::create(const format::Model& model,
                                                   const EngineOptions& options, EnginePlan plan) {
    std::unique_ptr<CudaEngine> engine(new CudaEngine(model, std::move(plan)));
    if (Status done = engine->lock_vectors(); !done) return done.error();
    std::optional<planes::Plane> plane;
    if (engine->plan_.residency.plane) {
        const auto building = Clock::now();
        ThreadPool pool(options.threads);
        plane.emplace(model, pool);
        engine->load_.plane_ms = ms_since(building);
    }
    if (Status done = engine->allocate(options); !done) return done.error();
    if (Status done = engine->upload(options); !done) return done.error();
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
    Status created = create_devices(options);
    if (!created && !residency.vectors && residency.int8_codes) {
        if (options.log) {
            options.log(
                fmt::format("no page-locked memory for int8 codes ({}): more vectors are read, and "
                            "answers take longer",
                            created.error().message));
        }
        residency.int8_codes = false;
        created = create_devices(options);
    }
    load_.allocate_ms = ms_since(begun);
    return created;
}

Status CudaEngine::create_devices(const EngineOptions& options) {
    const unsigned threads = options.threads == 0 ? usable_processors() : options.threads;
    const unsigned writers = std::clamp(threads / device_threads(), 1U, kMaxWriters);
    devices_.clear();
    devices_.resize(plan_.shards.size());
    return on_all([&](std::size_t i) {
        return move_into(devices_[i], DeviceEngine::create(model_, plan_.shards[i], plan_.residency,
                                                           options, writers));
    });
}

Status CudaEngine::upload(const EngineOptions& options) {
    if (!holds_vectors()) return {};
    std::vector<Shard*> shards;
    for (const auto& device : devices_) shards.push_back(&device->shard());
    return move_into(load_.upload, upload_vectors(model_, shards, options.pin, options.log));
}

/// Fills the shards with all but the vectors. `pin`: page-locks the plane while devices copy it, if
/// the driver allows it.
Status CudaEngine::fill(const planes::Plane* plane, bool pin) {
    const auto begun = Clock::now();
    Status done = on_all([&](std::size_t i) -> Status {
        Shard& shard = devices_[i]->shard();
        if (holds_vectors()) return shard.fill(model_);
        if (Status used = use_device(shard.device()); !used) return used;
        const auto there = Registration::device_address(std::as_bytes(model_.vectors()).data());
        if (!there) return there.error();
        return shard.fill(model_, reinterpret_cast<const float*>(*there));
    });
    if (done && plane != nullptr) {
        Registration locked;
        if (pin) {
            if (Status used = use_device(plan_.shards.front().device.device); !used) return used;
            if (auto made = Registration::create(plane->bytes())) locked = *std::move(made);
        }
        // Nothing else is copied meanwhile: what shares a page with the plane would be page-locked
        // in part.
        done = on_all([&](std::size_t i) { return devices_[i]->shard().fill_plane(*plane); });
    }
    load_.prepare_ms = ms_since(begun);
    return done;
}

void CudaEngine::describe(const EngineOptions& options) {
    const UploadFacts& upload = load_.upload;
    const std::size_t vector_bytes = model_.vectors().size_bytes();
    facts_ = {
        .shards = {},
        .replicas = plan_.replicas,
        .memory_bytes = 0,
        .host_bytes = holds_vectors() ? 0 : vector_bytes,
        .plane_pass_queries = devices_.front()->shard().plane_capacity(),
        .int8_pass_queries = devices_.front()->shard().code_capacity(),
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
    std::size_t uploaded = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const Shard& shard = devices_[i]->shard();
        facts_.shards.push_back({shard.device(), shard.rows().size(), shard.device_bytes()});
        facts_.memory_bytes += shard.device_bytes();
        facts_.host_bytes += shard.host_int8_bytes();
        if (holds_vectors()) uploaded += shard.rows().size() * model_.dim() * sizeof(float);
        description_ += fmt::format("{}{} (device {})", i == 0 ? "" : " + ",
                                    plan_.shards[i].device.name, shard.device());
    }
    if (devices_.size() > 1)
        description_ += plan_.replicas ? ", each with all words" : ", which share the words";
    if (!options.log) return;
    const double gb = static_cast<double>(uploaded) / 1e9;
    options.log(fmt::format(
        "uploaded {:.3f} GB in {:.0f} ms ({:.1f} GB/s, {}): driver {:.0f} ms, context {:.0f}, "
        "allocation {:.0f}, pinning {:.0f} of the upload, plane {:.0f}, norms, ranks and the "
        "plane's copy {:.0f}; {} MB of device memory in use",
        gb, upload.total_ms, gb / std::max(upload.total_ms, 1e-3) * 1000,
        upload.pinned ? "pinned" : "pageable", driver_ms(), plan_.context_ms, load_.allocate_ms,
        upload.pin_ms, load_.plane_ms, load_.prepare_ms, facts_.memory_bytes / 1000000));
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
