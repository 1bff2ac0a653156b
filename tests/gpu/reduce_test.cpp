// Smallest and largest elements of the device against a plain loop, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/reduce/device_reducer.hpp"
#include "kernels/reduce/reducer.hpp"
#include "tests/gpu/device.hpp"

namespace gloved::tests {
namespace {

using kernels::cuda::kAllMemory;
using kernels::cuda::make_device_reducer;
using kernels::reduce::MinMax;
using kernels::reduce::Reducer;
using kernels::reduce::ReducerOptions;

template <class T>
std::unique_ptr<Reducer<T>> reducer(std::size_t width, std::size_t count,
                                    std::size_t most_bytes = kAllMemory) {
    ReducerOptions options;
    options.width = width;
    options.count = count;
    auto made = make_device_reducer<T>(options, most_bytes);
    if (!made) throw std::runtime_error(made.error().message);
    return *std::move(made);
}

/// Numbers of both signs; columns of zeros of both signs, columns of limits, now and then NaN.
template <class T>
std::vector<T> random_matrices(std::size_t width, std::size_t count, bool with_nan) {
    std::mt19937_64 random(width * 1000003 + count);
    std::vector<T> values(width * count);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t bits = random();
        const std::size_t kind = i % width % 7;
        if constexpr (std::is_same_v<T, std::int32_t>) {
            values[i] =
                static_cast<std::int32_t>(kind == 3 ? bits : bits % 2001) - (kind == 3 ? 0 : 1000);
            if (kind == 5 && bits % 3 == 0) {
                values[i] =
                    bits % 2 == 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
            }
        } else {
            const T sign = bits % 2 == 0 ? T{1} : T{-1};
            values[i] = sign * static_cast<T>(bits >> 40) / T{1024};
            if (kind == 2) values[i] = std::copysign(T{0}, sign);
            if (kind == 4 && bits % 5 == 0) values[i] = sign * std::numeric_limits<T>::denorm_min();
            if (kind == 5 && bits % 11 == 0) values[i] = sign * std::numeric_limits<T>::max();
            if (with_nan && (kind == 6 || bits % 13 == 0))
                values[i] = std::copysign(std::numeric_limits<T>::quiet_NaN(), sign);
        }
    }
    return values;
}

template <class T>
bool before(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (a == b) return std::signbit(a) && !std::signbit(b);
    }
    return a < b;
}

template <class T>
struct Wanted {
    std::vector<T> low;
    std::vector<T> high;
};

template <class T>
Wanted<T> plain_loop(const std::vector<T>& values, std::size_t width) {
    using Limits = std::numeric_limits<T>;
    Wanted<T> wanted{
        std::vector<T>(width, Limits::has_infinity ? Limits::infinity() : Limits::max()),
        std::vector<T>(width, Limits::has_infinity ? -Limits::infinity() : Limits::min())};
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != values[i]) continue;
        T& low = wanted.low[i % width];
        T& high = wanted.high[i % width];
        if (before(values[i], low)) low = values[i];
        if (before(high, values[i])) high = values[i];
    }
    return wanted;
}

/// The first element whose bits differ, or nothing.
template <class T>
std::string difference(const std::vector<T>& wanted, std::span<const T> found) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    if (wanted.size() != found.size()) return "sizes differ";
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (std::bit_cast<Bits>(wanted[i]) != std::bit_cast<Bits>(found[i])) {
            return "element " + std::to_string(i) + ": " + std::to_string(found[i]) + ", not " +
                   std::to_string(wanted[i]);
        }
    }
    return {};
}

/// Feeds matrices in pieces of no regular size.
template <class T>
void feed(Reducer<T>& reducer, const std::vector<T>& values, std::size_t width) {
    std::mt19937_64 random(values.size());
    for (std::size_t at = 0; at < values.size();) {
        const std::size_t left = (values.size() - at) / width;
        const std::size_t count = 1 + random() % std::min<std::size_t>(left, 40000);
        const Status added = reducer.add(std::span(values).subspan(at, count * width));
        if (!added) throw std::runtime_error(added.error().message);
        at += count * width;
    }
}

template <class T>
void expect_equal(Reducer<T>& reducer, const Wanted<T>& wanted) {
    const auto found = reducer.finish();
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(difference(wanted.low, found->minimum()), "") << "in the minimum";
    EXPECT_EQ(difference(wanted.high, found->maximum()), "") << "in the maximum";
}

template <class T>
class ReduceGpu : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t>;
struct TypeNames {
    template <class T>
    static std::string GetName(int) {
        return std::is_same_v<T, float>    ? "float32"
               : std::is_same_v<T, double> ? "float64"
                                           : "int32";
    }
};
TYPED_TEST_SUITE(ReduceGpu, Types, TypeNames);

struct Size {
    std::size_t width;
    std::size_t count;
};

template <class T>
void expect_sizes_equal(std::span<const Size> sizes, bool with_nan) {
    for (const auto [width, count] : sizes) {
        const std::vector<T> values = random_matrices<T>(width, count, with_nan);
        const Wanted<T> wanted = plain_loop(values, width);
        SCOPED_TRACE(std::to_string(count) + " matrices of " + std::to_string(width));
        const auto made = reducer<T>(width, count);
        feed(*made, values, width);
        expect_equal(*made, wanted);
        const auto again = made->time_again();
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_GT(*again, 0);
        EXPECT_GT(made->times().compute_ms, 0);
        EXPECT_GT(made->times().transfer_ms, 0);
    }
}

TYPED_TEST(ReduceGpu, SmallSizesHaveTheBitsOfThePlainLoop) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    constexpr Size kSizes[] = {{1, 1},  {1, 2},    {1, 4099}, {2, 3},   {3, 5000}, {7, 1},
                               {9, 10}, {9, 4097}, {16, 33},  {100, 7}, {1000, 3}, {1025, 11}};
    expect_sizes_equal<TypeParam>(kSizes, false);
}

TYPED_TEST(ReduceGpu, SizesHaveTheBitsOfThePlainLoop) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    constexpr Size kSizes[] = {{1, 5000001}, {2, 1048577}, {3, 2048},    {3, 2049},    {7, 654321},
                               {9, 999983},  {16, 500001}, {100, 77777}, {512, 9001},  {513, 9001},
                               {1000, 8111}, {1023, 3333}, {1024, 3333}, {4096, 1025}, {65537, 61},
                               {300007, 11}, {3000001, 3}, {5000001, 1}};
    expect_sizes_equal<TypeParam>(kSizes, false);
}

TYPED_TEST(ReduceGpu, SmallSizesKeepElementsApart) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    using T = TypeParam;
    // Whatever is taken from a neighbour is out of bounds here.
    for (const auto [width, count] : {Size{3, 2049}, Size{9, 4097}, Size{5, 2048}, Size{1030, 3}}) {
        std::vector<T> values(width * count);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<T>(100 * (i % width) + i / width % 7);
        const Wanted<T> wanted = plain_loop(values, width);
        SCOPED_TRACE(std::to_string(count) + " matrices of " + std::to_string(width));
        const auto made = reducer<T>(width, count);
        feed(*made, values, width);
        expect_equal(*made, wanted);
    }
}

TYPED_TEST(ReduceGpu, SmallSizesPassNanOver) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    constexpr Size kSizes[] = {{1, 1}, {7, 1}, {9, 2049}, {14, 4096}, {1200, 5}};
    expect_sizes_equal<TypeParam>(kSizes, true);
}

TYPED_TEST(ReduceGpu, SmallMemoryIsReducedWheneverItIsFull) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    using T = TypeParam;
    struct Case {
        Size size;
        std::size_t room;  // in matrices
    };
    constexpr Case kCases[] = {
        {{1, 100}, 1}, {{9, 3007}, 100}, {{9, 3007}, 2999}, {{100, 51}, 7}, {{1100, 20}, 8}};
    for (const auto& [size, room] : kCases) {
        const std::vector<T> values = random_matrices<T>(size.width, size.count, false);
        const Wanted<T> wanted = plain_loop(values, size.width);
        SCOPED_TRACE(std::to_string(size.count) + " matrices of " + std::to_string(size.width) +
                     ", room for " + std::to_string(room));
        const auto made = reducer<T>(size.width, size.count, room * size.width * sizeof(T));
        feed(*made, values, size.width);
        expect_equal(*made, wanted);
        const auto again = made->time_again();
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().code, ErrorCode::unavailable);
    }
}

TYPED_TEST(ReduceGpu, SmallAnnouncementsMayBeWrong) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    using T = TypeParam;
    const std::vector<T> values = random_matrices<T>(9, 1000, false);
    const Wanted<T> wanted = plain_loop(values, 9);
    const std::vector<T> one = {T{5}};
    const auto of_one = reducer<T>(1, 2);
    feed(*of_one, one, 1);
    expect_equal(*of_one, plain_loop(one, 1));
    for (const std::size_t announced :
         {std::size_t{0}, std::size_t{1}, std::size_t{999}, std::size_t{1001}}) {
        SCOPED_TRACE("announced " + std::to_string(announced));
        const auto made = reducer<T>(9, announced);
        feed(*made, values, 9);
        expect_equal(*made, wanted);
    }
}

TYPED_TEST(ReduceGpu, SmallestOfNothingIsTheLimit) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    const auto made = reducer<TypeParam>(5, 10);
    expect_equal(*made, plain_loop(std::vector<TypeParam>(), 5));
    EXPECT_FALSE(made->time_again());
}

TYPED_TEST(ReduceGpu, SmallRoomForNoMatrixIsAnError) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    ReducerOptions options;
    options.width = 100;
    options.count = 3;
    const auto none = make_device_reducer<TypeParam>(options, 99 * sizeof(TypeParam));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::unavailable);
    options.device = 1000;
    const auto nowhere = make_device_reducer<TypeParam>(options);
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace gloved::tests
