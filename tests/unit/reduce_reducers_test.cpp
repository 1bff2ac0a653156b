// What is fed piece by piece: all of them give the same bytes.
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

TYPED_TEST(Reducers, GiveTheSameBytesWhateverThePieces) {
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
        auto sequential = make_reducer<T>("sequential", options);
        ASSERT_TRUE(cpu && sequential);
        std::span<const T> rest = values;
        while (!rest.empty()) {
            const std::size_t piece = std::min(rest.size(), random() % 40 * width);
            ASSERT_TRUE((*cpu)->add(rest.first(piece)));
            ASSERT_TRUE((*sequential)->add(rest.first(piece)));
            rest = rest.subspan(piece);
        }
        const auto from_cpu = (*cpu)->finish();
        const auto from_sequential = (*sequential)->finish();
        ASSERT_TRUE(from_cpu && from_sequential);
        EXPECT_TRUE(same_bytes(from_cpu->minimum(), from_sequential->minimum())) << width;
        EXPECT_TRUE(same_bytes(from_cpu->maximum(), from_sequential->maximum())) << width;
        T least = from_cpu->minimum()[0];
        for (std::size_t at = 0; at < values.size(); at += width)
            least = std::min(least, values[at]);
        EXPECT_EQ(from_sequential->minimum()[0], least);
    }
}

TYPED_TEST(Reducers, OfTheProcessorTellTimesAndRepeatWhatTheyKeep) {
    using T = TypeParam;
    const std::vector<T> values(90'000, T{1});
    for (const char* name : {"cpu", "sequential"}) {
        ReducerOptions options;
        options.width = 9;
        options.count = 10'000;
        auto forgetful = make_reducer<T>(name, options);
        options.keep = true;
        auto keeping = make_reducer<T>(name, options);
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
}

TEST(ReducerRegistry, NamesFourWaysAndSaysWhyOneCannotRun) {
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
    EXPECT_EQ(names, (std::vector<std::string>{"cuda", "cpu", "sequential", "original"}));
    const auto unknown = make_reducer<float>("auto", {});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().message,
              "no engine 'auto': there are cuda, cpu, sequential, original");
}

}  // namespace
}  // namespace gloved::kernels::reduce
