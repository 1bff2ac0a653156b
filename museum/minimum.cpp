#include "museum/minimum.hpp"

#include <algorithm>
#include <vector>

#include "common/error_with.hpp"
#include "kernels/cuda/runtime.hpp"
#include "museum/timer.hpp"

namespace gloved::museum {

using kernels::cuda::check;
using kernels::cuda::copy_async;
using kernels::cuda::DeviceBuffer;
using kernels::cuda::move_into;

Result<Minimum> find_minimum(std::span<const double> values, std::size_t width, int device,
                             std::size_t repeat) {
    if (Status done = kernels::cuda::use_existing_device(device); !done) return done.error();
    const std::size_t count = values.size() / width;
    const std::size_t scratch_numbers = minimum_scratch(count, width);
    const auto free_bytes = kernels::cuda::free_device_bytes();
    if (!free_bytes) return free_bytes.error();
    const std::size_t needed = (2 * values.size() + scratch_numbers + 2 * width) * sizeof(double);
    if (needed > *free_bytes) {
        return error_with(ErrorCode::unavailable,
                          "the original needs {} MB for {} matrices, and device {} has {} MB free",
                          needed / 1000000, count, device, *free_bytes / 1000000);
    }
    Timer timer;
    const kernels::cuda::Stream& stream = timer.stream;
    DeviceBuffer<double> matrices, laid_out, scratch, result;
    Status done = timer.create();
    if (done) done = move_into(matrices, matrices.allocate(values.size()));
    if (done) done = move_into(laid_out, laid_out.allocate(values.size()));
    if (done) done = move_into(scratch, scratch.allocate(scratch_numbers));
    if (done) done = move_into(result, result.allocate(2 * width));
    double copy_ms = 0;
    double layout_ms = 0;
    if (done) {
        done = move_into(copy_ms, timer.time([&] {
            return copy_async(matrices.data(), values.data(), values.size(), stream);
        }));
    }
    if (done) {
        done = move_into(layout_ms, timer.time([&] {
            return check(
                launch_lay_out(matrices.data(), count, width, laid_out.data(), stream.get()),
                "launch of lay_out");
        }));
    }
    std::vector<double> reduce_ms(std::max<std::size_t>(repeat, 1));
    for (double& ms : reduce_ms) {
        if (!done) break;
        done = move_into(ms, timer.time([&] {
            return check(launch_minimum(laid_out.data(), count, width, scratch.data(),
                                        result.data(), result.data() + width, stream.get()),
                         "launch of the reduction");
        }));
    }
    std::vector<double> both(2 * width);
    if (done)
        done =
            copy_async(both.data(), static_cast<const double*>(result.data()), both.size(), stream);
    if (done) done = stream.synchronize();
    if (!done) return done.error();
    std::ranges::nth_element(reduce_ms,
                             reduce_ms.begin() + static_cast<std::ptrdiff_t>(reduce_ms.size() / 2));
    return Minimum{
        kernels::reduce::MinMax<double>(std::span(both).first(width), std::span(both).last(width)),
        copy_ms, layout_ms, reduce_ms[reduce_ms.size() / 2]};
}

}  // namespace gloved::museum
