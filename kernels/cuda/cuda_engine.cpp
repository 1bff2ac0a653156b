#include "kernels/cuda/cuda_engine.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <mutex>
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
#include "kernels/cuda/shard_buffers.hpp"
#include "kernels/cuda/upload.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {

namespace {

using Clock = std::chrono::steady_clock;

/// Maximum number of threads that write query vectors for a device.
constexpr unsigned kMaxWriters = 8;
/// How long a device's thread looks for its next run before it sleeps. To wake it takes as long as
/// a tenth of a query.
constexpr std::chrono::microseconds kThreadPatience{100};

/// What one device does in a run.
struct DeviceRun {
    std::vector<Share> shares;
    std::vector<std::size_t> query_of;  ///< of each share, the number of its query
    std::vector<Answer> answers;

    void add(std::size_t query, const Share& share) {
        shares.push_back(share);
        query_of.push_back(query);
    }
};

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
    CudaEngine(const format::Model& model, EnginePlan plan)
        : model_(model), plan_(std::move(plan)), threads_(device_threads(), kThreadPatience) {}

    unsigned device_threads() const { return static_cast<unsigned>(plan_.parts.size()); }
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

    Status answer(std::span<const Query> queries, std::vector<Answer>& answers);
    /// Divides the work of a run between the devices.
    std::vector<DeviceRun> divide(std::span<const Query> queries) const;
    /// Whether each device that holds the model answers the query in a part of the rows. Otherwise
    /// one device answers it.
    bool divides_rows(const Query& query, std::size_t queries) const;
    RowRange range_of(const Query& query) const {
        return query.filter.rows.value_or(RowRange{0, model_.rows()});
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
    std::vector<std::unique_ptr<DeviceEngine>> devices_;  // as plan_.parts
    ThreadPool threads_;                                  // one for each device
    std::string description_;
    GpuFacts facts_;
    bool broken_ = false;
    std::function<void()> meanwhile_;  // during_next_run
};

Status CudaEngine::answer(std::span<const Query> queries, std::vector<Answer>& answers) {
    std::vector<DeviceRun> runs = divide(queries);
    if (devices_.size() == 1 && runs[0].shares.size() == queries.size())
        return devices_[0]->run(runs[0].shares, answers, meanwhile_);

    for (DeviceRun& run : runs) run.answers.resize(run.shares.size());
    const auto run_device = [&](std::size_t i) -> Status {
        DeviceRun& run = runs[i];
        if (run.shares.empty()) return {};
        const bool calling_thread = i == 0;
        return devices_[i]->run(run.shares, run.answers,
                                calling_thread ? meanwhile_ : std::function<void()>());
    };
    const auto idle = [](const DeviceRun& run) { return run.shares.empty(); };
    const bool several = std::ranges::count_if(runs, std::not_fn(idle)) > 1;
    Status done;
    if (several) {
        done = on_all(run_device);
    } else if (const auto one = std::ranges::find_if_not(runs, idle); one != runs.end()) {
        done = devices_[static_cast<std::size_t>(one - runs.begin())]->run(
            one->shares, one->answers, meanwhile_);
    }
    if (!done) return done;

    std::vector<bool> answered(queries.size());
    for (DeviceRun& run : runs) {
        for (std::size_t i = 0; i < run.answers.size(); ++i) {
            const std::size_t query = run.query_of[i];
            if (answered[query]) {
                merge(answers[query], run.answers[i], queries[query].k);
            } else {
                answers[query] = std::move(run.answers[i]);
                answered[query] = true;
            }
        }
    }
    return {};
}

std::vector<DeviceRun> CudaEngine::divide(std::span<const Query> queries) const {
    const std::size_t devices = devices_.size();
    std::vector<DeviceRun> runs(devices);
    for (DeviceRun& run : runs) {
        run.shares.reserve(queries.size());
        run.query_of.reserve(queries.size());
    }
    std::vector<std::size_t> whole;  // queries that one device answers
    for (std::size_t i = 0; i < queries.size(); ++i) {
        const RowRange range = range_of(queries[i]);
        if (range.size() == 0) continue;
        if (!plan_.replicas) {
            for (std::size_t d = 0; d < devices; ++d) {
                const RowRange held = plan_.parts[d].rows;
                const RowRange here{std::max(range.first, held.first),
                                    std::min(range.last, held.last)};
                if (here.first < here.last) runs[d].add(i, {&queries[i], here});
            }
        } else if (divides_rows(queries[i], queries.size())) {
            const auto ranges = split_rows(range, devices);
            for (std::size_t d = 0; d < ranges.size(); ++d)
                runs[d].add(i, {&queries[i], ranges[d]});
        } else {
            whole.push_back(i);
        }
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const Query& query = queries[whole[i]];
        runs[i * devices / whole.size()].add(whole[i], {&query, range_of(query)});
    }
    return runs;
}

bool CudaEngine::divides_rows(const Query& query, std::size_t queries) const {
    const std::size_t rows = std::min<std::size_t>(range_of(query).size(), query.filter.rank_below);
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
    devices_.resize(plan_.parts.size());
    return on_all([&](std::size_t i) {
        return move_into(devices_[i], DeviceEngine::create(model_, plan_.parts[i], plan_.residency,
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
            if (Status used = use_device(plan_.parts.front().device.device); !used) return used;
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
                                    plan_.parts[i].device.name, shard.device());
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
