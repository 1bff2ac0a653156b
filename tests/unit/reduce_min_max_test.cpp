// The reduction by registers against a naive loop, by bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/reduce/min_max.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::reduce {
namespace {

template <class T>
using Limits = std::numeric_limits<T>;

template <class T>
auto bits(std::span<const T> values) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    std::vector<Bits> bits;
    for (const T value : values) bits.push_back(std::bit_cast<Bits>(value));
    return bits;
}

template <class T>
struct Expected {
    std::vector<T> minimum;
    std::vector<T> maximum;
};

/// One element after the other, by sorting: nothing in common with what is tested.
template <class T>
Expected<T> naively(const std::vector<T>& values, std::size_t width) {
    Expected<T> expected;
    for (std::size_t i = 0; i < width; ++i) {
        std::vector<T> column;
        for (std::size_t at = i; at < values.size(); at += width) {
            if (!std::isnan(static_cast<double>(values[at]))) column.push_back(values[at]);
        }
        std::sort(column.begin(), column.end(), [](T a, T b) {
            return a < b || (a == b && std::signbit(static_cast<double>(a)) >
                                           std::signbit(static_cast<double>(b)));
        });
        const T none = Limits<T>::has_infinity ? Limits<T>::infinity() : Limits<T>::max();
        const T none_high = Limits<T>::has_infinity ? -Limits<T>::infinity() : Limits<T>::lowest();
        expected.minimum.push_back(column.empty() ? none : column.front());
        expected.maximum.push_back(column.empty() ? none_high : column.back());
    }
    return expected;
}

template <class T>
testing::AssertionResult is(const MinMax<T>& found, const Expected<T>& expected) {
    if (bits(found.minimum()) != bits(std::span<const T>(expected.minimum))) {
        return testing::AssertionFailure() << "minimum, width " << found.width();
    }
    if (bits(found.maximum()) != bits(std::span<const T>(expected.maximum))) {
        return testing::AssertionFailure() << "maximum, width " << found.width();
    }
    return testing::AssertionSuccess();
}

/// Numbers of which some are zeros of either sign, limits of the type, and NaN of either sign.
template <class T>
class Odd {
  public:
    explicit Odd(unsigned seed) : random_(seed) {}

    /// `kind` tells elements of a matrix apart: some have zeros and what is greater, some what is
    /// less, some both.
    T operator()(std::size_t kind) {
        const auto dice = random_() % 64;
        T value = static_cast<T>(static_cast<std::int32_t>(random_() % 2000) - 1000);
        if constexpr (Limits<T>::has_infinity) {
            if (dice == 0) return std::copysign(Limits<T>::quiet_NaN(), value);
            if (dice == 1 && kind % 7 == 6) return std::copysign(Limits<T>::infinity(), value);
            if (dice < 8) return std::copysign(T{0}, value);
            value /= 8;
        } else if (kind % 7 == 6 && dice < 2) {
            return dice == 0 ? Limits<T>::max() : Limits<T>::lowest();
        }
        if (kind % 3 == 0) return value < 0 ? -value : value;
        if (kind % 3 == 1) return value > 0 ? -value : value;
        return value;
    }

  private:
    std::mt19937 random_;
};

template <class T>
std::vector<T> odd_values(std::size_t rows, std::size_t width, unsigned seed) {
    Odd<T> odd(seed);
    std::vector<T> values(rows * width);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = odd(i % width);
    return values;
}

std::vector<std::size_t> widths() {
    std::vector<std::size_t> widths;
    for (std::size_t width = 1; width <= 40; ++width) widths.push_back(width);
    for (const std::size_t width : {63U, 64U, 65U, 127U, 300U, 1000U, 1001U})
        widths.push_back(width);
    return widths;
}

template <class T>
class ReduceMinMax : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t>;
TYPED_TEST_SUITE(ReduceMinMax, Types);

TYPED_TEST(ReduceMinMax, IsThatOfANaiveLoopForEveryWidthAndNumberOfRows) {
    for (const std::size_t width : widths()) {
        for (const std::size_t rows : {0U, 1U, 2U, 3U, 4U, 5U, 31U, 64U, 257U}) {
            const auto values =
                odd_values<TypeParam>(rows, width, static_cast<unsigned>(width + rows));
            MinMax<TypeParam> found(width);
            found.add(values.data(), rows);
            ASSERT_TRUE(is(found, naively(values, width))) << rows << " rows";
        }
    }
}

TYPED_TEST(ReduceMinMax, IsTheSameBytesHoweverRowsAreSplitAndInWhateverOrder) {
    std::mt19937 random(1);
    for (const std::size_t width : widths()) {
        const std::size_t rows = 500;
        const auto values = odd_values<TypeParam>(rows, width, static_cast<unsigned>(width));
        const auto expected = naively(values, width);
        std::vector<MinMax<TypeParam>> parts(3, MinMax<TypeParam>(width));
        for (std::size_t row = 0; row < rows;) {
            const std::size_t count = std::min<std::size_t>(rows - row, 1 + random() % 100);
            parts[random() % 3].add(values.data() + row * width, count);
            row += count;
        }
        std::shuffle(parts.begin(), parts.end(), random);
        MinMax<TypeParam> all(width);
        for (const auto& part : parts) all.add(part);
        ASSERT_TRUE(is(all, expected));
        ASSERT_TRUE(is(MinMax<TypeParam>(all.minimum(), all.maximum()), expected));
        all.reset();
        ASSERT_TRUE(is(all, naively(std::vector<TypeParam>(), width)));
    }
}

TYPED_TEST(ReduceMinMax, IsTheSameBytesForEveryNumberOfThreads) {
    for (const unsigned threads : {1U, 2U, 5U}) {
        ThreadPool pool(threads);
        for (const std::size_t width : {1U, 9U, 100U, 50'000U}) {
            // Several pieces for every thread.
            const auto values = odd_values<TypeParam>(800'000 / width + 1, width, threads);
            const auto found = min_max<TypeParam>(pool, values, width);
            ASSERT_TRUE(is(found, naively(values, width))) << threads << " threads";
        }
        EXPECT_TRUE(is(min_max<TypeParam>(pool, {}, 4), naively(std::vector<TypeParam>(), 4)));
    }
}

template <class T>
class ReduceZeros : public testing::Test {};
using FloatingTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(ReduceZeros, FloatingTypes);

/// One zero of the other sign, at every place in turn.
TYPED_TEST(ReduceZeros, FindsTheOneThatCounts) {
    using T = TypeParam;
    for (const std::size_t width : {1U, 3U, 9U, 65U}) {
        const std::size_t rows = 1200 / width;
        for (std::size_t at = 0; at < rows * width; ++at) {
            std::vector<T> values(rows * width, T{0});
            values[at] = -T{0};
            MinMax<T> low(width);
            low.add(values.data(), rows);
            for (std::size_t i = 0; i < width; ++i) {
                ASSERT_EQ(std::signbit(low.minimum()[i]), i == at % width) << at;
                ASSERT_EQ(std::signbit(low.maximum()[i]), rows == 1 && i == at % width);
            }
            ASSERT_TRUE(std::signbit(low.least()));
            ASSERT_FALSE(std::signbit(low.greatest()) && width > 1);

            for (T& value : values) value = -value;
            MinMax<T> high(width);
            high.add(values.data(), rows);
            for (std::size_t i = 0; i < width; ++i)
                ASSERT_EQ(std::signbit(high.maximum()[i]), i != at % width) << at;
            ASSERT_FALSE(std::signbit(high.greatest()));
        }
    }
}

TYPED_TEST(ReduceZeros, StaysAtInfinityWithoutAnyNumber) {
    using T = TypeParam;
    const std::vector<T> values(700, Limits<T>::quiet_NaN());
    MinMax<T> found(7);
    found.add(values.data(), 100);
    EXPECT_TRUE(is(found, naively(values, 7)));
    EXPECT_EQ(found.least(), Limits<T>::infinity());
    EXPECT_EQ(found.greatest(), -Limits<T>::infinity());
}

}  // namespace
}  // namespace gloved::kernels::reduce
