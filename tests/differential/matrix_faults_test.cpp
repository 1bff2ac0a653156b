// The engines of gloved-distmat and gloved-matmin on a GPU that fails, or has too little memory:
// each call of the runtime fails once. The GPU is fake.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/distance/device_distance.hpp"
#include "kernels/cuda/reduce/device_reducer.hpp"
#include "kernels/distance/engine.hpp"
#include "kernels/reduce/reducer.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"

namespace gloved::tests {
namespace {

using kernels::cuda::make_device_distance;
using kernels::cuda::make_device_reducer;
using kernels::distance::Metric;
using kernels::distance::PointsView;
using kernels::reduce::ReducerOptions;

constexpr int kIllegalAddress = 700;  // sticky
constexpr int kOutOfMemory = 2;
/// More calls than any run here makes.
constexpr std::uint64_t kTooMany = 1000;
/// What engines leave to others.
constexpr std::size_t kDistanceReserve = std::size_t{256} << 20;
constexpr std::size_t kReduceReserve = std::size_t{512} << 20;

void start_over(std::size_t memory_bytes = std::size_t{1} << 30) {
    fake_cuda::Settings settings;
    settings.lazy = true;
    settings.memory_bytes = memory_bytes;
    fake_cuda::reset(settings);
}

std::vector<float> numbers(std::size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
}

/// How a run ended, and what had failed by then: a destructor has nobody to tell.
struct Ended {
    Status done;
    std::string failed = fake_cuda::injected();

    Ended(Status of_run) : done(std::move(of_run)) {}
};

/// Fails each call of `run` in turn, which must say so and leave nothing behind, until one more
/// than it makes is to fail.
void fail_each_call(const std::function<Ended()>& run) {
    for (const int code : {kIllegalAddress, kOutOfMemory}) {
        std::uint64_t at = 1;
        for (; at < kTooMany; ++at) {
            SCOPED_TRACE("call " + std::to_string(at) + " returns " + std::to_string(code));
            start_over();
            fake_cuda::arm({at, code});
            const auto [done, failed] = run();
            ASSERT_EQ(fake_cuda::live(), fake_cuda::Live{})
                << fake_cuda::describe(fake_cuda::live());
            ASSERT_EQ(static_cast<bool>(done), failed.empty()) << failed;
            if (fake_cuda::injected().empty()) break;
        }
        EXPECT_GT(at, 20U);
        EXPECT_LT(at, kTooMany);
    }
    start_over();
}

TEST(DistanceFaults, EveryCallThatFailsIsTold) {
    constexpr std::size_t kRows = 300;  // several pieces
    const auto values = numbers(kRows * 3);
    std::vector<float> out(kRows * kRows);
    std::vector<float> mirror(kRows * kRows);
    fail_each_call([&]() -> Ended {
        auto engine = make_device_distance({values.data(), kRows, 3}, Metric::cosine,
                                           {.threads = 1, .simd = {}, .tile = 64});
        if (!engine) return Status(engine.error());
        Status done = (*engine)->run({0, kRows, 0, kRows}, out.data(), kRows, nullptr, 0);
        if (!done) return done;
        done = (*engine)->run({0, 200, 50, 250}, out.data(), kRows, mirror.data(), kRows);
        if (!done) return done;
        const auto ms = (*engine)->time_resident();
        return ms ? Status() : Status(ms.error());
    });
}

TEST(DistanceFaults, WhatDoesNotFitIsRefused) {
    constexpr std::size_t kRows = 1000;
    constexpr std::size_t kDim = 64;
    constexpr std::size_t kPoints = kRows * kDim * sizeof(float);
    const auto values = numbers(kRows * kDim);
    const auto make = [&] {
        return make_device_distance({values.data(), kRows, kDim}, Metric::cosine, {});
    };
    for (const std::size_t memory : {kDistanceReserve - 1, kDistanceReserve + kPoints - 1}) {
        start_over(memory);
        const auto none = make();
        ASSERT_FALSE(none) << memory;
        EXPECT_EQ(none.error().code, ErrorCode::unavailable);
        EXPECT_NE(none.error().message.find("--engine cpu"), std::string::npos);
    }
    // The points fit; whether all of their distances do is a matter of one byte.
    constexpr std::size_t kDistances = kRows * kRows * sizeof(float);
    for (const bool fits : {false, true}) {
        start_over(kDistanceReserve + kPoints + kDistances - (fits ? 0 : 1));
        const auto engine = make();
        ASSERT_TRUE(engine) << engine.error().message;
        const auto ms = (*engine)->time_resident();
        ASSERT_EQ(static_cast<bool>(ms), fits);
        if (!fits) {
            EXPECT_EQ(ms.error().code, ErrorCode::unavailable);
        }
    }
}

template <class Make>
Ended reduce_all(const Make& make, std::span<const float> values, std::size_t width) {
    ReducerOptions options;
    options.width = width;
    options.count = values.size() / width;
    // Room for some of the values.
    auto reducer = make(options, 3 * width * sizeof(float));
    if (!reducer) return Status(reducer.error());
    if (Status added = (*reducer)->add(values); !added) return added;
    const auto found = (*reducer)->finish();
    return found ? Status() : Status(found.error());
}

TEST(ReduceFaults, EveryCallThatFailsIsTold) {
    const auto values = numbers(10 * 5);
    fail_each_call([&] { return reduce_all(make_device_reducer<float>, values, 5); });
}

TEST(ReduceFaults, WhatDoesNotFitIsRefused) {
    ReducerOptions options;
    options.width = 1000;
    options.count = 3;
    for (const std::size_t memory : {kReduceReserve - 1, kReduceReserve + 100}) {
        start_over(memory);
        const auto none = make_device_reducer<float>(options);
        ASSERT_FALSE(none) << memory;
        EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    }
    start_over();
    EXPECT_TRUE(make_device_reducer<float>(options));
}

}  // namespace
}  // namespace gloved::tests
