#include "kernels/cuda/engine_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/shard_memory.hpp"
#include "kernels/cuda/upload.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<double> longest_count_ms = 0;

/// The devices that the options name, all of which exist.
Result<std::vector<int>> devices_of(const EngineOptions& options) {
    int present = 0;
    if (Status done = check(count_devices(present), "cudaGetDeviceCount"); !done)
        return done.error();
    std::vector<int> devices = options.devices.numbers;
    if (options.devices.all) {
        devices.clear();
        for (int device = 0; device < present; ++device) devices.push_back(device);
    }
    if (devices.empty()) return Error{ErrorCode::unavailable, "--device names no device"};
    for (const int device : devices) {
        if (device >= 0 && device < present) continue;
        return error_with(
            ErrorCode::unavailable,
            "there is no device {}: the driver shows {}, counted from 0; see --device", device,
            present);
    }
    return devices;
}

/// Reads the facts about all devices side by side: each takes a tenth of a second to make a
/// context.
Result<std::vector<DeviceFacts>> read_devices(const std::vector<int>& devices) {
    std::vector<std::optional<Result<DeviceFacts>>> read(devices.size());
    ThreadPool pool(static_cast<unsigned>(devices.size()));
    pool.run([&](unsigned i) { read[i].emplace(read_device(devices[i])); });
    std::vector<DeviceFacts> facts;
    for (auto& device : read) {
        if (!*device) return device->error();
        facts.push_back(**std::move(device));
    }
    return facts;
}

/// What one device holds, or several, of the rows.
Result<EnginePlan> plan_shards(const std::vector<DeviceFacts>& devices, std::size_t rows,
                               bool replicas) {
    EnginePlan plan;
    plan.replicas = replicas || devices.size() == 1;
    const auto ranges = split_rows({0, rows}, plan.replicas ? 1 : devices.size());
    const std::size_t count = plan.replicas ? devices.size() : ranges.size();
    for (std::size_t i = 0; i < count; ++i) {
        const RowRange range = ranges[plan.replicas ? 0 : i];
        if (Status done = check_shard_rows(range.size()); !done) return done.error();
        std::size_t scratch_bytes = 0;
        if (Status used = use_device(devices[i].device); !used) return used.error();
        Status asked =
            check(code_tiles_scratch_bytes(static_cast<std::uint32_t>(range.size()), scratch_bytes),
                  "code_tiles_scratch_bytes");
        if (!asked) return asked.error();
        plan.shards.push_back({devices[i], range, scratch_bytes});
    }
    return plan;
}

/// Memory that the shards of a plan need on each device, and that the device has.
class MemoryNeeds {
  public:
    MemoryNeeds(const EnginePlan& plan, std::size_t dim, std::size_t limit_bytes)
        : plan_(plan), dim_(dim), limit_bytes_(limit_bytes) {}

    std::size_t needed(const DeviceFacts& device, const Residency& residency) const {
        std::size_t bytes = 0;
        for (const auto& [of, rows, tiles_scratch_bytes] : plan_.shards) {
            if (of.device != device.device) continue;
            bytes += Shard::bytes_needed(rows.size(), dim_, device.shape, residency);
            if (residency.vectors) bytes += upload_bytes_needed(rows.size(), dim_);
            if (residency.code_tiles) bytes += tiles_scratch_bytes;
        }
        return bytes;
    }
    std::size_t available(const DeviceFacts& device) const {
        return limit_bytes_ == 0 ? device.free_bytes : std::min(device.free_bytes, limit_bytes_);
    }
    /// The first device that has too little memory; nullptr: the residency fits.
    const DeviceFacts* too_small(const Residency& residency) const {
        for (const auto& shard : plan_.shards) {
            if (needed(shard.device, residency) > available(shard.device)) return &shard.device;
        }
        return nullptr;
    }
    bool fits(const Residency& residency) const { return too_small(residency) == nullptr; }

  private:
    const EnginePlan& plan_;
    std::size_t dim_;
    std::size_t limit_bytes_;
};

/// The residencies, fastest first. `whole`: what a device with enough memory holds.
std::vector<Residency> residencies(const Residency& whole, bool host_vectors, std::size_t dim) {
    std::vector<Residency> all;
    if (!host_vectors || !whole.plane) all.push_back(whole);
    const auto add = [&](bool vectors, bool plane, bool code_tiles) {
        if (code_tiles && !whole.code_tiles) return;
        Residency next = whole;
        next.vectors = vectors;
        next.plane = plane;
        next.int8_codes = plane && !vectors && dim <= kMaxInt8Dim;
        next.code_tiles = code_tiles;
        all.push_back(next);
    };
    if (!whole.plane) return all;
    if (!host_vectors) add(true, true, false);
    add(false, true, true);
    add(false, false, true);
    add(false, true, false);
    return all;
}

/// The first residency that fits, or the last, which needs least.
Residency choose_residency(const MemoryNeeds& memory, const Residency& whole, bool host_vectors,
                           std::size_t dim) {
    const std::vector<Residency> all = residencies(whole, host_vectors, dim);
    const auto fits = [&](const Residency& residency) { return memory.fits(residency); };
    const auto first = std::ranges::find_if(all, fits);
    return first == all.end() ? all.back() : *first;
}

/// What a residency without vectors holds.
std::string_view holds(const Residency& residency) {
    if (!residency.code_tiles) return "the plane alone";
    return residency.plane ? "the plane and codes of one byte" : "codes of one byte";
}

}  // namespace

cudaError_t count_devices(int& count) {
    const auto begun = Clock::now();
    const cudaError_t code = cudaGetDeviceCount(&count);
    longest_count_ms = std::max(longest_count_ms.load(), ms_since(begun));
    return code;
}

double driver_ms() { return longest_count_ms; }

std::vector<RowRange> split_rows(RowRange rows, std::size_t parts) {
    std::vector<RowRange> ranges;
    for (std::size_t i = 0; i < parts; ++i) {
        const RowRange part = part_of_rows(rows, parts, i);
        if (part.size() > 0) ranges.push_back(part);
    }
    return ranges;
}

RowRange part_of_rows(RowRange rows, std::size_t parts, std::size_t part) {
    const auto bound = [&](std::size_t i) {
        if (i == parts) return rows.last;
        return std::max(rows.first, (rows.first + rows.size() * i / parts) / kUnitRows * kUnitRows);
    };
    return {bound(part), bound(part + 1)};
}

Result<EnginePlan> plan_engine(const format::Model& model, const EngineOptions& options) {
    const auto begun = Clock::now();
    const auto named = devices_of(options);
    if (!named) return named.error();
    auto devices = read_devices(*named);
    if (!devices) return devices.error();
    if (!options.wgmma) {
        for (DeviceFacts& device : *devices) device.shape.wgmma = false;
    }
    const bool code_tiles = options.planes && options.int8_pass;
    const Residency whole{
        .vectors = true, .plane = options.planes, .code_tiles = code_tiles, .lists = options.lists};
    const auto needs_of = [&](const EnginePlan& plan) {
        return MemoryNeeds(plan, model.dim(), options.gpu_memory_bytes);
    };
    const bool by_rows = options.spread == Spread::rows;
    auto plan = plan_shards(*devices, model.rows(), !by_rows);
    if (options.spread == Spread::automatic && devices->size() > 1) {
        const bool too_many_rows = !plan && plan.error().code == ErrorCode::unavailable;
        if (too_many_rows || (plan && !needs_of(*plan).fits(whole)))
            plan = plan_shards(*devices, model.rows(), false);
    }
    if (!plan) return plan.error();
    plan->context_ms = ms_since(begun);

    const MemoryNeeds memory = needs_of(*plan);
    plan->residency = choose_residency(memory, whole, options.host_vectors, model.dim());
    // Refused here, with advice, rather than by an allocation that fails.
    if (const DeviceFacts* device = memory.too_small(plan->residency)) {
        const std::size_t available = memory.available(*device);
        const bool several = plan->replicas && devices->size() > 1;
        return error_with(
            ErrorCode::unavailable,
            "the model needs {} MB{} on device {} ({}), which has {} MB {}; free some, {}, or use "
            "--engine cpu",
            memory.needed(*device, plan->residency) / 1000000,
            options.planes ? " without its vectors" : "", device->device, device->name,
            available / 1000000, available < device->free_bytes ? "by --gpu-memory" : "free",
            several ? "let the devices share its rows with --spread rows"
                    : "spread the model over several devices with --device");
    }
    if (!plan->residency.vectors && options.log) {
        const DeviceFacts& device = plan->shards.front().device;
        options.log(fmt::format(
            "device {} has {} MB and the whole model needs {} MB: the device holds {} and reads "
            "vectors from page-locked host memory",
            device.device, memory.available(device) / 1000000,
            memory.needed(device, {.vectors = true, .plane = true}) / 1000000,
            holds(plan->residency)));
    }
    return plan;
}

}  // namespace gloved::kernels::cuda
