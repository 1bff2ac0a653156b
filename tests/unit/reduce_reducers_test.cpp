// What is fed piece by piece gives the bytes of the plain loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/makers.hpp"
#include "kernels/reduce/reducer.hpp"
#include "kernels/reduce/registry.hpp"

namespace gloved::kernels::reduce {
namespace {

template <class T>
class Reducers : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t>;
TYPED_TEST_SUITE(Reducers, Types);

template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
    return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

/// Orders −0 before +0.
template <class T>
bool less(T a, T b) {
    return a == b ? std::signbit(a) && !std::signbit(b) : a < b;
}

TYPED_TEST(Reducers, GiveTheBytesOfThePlainLoopWhateverThePieces) {
    using T = TypeParam;
    std::mt19937 random(1);
    for (const std::size_t width : {1U, 6U, 9U, 100U}) {
        std::vector<T> values(300 * width);
        for (T& value : values) {
            value = static_cast<T>(static_cast<int>(random() % 100));
            if (std::numeric_limits<T>::has_infinity && random() % 2 == 0) value = -value;
        }
        ReducerOptions options;
        options.width = width;
        options.threads = 2;
        auto cpu = make_reducer<T>("cpu", options);
        ASSERT_TRUE(cpu);
        std::span<const T> rest = values;
        while (!rest.empty()) {
            const std::size_t piece = std::min(rest.size(), random() % 40 * width);
            ASSERT_TRUE((*cpu)->add(rest.first(piece)));
            rest = rest.subspan(piece);
        }
        const auto found = (*cpu)->finish();
        ASSERT_TRUE(found);
        std::vector<T> minimum(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(width));
        std::vector<T> maximum = minimum;
        for (std::size_t at = width; at < values.size(); ++at) {
            T& low = minimum[at % width];
            T& high = maximum[at % width];
            if (less(values[at], low)) low = values[at];
            if (less(high, values[at])) high = values[at];
        }
        EXPECT_TRUE(same_bytes(found->minimum(), std::span<const T>(minimum))) << width;
        EXPECT_TRUE(same_bytes(found->maximum(), std::span<const T>(maximum))) << width;
    }
}

TYPED_TEST(Reducers, OfTheProcessorTellTimesAndRepeatWhatTheyKeep) {
    using T = TypeParam;
    const std::vector<T> values(90'000, T{1});
    ReducerOptions options;
    options.width = 9;
    options.count = 10'000;
    auto forgetful = make_reducer<T>("cpu", options);
    options.keep = true;
    auto keeping = make_reducer<T>("cpu", options);
    ASSERT_TRUE(forgetful && keeping);
    for (auto* reducer : {forgetful->get(), keeping->get()}) {
        ASSERT_TRUE(reducer->add(values));
        ASSERT_TRUE(reducer->finish());
        EXPECT_GT(reducer->times().compute_ms, 0);
        EXPECT_EQ(reducer->times().transfer_ms, 0);
    }
    const auto refused = (*forgetful)->time_again();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    const auto again = (*keeping)->time_again();
    ASSERT_TRUE(again);
    EXPECT_GT(*again, 0);
    EXPECT_EQ((*keeping)->finish()->minimum()[8], T{1});
}

TEST(ReducerRegistry, NamesEveryEngineAndSaysWhyOneCannotRun) {
    std::vector<std::string> names;
    for (const MakerEntry& entry : list_reducers()) {
        names.push_back(entry.name);
        const auto made = make_reducer<double>(entry.name, {});
        EXPECT_EQ(static_cast<bool>(made), entry.unavailable.empty()) << entry.name;
        if (!made) {
            EXPECT_EQ(made.error().code, ErrorCode::unavailable);
            EXPECT_NE(made.error().message.find(entry.name), std::string::npos)
                << made.error().message;
        }
    }
    EXPECT_EQ(names, (std::vector<std::string>{"cuda", "cpu"}));
    const auto unknown = make_reducer<float>("auto", {});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().message, "no engine 'auto': there are cuda, cpu");
}

}  // namespace
}  // namespace gloved::kernels::reduce
