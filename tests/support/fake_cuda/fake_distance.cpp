// The launch of kernels/cuda/distance by the engine of the processor, which gives the same bytes.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/distance/launches.hpp"
#include "kernels/distance/cpu.hpp"
#include "kernels/distance/engine.hpp"
#include "tests/support/fake_cuda/fake_device.hpp"

namespace gloved::kernels::cuda {
namespace {

using tests::fake_cuda::Launch;
using tests::fake_cuda::misuse;

constexpr std::size_t kAlignment = 16;

bool is_aligned(const float* address) {
    return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
}

}  // namespace

cudaError_t launch_register_tiled(const DistanceTask& task, unsigned tile, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    launch.require(tile == 0 || tile == 32 || tile == 64 || tile == 128,
                   "a tile that is not 32, 64, 128 or 0");
    if (launch.failed()) return launch.code();
    const distance::Rectangle& part = task.rectangle;
    launch.require(task.dim > 0 && task.point_stride % kPointPadding == 0 &&
                       task.point_stride >= task.dim &&
                       task.point_stride < task.dim + kPointPadding,
                   "point_stride is not dim rounded up to kPointPadding");
    launch.require(part.rows > 0 && part.columns > 0, "an empty rectangle");
    launch.require(
        part.first_row + part.rows <= task.rows && part.first_column + part.columns <= task.rows,
        "points that are not there");
    launch.require(task.processors > 0, "a device without processors");
    launch.require(part.columns <= task.stride, "rows of `out` that overlap");
    launch.require(is_aligned(task.points), "points are not aligned");
    const auto points = launch.device(task.points, task.rows * task.point_stride, "points");
    const auto out = launch.device(task.out, part.rows * task.stride, "out");
    auto mirror = out.first(0);
    if (task.mirror != nullptr) {
        launch.require(!part.on_diagonal(), "a mirror image of a square on the diagonal");
        launch.require(part.rows <= task.mirror_stride, "rows of `mirror` that overlap");
        mirror = launch.device(task.mirror, part.columns * task.mirror_stride, "mirror");
    }
    return launch.run([=] {
        // With their padding, whose zeros change no sum: what else it holds shows.
        const distance::PointsView padded{points.data(), task.rows, task.point_stride};
        const auto engine = distance::make_cpu(padded, task.metric, {.threads = 1, .simd = {}});
        if (!engine) misuse(engine.error().message);
        const Status done =
            (*engine)->run(task.rectangle, out.data(), task.stride,
                           mirror.empty() ? nullptr : mirror.data(), task.mirror_stride);
        if (!done) misuse(done.error().message);
    });
}

}  // namespace gloved::kernels::cuda
