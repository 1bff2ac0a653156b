// The launches of kernels/cuda/reduce as plain loops on the CPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/reduce/launches.hpp"
#include "kernels/reduce/min_max.hpp"
#include "tests/support/fake_cuda/fake_device.hpp"

namespace gloved::kernels::cuda {
namespace {

using reduce::MinMax;
using tests::fake_cuda::Launch;

/// Rows of intermediate results of every plan.
constexpr std::size_t kPartialRows = 3;

/// The results as the fake writes them.
template <class T>
struct Result {
    std::span<T> low;
    std::span<T> high;

    Result(const Launch& launch, const ReduceResult<T>& of, std::size_t width)
        : low(launch.device(of.low, width, "low").first(width)),
          high(launch.device(of.high, width, "high").first(width)) {}

    void take(const MinMax<T>& values, bool first) const {
        MinMax<T> all = values;
        if (!first) all.add(MinMax<T>(low, high));
        std::ranges::copy(all.minimum(), low.begin());
        std::ranges::copy(all.maximum(), high.begin());
    }
};

}  // namespace

template <class T>
ReducePlan plan_reduce(std::size_t width, std::size_t, int) {
    ReducePlan plan;
    plan.width = plan.period = width;
    plan.partial_rows = kPartialRows;
    return plan;
}

template <class T>
cudaError_t launch_one_pass(const ReducePlan& plan, const T* values, std::size_t count, bool first,
                            const ReduceResult<T>& result, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(count > 0 && count % plan.width == 0, "numbers that are not whole matrices");
    launch.require(reinterpret_cast<std::uintptr_t>(values) % 16 == 0, "values are not aligned");
    const auto from = launch.device(values, count, "values");
    const Result<T> into(launch, result, plan.width);
    const std::size_t partial = plan.partial_rows * plan.width;
    const auto partial_low = launch.device(result.partial_low, partial, "partial_low");
    const auto partial_high = launch.device(result.partial_high, partial, "partial_high");
    return launch.run([=] {
        std::ranges::fill(partial_low.first(partial), T{-7});
        std::ranges::fill(partial_high.first(partial), T{7});
        MinMax<T> all(plan.width);
        all.add(from.data(), count / plan.width);
        into.take(all, first);
    });
}

#define GLOVED_INSTANTIATE(T)                                                            \
    template ReducePlan plan_reduce<T>(std::size_t, std::size_t, int);                   \
    template cudaError_t launch_one_pass(const ReducePlan&, const T*, std::size_t, bool, \
                                         const ReduceResult<T>&, cudaStream_t);
GLOVED_INSTANTIATE(float)
GLOVED_INSTANTIATE(double)
GLOVED_INSTANTIATE(std::int32_t)

}  // namespace gloved::kernels::cuda
