#include "museum/distances.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/distance/canonical.hpp"
#include "museum/timer.hpp"

namespace gloved::museum {
namespace {

using kernels::cuda::check;
using kernels::cuda::copy_async;
using kernels::cuda::DeviceBuffer;

constexpr std::array<DistanceVersion, 5> kVersions = {
    {{"sequential", "One plain loop on one thread of the processor."},
     {"global", "One thread a distance, both rows from global memory.", launch_global},
     {"shared8", "Tiles of 8 x 8 in shared memory.", launch_shared<8>},
     {"shared16", "Tiles of 16 x 16 in shared memory.", launch_shared<16>},
     {"shared32", "Tiles of 32 x 32 in shared memory.", launch_shared<32>}}};

#ifdef __x86_64__
/// canonical_sum for processors with fused operations; without, std::fma is a library call per
/// component. `flatten` compiles canonical_sum for them here.
__attribute__((target("fma"), flatten)) float fused_sum(const float* x, const float* y,
                                                        std::size_t dim) {
    return kernels::distance::canonical_sum(x, y, dim);
}

auto* best_sum() {
    return __builtin_cpu_supports("fma") ? fused_sum : kernels::distance::canonical_sum;
}
#else
auto* best_sum() { return kernels::distance::canonical_sum; }
#endif

Distances loop(std::span<const float> points, std::size_t rows, std::size_t repeat) {
    auto* const sum = best_sum();
    const std::size_t dim = points.size() / rows;
    Distances distances{std::vector<float>(rows * rows), {}};
    for (std::size_t run = 0; run < repeat; ++run) {
        const auto begun = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < rows; ++j) {
                distances.values[i * rows + j] =
                    sum(points.data() + i * dim, points.data() + j * dim, dim);
            }
        }
        distances.ms.push_back(ms_since(begun));
    }
    return distances;
}

/// The points on the device, and room for their distances.
struct Work {
    Timer timer;
    DeviceBuffer<float> points;
    DeviceBuffer<float> out;

    Status prepare(std::span<const float> from, std::size_t rows, std::size_t stride) {
        Status done = timer.create();
        if (done) done = move_into(points, points.allocate(rows * stride));
        if (done) done = move_into(out, out.allocate(rows * rows));
        if (!done) return done;
        const std::size_t dim = from.size() / rows;
        std::vector<float> padded(rows * stride);
        for (std::size_t row = 0; row < rows; ++row)
            std::copy_n(from.data() + row * dim, dim, padded.data() + row * stride);
        done = copy_async<float>(points.data(), padded.data(), padded.size(), timer.stream);
        Status over = timer.stream.synchronize();
        return done ? over : done;
    }

    Result<double> time(const DistanceVersion& version, const DistanceTask& task) {
        return timer.time(
            [&] { return check(version.launch(task, timer.stream.get()), "launch of distances"); });
    }
};

}  // namespace

std::span<const DistanceVersion> distance_versions() { return kVersions; }

Result<Distances> find_distances(const DistanceVersion& version, std::span<const float> points,
                                 std::size_t rows, int device, std::size_t repeat) {
    if (version.launch == nullptr) return loop(points, rows, repeat);
    if (Status done = kernels::cuda::use_existing_device(device); !done) return done.error();
    const std::size_t dim = points.size() / rows;
    const std::size_t stride = (dim + kPointPadding - 1) / kPointPadding * kPointPadding;
    const auto free_bytes = kernels::cuda::free_device_bytes();
    if (!free_bytes) return free_bytes.error();
    const std::size_t needed = rows * (stride + rows) * sizeof(float);
    if (needed > *free_bytes) {
        return error_with(ErrorCode::unavailable,
                          "{} x {} distances need {} MB, and device {} has {} MB free", rows, rows,
                          needed / 1000000, device, *free_bytes / 1000000);
    }
    Work work;
    if (Status done = work.prepare(points, rows, stride); !done) return done.error();
    const DistanceTask task{work.points.data(), rows, dim, stride, work.out.data()};
    // NaN is no distance: what is not written shows.
    Distances distances{std::vector<float>(rows * rows, std::numeric_limits<float>::quiet_NaN()),
                        {}};
    Status done = copy_async<float>(work.out.data(), distances.values.data(), work.out.size(),
                                    work.timer.stream);
    if (!done) return done.error();
    for (std::size_t run = 0; run <= repeat; ++run) {
        const auto ms = work.time(version, task);
        if (!ms) return ms.error();
        if (run > 0) distances.ms.push_back(*ms);
    }
    done = copy_async<float>(distances.values.data(), work.out.data(), work.out.size(),
                             work.timer.stream);
    if (done) done = work.timer.stream.synchronize();
    if (!done) return done.error();
    return distances;
}

}  // namespace gloved::museum
